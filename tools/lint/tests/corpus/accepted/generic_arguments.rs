use context::*;

fn read_async<F: File, const N: usize>(cx: &mut Cx, files: [F; N]) -> usize {
    let mut sum = 0;
    for file in &files {
        sum += F::read_async(file, cx);
    }
    sum
}

fn caller_async(cx: &mut Cx) -> usize {
    read_async::<Disk, 2>(cx, [Disk, Disk])
}
