//@ E0502
fn main() {}
fn f(cx: &mut refs::Cx) {
    tasks::rt::finish_async(cx, |scope, cx| {
        let file = reject::FILES.get(3, cx).unwrap();
        scope.spawn_async(cx, |_| ());
        println!("{}", file.offset);
    });
}
