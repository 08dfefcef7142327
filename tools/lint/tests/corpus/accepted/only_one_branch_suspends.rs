use context::*;

fn caller_async(cx: &mut Cx, files: &[Box<dyn File>], wait: bool) -> Option<usize> {
    if !wait {
        return None;
    }
    let file = files.first()?;
    Some(match file.read_async(cx) {
        0 => return None,
        n => n,
    })
}
