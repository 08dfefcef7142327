//@ E0505
use groups::Mortuary;
fn main() {
    let (tree, pool) = reject_groups::world();
    let mortuary = Mortuary::new();
    let mut group = reject_groups::group(tree.root(), &pool);
    let name = group.entries.insert(7).unwrap();
    let entry = group.entries.get(name);
    reject_groups::kill(group, &mortuary);
    assert_eq!(entry, Some(&7));
}
