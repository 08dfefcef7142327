//@ E0308
use reject::{FILES, File};
pub fn revive(dying: refs::Dying<File>, cx: &refs::Cx) {
    FILES.insert(3, dying, cx);
}
fn main() {}
