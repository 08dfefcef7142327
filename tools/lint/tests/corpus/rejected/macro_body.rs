use context::*;

macro_rules! wait {
    ($cx:expr) => {
        park_async($cx) //~ call_outside_async
    };
}

fn caller(cx: &mut Cx) { //~ cx_without_suffix
    wait!(cx);
}
