//@ E0502
use reject::File;
pub fn end(cx: &mut refs::Cx) -> u64 {
    let owner = refs::StrongRc::new(File { offset: 1 });
    let file = owner.get(cx);
    owner.destroy(cx);
    file.offset
}
fn main() {}
