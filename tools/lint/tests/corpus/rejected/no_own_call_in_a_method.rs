use context::*;

struct Buffer(Vec<u8>);

impl Buffer {
    pub fn len_async(&self, _cx: &mut Cx) -> usize { //~ async_never_suspends
        self.0.len()
    }
}
