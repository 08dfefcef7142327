use context::*;

fn outer_async(cx: &mut Cx) { //~ async_never_suspends
    fn inner_async(cx: &mut Cx) {
        park_async(cx);
    }
    let _ = cx;
}
