use context::*;

pub trait Job {
    fn step_async(&mut self, cx: &mut Cx);
    fn run_async(&mut self, cx: &mut Cx) {
        self.step_async(cx);
    }
}

impl Job for Disk {
    fn step_async(&mut self, cx: &mut Cx) {
        self.flush_async(cx);
    }
}

impl<J: Job + ?Sized> Job for Box<J> {
    fn step_async(&mut self, cx: &mut Cx) {
        J::run_async(self, cx);
    }
}
