//@ E0277
pub fn group(group: &refs::Group) {
    let _ = refs::StrongRc::new_in(std::rc::Rc::new(1), group);
}
fn main() {}
