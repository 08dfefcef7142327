use context::*;

fn job() -> impl Fn(&mut Cx) {
    |cx| park_async(cx)
}

fn run_async(cx: &mut Cx) {
    let job = job();
    job(cx);
}

fn numbers_async(cx: &mut Cx) -> impl Iterator<Item = u8> {
    park_async(cx);
    (0..3).map(|n| n + 1)
}
