use context::*;

struct Table<const N: usize>;

impl<const N: usize> Table<N> {
    const JOBS: [fn(&mut Cx); N] = [park_async; N]; //~ async_as_value
}
