use context::*;

fn caller_async(cx: &mut Cx) {
    let wait = park_async; //~ async_as_value
    park_async(cx);
    let _ = wait;
}
