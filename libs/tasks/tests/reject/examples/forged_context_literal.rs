//@ E0451
pub fn forge(other: refs::Cx) -> refs::Cx {
    refs::Cx { worker: core::ptr::null(), ..other }
}
fn main() {}
