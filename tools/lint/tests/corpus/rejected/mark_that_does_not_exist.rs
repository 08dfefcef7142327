use context::*;

#[cfg_attr(false, ebb_lint::leef)] //~ unknown_mark
fn caller_async(cx: &mut Cx) { //~ async_never_suspends
    let _ = cx;
}
