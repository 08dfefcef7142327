use context::*;

unsafe extern "C" {
    fn switch_async(cx: &mut Cx);
}

extern "C" fn caller(cx: &mut Cx) { //~ cx_without_suffix
    // SAFETY: never run.
    unsafe { switch_async(cx) } //~ call_outside_async
}
