use context::*;

struct Guard(u8);

impl Drop for Guard {
    fn drop(&mut self) {
        self.0 = 0;
    }
}

fn caller_async(cx: &mut Cx) {
    let guard = Guard(1);
    park_async(cx);
    drop(guard);
}
