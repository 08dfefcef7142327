use context::*;

trait Job {
    fn prepare_async(&mut self, _cx: &mut Cx) {} //~ async_never_suspends
}
