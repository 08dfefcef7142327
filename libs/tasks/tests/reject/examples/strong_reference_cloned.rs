//@ E0308
pub fn two(owner: &refs::StrongRc<u64>) -> refs::StrongRc<u64> {
    owner.clone()
}
fn main() {}
