use context::*;

fn job<'a>(cx: &'a mut Cx) -> impl FnMut() + 'a { //~ cx_without_suffix
    move || park_async(cx) //~ call_outside_async
}
