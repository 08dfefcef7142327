use context::*;

trait Job {
    fn step_async(&self, cx: &mut Cx);
    fn run(&self, cx: &mut Cx) { //~ cx_without_suffix
        self.step_async(cx); //~ call_outside_async
    }
}
