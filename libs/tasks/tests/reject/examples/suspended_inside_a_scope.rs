//@ E0308
use reject::wait_async;
pub fn wait(scope: &refs::dynamic::Scope) {
    scope.with(|cx| wait_async(cx));
}
fn main() {}
