//@ E0308
fn main() {
    let pool = groups::Chunks::new(2);
    let mut numbers = groups::Arena::<u64>::new(&pool);
    let texts = groups::Arena::<[u8; 8]>::new(&pool);
    let name = numbers.insert(7).unwrap();
    assert!(texts.get(name).is_none());
}
