//@ E0597
fn main() {
    let arena = {
        let pool = groups::Chunks::new(1);
        groups::Arena::<u64>::new(&pool)
    };
    assert!(arena.is_empty());
}
