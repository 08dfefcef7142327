//@ E0502
use reject::{LOCK, wait_async};
pub fn count_async(cx: &mut refs::Cx) {
    let mut guard = LOCK.lock(cx);
    wait_async(cx);
    *guard += 1;
}
fn main() {}
