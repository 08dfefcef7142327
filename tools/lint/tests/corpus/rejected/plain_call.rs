use context::*;

fn caller() {
    start(|cx| park_async(cx));
    let mut cx: Option<&mut Cx> = None;
    if let Some(cx) = cx.as_mut() {
        park_async(cx); //~ call_outside_async
    }
}
