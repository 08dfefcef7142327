use context::*;

struct Job {
    run: fn(&mut Cx),
    cx: Cx,
}

impl Job {
    fn go(&mut self) {
        (self.run)(&mut self.cx); //~ call_outside_async
    }
}
