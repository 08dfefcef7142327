//@ E0502
use reject::File;
pub fn end(files: &mut refs::Map<u32, File>, cx: &mut refs::Cx) -> u64 {
    let file = files.get(&3, cx).unwrap();
    files.remove(&3).unwrap().destroy(cx);
    file.offset
}
fn main() {}
