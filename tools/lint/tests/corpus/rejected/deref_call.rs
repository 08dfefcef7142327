use std::rc::Rc;

use context::*;

fn caller(cx: &mut Cx, disk: Rc<Box<Disk>>) { //~ cx_without_suffix
    disk.flush_async(cx); //~ call_outside_async
}
