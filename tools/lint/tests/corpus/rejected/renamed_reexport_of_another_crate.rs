use other::{Cx, wait};

fn caller(cx: &mut Cx) { //~ cx_without_suffix
    wait(cx); //~ call_outside_async
}
