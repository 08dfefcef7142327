use context::*;

const fn size(n: usize) -> usize {
    const STEP: usize = 4;
    n * STEP
}

static BUFFER: [u8; size(3)] = [0; size(3)];

fn caller_async(cx: &mut Cx) -> usize {
    const LOCAL: usize = size(2);
    park_async(cx);
    LOCAL + BUFFER.len()
}
