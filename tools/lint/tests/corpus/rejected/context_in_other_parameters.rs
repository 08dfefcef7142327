use context::*;

fn optional(cx: Option<&mut Cx>) { //~ cx_without_suffix
    let _ = cx;
}

fn pair((cx, _): (&mut Cx, u8)) { //~ cx_without_suffix
    let _ = cx;
}

fn named<'a>(first: u8, cx: &'a mut Cx) -> &'a Cx { //~ cx_without_suffix
    let _ = first;
    cx
}
