//@ E0373
fn main() {}
fn f(cx: &mut refs::Cx) {
    tasks::rt::finish_async(cx, |scope, cx| {
        let gone_before_the_task = 7;
        scope.spawn_async(cx, |_| println!("{gone_before_the_task}"));
    });
}
