use context::*;

fn caller_async(cx: &mut Cx) -> fn(&mut Cx) { //~ async_never_suspends
    let _ = cx;
    park_async //~ async_as_value
}
