//@ E0382
use reject_groups::Held;
fn main() {
    let tree = groups::Tree::new();
    let mut stock = groups::Stock::new(tree.root(), 8);
    let charge = stock.charge(Held::Link, 1).unwrap();
    stock.give_back(charge);
    assert_eq!(charge.count(), 1);
}
