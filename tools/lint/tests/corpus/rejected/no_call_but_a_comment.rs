use context::*;

/// Calls `park_async(cx)`, it says.
fn caller_async(cx: &mut Cx) -> &'static str { //~ async_never_suspends
    // park_async(cx);
    let _ = cx;
    "park_async(cx) -> [return: bb1]"
}
