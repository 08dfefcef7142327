//@ E0277
use reject::FILES;
pub fn send(cx: &refs::Cx) {
    let file = FILES.get(3, cx).unwrap();
    std::thread::scope(|scope| {
        scope.spawn(move || println!("{}", file.offset));
    });
}
fn main() {}
