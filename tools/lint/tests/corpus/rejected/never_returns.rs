use context::*;

fn forever(cx: &mut Cx) -> ! { //~ cx_without_suffix
    loop {
        park_async(cx); //~ call_outside_async
    }
}

fn caller(cx: &mut Cx) -> ! { //~ cx_without_suffix
    forever(cx)
}
