//@ E0502
use reject::{FILES, wait_async};
pub fn read_async(cx: &mut refs::Cx) -> u64 {
    let file = FILES.get(3, cx).unwrap();
    wait_async(cx);
    file.offset
}
fn main() {}
