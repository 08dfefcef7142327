//@ E0502
use refs::{Grouped, WeakRc};
use reject::{File, wait_async};
pub fn read_async(name: WeakRc<File, Grouped>, cx: &mut refs::Cx) -> u64 {
    let file = name.upgrade(cx).unwrap();
    wait_async(cx);
    file.offset
}
fn main() {}
