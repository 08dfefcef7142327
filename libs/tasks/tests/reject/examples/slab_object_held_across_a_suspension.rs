//@ E0502
use reject::{File, wait_async};
pub fn read_async(files: &refs::Slab<File>, cx: &mut refs::Cx) -> u64 {
    let file = files.get(3, cx).unwrap();
    wait_async(cx);
    file.offset
}
fn main() {}
