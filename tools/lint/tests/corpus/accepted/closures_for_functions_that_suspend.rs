use context::*;

fn each_async(cx: &mut Cx, mut job: impl FnMut(&mut Cx, u8)) {
    for i in 0..3 {
        job(cx, i);
    }
}

fn caller_async(cx: &mut Cx) {
    each_async(cx, |cx, _| park_async(cx));
}

fn boxed_async(cx: &mut Cx, job: Box<dyn FnOnce(&mut Cx)>) {
    job(cx);
}

fn pointer_async(cx: &mut Cx, job: fn(&mut Cx)) {
    job(cx);
}
