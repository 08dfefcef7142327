//@ E0502
use refs::StableRc;
use reject::wait_async;
pub fn read_async(stable: StableRc<u64>, cx: &mut refs::Cx) -> u64 {
    let value = stable.upgrade(cx).unwrap();
    wait_async(cx);
    *value
}
fn main() {}
