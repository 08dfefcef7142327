use context::*;

fn pointer<F: File>() -> fn(&F, &mut Cx) -> usize {
    F::read_async //~ async_as_value
}
