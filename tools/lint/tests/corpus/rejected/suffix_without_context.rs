use context::*;

fn caller_async() { //~ async_never_suspends suffix_without_cx
    start(|cx| park_async(cx));
}

struct Task {
    cx: Cx,
}

impl Task {
    fn run_async(&mut self) { //~ suffix_without_cx
        park_async(&mut self.cx);
    }
}
