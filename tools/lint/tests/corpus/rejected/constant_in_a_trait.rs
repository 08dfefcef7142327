use context::*;

trait Driver {
    const RUN: fn(&mut Cx);
}

impl Driver for Disk {
    const RUN: fn(&mut Cx) = park_async; //~ async_as_value
}
