//@ E0133
pub fn forge() -> refs::Cx {
    refs::Cx::new(core::ptr::null())
}
fn main() {}
