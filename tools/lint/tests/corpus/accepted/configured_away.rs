use context::*;

#[cfg(target_os = "none")]
fn caller(cx: &mut Cx) {
    park_async(cx);
}

fn works_async(cx: &mut Cx) {
    if cfg!(target_os = "none") {
        return;
    }
    park_async(cx);
}
