use context::*;

extern "C" fn switch_async(cx: &mut Cx) {
    park_async(cx);
}

extern "C" fn caller(cx: &mut Cx) { //~ cx_without_suffix
    switch_async(cx); //~ call_outside_async
}

fn pointer() -> extern "C" fn(&mut Cx) {
    switch_async //~ async_as_value
}
