//@ E0133
use refs::StrongRc;
pub fn free_what_is_borrowed(cx: &refs::Cx, owner: StrongRc<Vec<u8>>) -> usize {
    let borrowed = owner.get(cx);
    drop(owner);
    drop(refs::reclaim::Core::register());
    borrowed.len()
}
fn main() {}
