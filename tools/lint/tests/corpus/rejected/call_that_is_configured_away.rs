use context::*;

fn caller_async(cx: &mut Cx) { //~ async_never_suspends
    #[cfg(target_os = "none")]
    park_async(cx);
    let _ = cx;
}
