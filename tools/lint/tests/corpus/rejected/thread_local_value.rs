use std::cell::Cell;

use context::*;

thread_local! {
    static JOB: Cell<fn(&mut Cx)> = const { Cell::new(park_async) }; //~ async_as_value
}
