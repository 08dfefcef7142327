use context::*;

fn complete_async<T>(cx: &mut Cx, mut step: impl FnMut(&Cx) -> Option<T>) -> T {
    loop {
        if let Some(value) = step(cx) {
            return value;
        }
        park_async(cx);
    }
}

fn caller_async(cx: &mut Cx) -> u8 {
    let mut left = 3;
    complete_async(cx, |_| {
        left -= 1;
        (left == 0).then_some(left)
    })
}
