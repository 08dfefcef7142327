//@ E0499
fn main() {}
fn f(turn: &mut tasks::rt::sync::Turn<'_>, cx: &mut refs::Cx) {
    tasks::rt::finish_async(cx, |scope, cx| {
        scope.spawn_async(cx, |cx| turn.await_async(cx));
        scope.spawn_async(cx, |cx| turn.await_async(cx));
    });
}
