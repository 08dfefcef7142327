use std::cell::RefCell;
use std::fmt;

use context::*;

struct Shown(RefCell<Cx>);

impl fmt::Display for Shown {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", Disk.read_async(&mut self.0.borrow_mut())) //~ call_outside_async
    }
}
