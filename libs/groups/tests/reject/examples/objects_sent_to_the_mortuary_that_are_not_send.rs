//@ E0277
use groups::{Contents, Group, Limits, Scrub, Tree};
use reject_groups::Held;
struct Local(std::rc::Rc<u64>);
impl Contents for Local {
    fn scrub(&mut self, _: &mut Scrub) {}
}
fn main() {
    let tree = Tree::new();
    let group = Group::new(tree.root(), Limits::bound(1_000), Held::Base, |_| Local(std::rc::Rc::new(7)));
    assert!(group.is_ok());
}
