//@ E0382
use groups::{Limits, Tree};
use reject_groups::Held;
fn main() {
    let tree: Tree<Held> = Tree::new();
    let budget = tree.root().child(Limits::bound(10)).unwrap();
    budget.end();
    budget.end();
}
