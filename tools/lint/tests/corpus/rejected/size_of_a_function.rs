use context::*;

fn size() -> usize {
    size_of_val(&park_async) //~ async_as_value
}
