use context::*;

fn look_async(cx: &Cx) -> &Cx { //~ async_never_suspends suffix_without_cx
    cx
}
