use context::*;

#[cfg_attr(false, ebb_lint::leaf)]
extern "C" fn switch_async(cx: &mut Cx) {
    let _ = cx;
}

extern "C" fn caller_async(cx: &mut Cx) {
    switch_async(cx);
}
