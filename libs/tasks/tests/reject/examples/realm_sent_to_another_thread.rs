//@ E0277
pub fn send(realm: refs::Realm) {
    std::thread::spawn(move || realm.len());
}
fn main() {}
