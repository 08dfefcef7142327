use context::*;

#[cfg_attr(false, ebb_lint::leaf)]
fn caller(cx: &mut Cx) { //~ cx_without_suffix
    park_async(cx); //~ call_outside_async
}

#[cfg_attr(false, ebb_lint::never_suspends)]
fn proof(cx: &mut Cx) {
    park_async(cx); //~ call_outside_async
}
