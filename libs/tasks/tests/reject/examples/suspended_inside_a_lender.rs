//@ E0308
use reject::wait_async;
pub fn wait(lender: &refs::dynamic::Lender) {
    lender.with(|cx| wait_async(cx));
}
fn main() {}
