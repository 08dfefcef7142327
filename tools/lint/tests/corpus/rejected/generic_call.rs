use context::*;

fn caller<F: File>(cx: &mut Cx, file: F) -> usize { //~ cx_without_suffix
    file.read_async(cx) //~ call_outside_async
}
