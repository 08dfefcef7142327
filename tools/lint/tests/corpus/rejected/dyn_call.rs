use context::*;

fn caller(cx: &mut Cx, file: &dyn File) -> usize { //~ cx_without_suffix
    file.read_async(cx) //~ call_outside_async
}
