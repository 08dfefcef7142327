//@ E0277
use reject::File;
pub fn send(realm: &refs::Realm) {
    let owner = refs::StrongRc::new_in(File { offset: 1 }, realm);
    std::thread::spawn(move || drop(owner));
}
fn main() {}
