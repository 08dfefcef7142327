//@ E0502
use reject::FILES;
pub fn end(cx: &mut refs::Cx) -> u64 {
    let file = FILES.get(3, cx).unwrap();
    FILES.remove(3, cx).unwrap().destroy(cx);
    file.offset
}
fn main() {}
