//@ E0277
use reject::LOCK;
pub fn send(cx: &refs::Cx) {
    let mut guard = LOCK.lock(cx);
    std::thread::scope(|scope| {
        scope.spawn(move || *guard += 1);
    });
}
fn main() {}
