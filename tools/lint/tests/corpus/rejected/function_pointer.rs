use context::*;

fn pointer() -> fn(&mut Cx) {
    park_async //~ async_as_value
}
