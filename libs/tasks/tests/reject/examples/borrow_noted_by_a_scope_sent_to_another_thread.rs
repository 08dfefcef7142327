//@ E0277
use refs::dynamic::{Scope, TempRc};
use reject::File;
pub fn send(scope: &Scope, name: refs::WeakRc<File>) {
    let file: TempRc<File> = scope.upgrade(&name).unwrap();
    std::thread::scope(|threads| {
        threads.spawn(move || file.offset);
    });
}
fn main() {}
