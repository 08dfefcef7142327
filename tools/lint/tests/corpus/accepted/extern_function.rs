use context::*;

unsafe extern "C" {
    fn switch_async(cx: &mut Cx);
}

extern "C" fn caller_async(cx: &mut Cx) {
    // SAFETY: never run.
    unsafe { switch_async(cx) }
}
