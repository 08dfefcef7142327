use context::*;

#[cfg_attr(false, ebb_lint::table)]
static FIRST: fn(&mut Cx) = park_async;
static SECOND: fn(&mut Cx) = park_async; //~ async_as_value
