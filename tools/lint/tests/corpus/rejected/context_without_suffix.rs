use context::*;

fn look(cx: &mut Cx) { //~ cx_without_suffix
    let _ = cx;
}
