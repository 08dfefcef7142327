//@ E0133
use tasks::{HeapStacks, StackSource};

fn main() {
    let (small, large) = (HeapStacks::new(4096), HeapStacks::new(1 << 16));
    large.give(small.take().unwrap());
}
