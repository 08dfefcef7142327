//@ E0277
pub fn two(cx: &refs::Cx) -> refs::Cx {
    refs::Cx::clone(cx)
}
fn main() {}
