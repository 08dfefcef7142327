//@ E0521
fn main() {}
fn f(cx: &mut refs::Cx) {
    let mut escaped = None;
    tasks::rt::finish_async(cx, |scope, _| escaped = Some(scope));
}
