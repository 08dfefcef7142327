use context::*;

fn address() -> usize {
    park_async as fn(&mut Cx) as usize //~ async_as_value
}
