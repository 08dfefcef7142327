//@ E0277
pub fn send(cx: &mut refs::Cx) {
    std::thread::scope(|scope| {
        scope.spawn(move || tasks::yield_async(cx));
    });
}
fn main() {}
