//@ E0277
use reject::File;
pub fn send(realm: &refs::Realm) {
    let name = refs::StrongRc::new_in(File { offset: 1 }, realm).downgrade();
    std::thread::spawn(move || name.is_gone());
}
fn main() {}
