//@ E0080
fn main() {
    let pool = groups::Chunks::new(1);
    let mut arena = groups::Arena::new(&pool);
    arena.insert(String::from("owns memory")).unwrap();
}
