//@ accepted
use reject::{FILES, LOCK, wait_async};
pub fn read_async(cx: &mut refs::Cx) -> Result<u64, refs::Gone> {
    let weak = {
        let file = FILES.get(3, cx).unwrap();
        *LOCK.lock(cx) += file.offset;
        file.downgrade()
    };
    wait_async(cx);
    let file = weak.upgrade(cx)?;
    Ok(file.offset)
}
fn main() {}
