//@ E0502
use reject::wait_async;
pub fn write_async(cell: &refs::Versioned<u64>, cx: &mut refs::Cx) {
    let mut value = cell.write(cx);
    wait_async(cx);
    *value += 1;
}
fn main() {}
