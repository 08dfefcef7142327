use context::*;

fn make() {
    let closure = async |cx: &mut Cx| park_async(cx); //~ call_outside_async
    let _ = closure;
}
