//@ E0521
use reject::{FILES, File};
use std::cell::RefCell;
thread_local! { static KEPT: RefCell<Option<refs::TempRc<'static, File>>> = const { RefCell::new(None) }; }
pub fn keep(cx: &refs::Cx) {
    let file = FILES.get(3, cx);
    KEPT.with(|kept| *kept.borrow_mut() = file);
}
fn main() {}
