//@ E0614
pub fn read(owner: refs::StrongRc<u64>) -> u64 {
    *owner
}
fn main() {}
