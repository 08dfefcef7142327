//@ E0599
use reject_groups::Held;
fn main() {
    let tree = groups::Tree::new();
    let charge = tree.root().charge(Held::Link, 1).unwrap();
    drop(charge.clone());
}
