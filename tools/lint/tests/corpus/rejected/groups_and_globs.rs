mod inner {
    pub use context::*;
    pub mod most {
        pub use context::{File as Readable, park_async as p, *};
    }
}
use inner::most::{Cx as Context, Readable, p, {Disk as D}};

fn caller(cx: &mut Context, disk: &D) -> usize { //~ cx_without_suffix
    p(cx); //~ call_outside_async
    disk.read_async(cx) //~ call_outside_async
}
