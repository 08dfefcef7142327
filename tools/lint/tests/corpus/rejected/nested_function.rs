use context::*;

fn outer_async(cx: &mut Cx) {
    fn inner(cx: &mut Cx) { //~ cx_without_suffix
        park_async(cx); //~ call_outside_async
    }
    inner(cx);
    park_async(cx);
}
