//@ E0502
use reject::{name, wait_async};
pub fn read_async(cx: &mut refs::Cx) -> u64 {
    let file = name(cx).upgrade(cx).unwrap();
    let later = move || file.offset;
    wait_async(cx);
    later()
}
fn main() {}
