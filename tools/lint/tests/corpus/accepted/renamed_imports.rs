mod inner {
    pub use context::park_async as sleep;
    pub use context::{Cx, File as Readable};
}
use inner::{Cx as Context, Readable as _, sleep as nap};
use other::deep::deeper::Disk as D;

fn caller_async(cx: &mut Context) -> usize {
    nap(cx);
    D.read_async(cx)
}
