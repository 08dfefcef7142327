use context::*;

fn caller_async(cx: &mut Cx) {
    park_async(cx);
}

pub fn read_async(cx: &mut Cx, file: &dyn File) -> usize {
    caller_async(cx);
    file.read_async(cx)
}
