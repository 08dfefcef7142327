//@ E0277
use reject::{LOCK, wait_async};
pub fn count(lender: &refs::dynamic::Lender, cx: &mut refs::Cx) {
    lender.with(|here| {
        let mut guard = LOCK.lock(here);
        wait_async(cx);
        *guard += 1;
    });
}
fn main() {}
