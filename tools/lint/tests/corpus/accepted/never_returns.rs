use context::*;

fn forever_async(cx: &mut Cx) -> ! {
    loop {
        park_async(cx);
    }
}

fn caller_async(cx: &mut Cx) -> ! {
    forever_async(cx)
}
