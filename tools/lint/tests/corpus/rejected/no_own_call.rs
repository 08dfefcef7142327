use context::*;

fn caller_async(cx: &mut Cx) -> u8 { //~ async_never_suspends
    let _ = cx;
    1
}
