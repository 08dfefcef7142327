use context::*;

fn caller_async(cx: &mut Cx) {
    let wait: fn(&mut Cx) = park_async; //~ async_as_value
    wait(cx);
}
