use context::*;

fn caller<F: File>(cx: &mut Cx, file: F) -> usize { //~ cx_without_suffix
    <F as File>::read_async(&file, cx) //~ call_outside_async
}
