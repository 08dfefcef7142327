use context::*;

struct Guard<'a>(&'a mut Cx);

impl Drop for Guard<'_> {
    fn drop(&mut self) {
        park_async(self.0); //~ call_outside_async
    }
}
