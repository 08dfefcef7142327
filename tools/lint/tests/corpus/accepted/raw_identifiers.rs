use context::*;

fn r#async(flag: bool) -> bool {
    flag
}

fn r#type_async(cx: &mut Cx) {
    park_async(cx);
}

fn caller_async(cx: &mut Cx) {
    if r#async(true) {
        r#type_async(cx);
    }
}
