use context::*;

fn caller() {
    start(park_async); //~ async_as_value
}
