use context::*;

struct Worker(Cx);

#[cfg_attr(false, ebb_lint::root)]
impl Worker {
    fn dispatch(&mut self) {
        park_async(&mut self.0);
        let mut again = || park_async(&mut self.0);
        again();
    }
}
