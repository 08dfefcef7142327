use context::*;

trait Job {
    fn run(&self, cx: &mut Cx); //~ cx_without_suffix
}

impl Job for Disk {
    fn run(&self, cx: &mut Cx) { //~ cx_without_suffix
        self.flush_async(cx); //~ call_outside_async
    }
}
