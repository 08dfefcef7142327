//@ E0502
use reject::{File, wait_async};
pub fn read_async(files: &refs::List<File>, cx: &mut refs::Cx) -> u64 {
    let file = files.get(files.first().unwrap(), cx).unwrap();
    wait_async(cx);
    file.offset
}
fn main() {}
