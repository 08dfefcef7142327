//@ E0502
fn main() {
    let pool = groups::Chunks::new(1);
    let mut arena = groups::Arena::new(&pool);
    let name = arena.insert(7).unwrap();
    let entry = arena.get(name);
    arena.scrub(&mut groups::Scrub::default());
    assert_eq!(entry, Some(&7));
}
