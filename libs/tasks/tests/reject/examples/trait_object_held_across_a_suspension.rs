//@ E0502
use reject::wait_async;
pub trait Shape: Send + Sync { fn area(&self) -> u32; }
pub fn area_async(name: refs::WeakRc<dyn Shape>, cx: &mut refs::Cx) -> u32 {
    let shape = name.upgrade(cx).unwrap();
    wait_async(cx);
    shape.area()
}
fn main() {}
