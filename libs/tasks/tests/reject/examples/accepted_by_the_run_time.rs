//@ accepted
fn main() {}
pub fn f(cx: &mut refs::Cx) {
    let outside = 7;
    tasks::rt::finish_async(cx, |scope, cx| {
        let weak = reject::FILES.get(3, cx).unwrap().downgrade();
        scope.spawn_async(cx, |_| println!("{outside}"));
        tasks::rt::yield_async(cx);
        println!("{}", weak.upgrade(cx).unwrap().offset);
    });
}
