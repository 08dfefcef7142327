use context::*;

fn caller(cx: &mut Cx) { //~ cx_without_suffix
    park_async(cx); //~ call_outside_async
}
