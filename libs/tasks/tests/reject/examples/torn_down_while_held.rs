//@ E0502
use reject::{File, wait_async};
pub fn end_async(owner: refs::StrongRc<File>, cx: &mut refs::Cx) -> u64 {
    let file = owner.get(cx);
    owner.destroy_async(cx, |_, cx| wait_async(cx));
    file.offset
}
fn main() {}
