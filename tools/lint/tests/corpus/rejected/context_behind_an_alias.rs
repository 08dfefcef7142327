use context::*;

type Right<'a> = &'a mut Cx;

fn look(cx: Right<'_>) { //~ cx_without_suffix
    let _ = cx;
}
