//@ E0308
use reject::wait_async;
pub fn read(cx: &refs::Cx) {
    wait_async(cx);
}
fn main() {}
