//@ E0499
use reject_groups::Held;
fn main() {
    let tree = groups::Tree::new();
    let mut stock = groups::Stock::new(tree.root(), 8);
    std::thread::scope(|scope| {
        scope.spawn(|| stock.charge(Held::Link, 1).map(drop));
        scope.spawn(|| stock.charge(Held::Link, 1).map(drop));
    });
}
