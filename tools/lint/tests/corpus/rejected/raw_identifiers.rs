use context::*;

mod r#type {
    pub fn r#in_async(cx: &mut context::Cx) {
        context::park_async(cx);
    }
}

fn r#match(cx: &mut Cx) { //~ cx_without_suffix
    r#type::r#in_async(cx); //~ call_outside_async
}
