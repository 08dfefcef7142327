//@ E0277
use reject::{LOCK, wait_async};
pub fn count(cx: &mut refs::Cx) {
    LOCK.with(|value| {
        wait_async(cx);
        *value += 1;
    });
}
fn main() {}
