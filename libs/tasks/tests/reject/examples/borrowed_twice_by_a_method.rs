//@ E0502
use reject::{FILES, wait_async};
struct Reader;
trait ReadAsync { fn read_async(&self, cx: &mut refs::Cx); }
impl ReadAsync for reject::File { fn read_async(&self, cx: &mut refs::Cx) { wait_async(cx) } }
pub fn read_async(cx: &mut refs::Cx) {
    let _ = Reader;
    FILES.get(3, cx).unwrap().read_async(cx);
}
fn main() {}
