//@ E0502
//! A borrowed object is alive when the task yields to the others of its thread.
fn main() {}
fn f(cx: &mut refs::Cx) {
    let file = reject::FILES.get(3, cx).unwrap();
    tasks::rt::yield_async(cx);
    println!("{}", file.offset);
}
