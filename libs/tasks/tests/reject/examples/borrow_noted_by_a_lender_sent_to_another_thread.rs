//@ E0277
use refs::dynamic::{Lender, NotedRc};
use reject::File;
pub fn send(lender: &Lender, name: refs::WeakRc<File>) {
    let file: NotedRc<File> = lender.upgrade(&name).unwrap();
    std::thread::scope(|threads| {
        threads.spawn(move || file.offset);
    });
}
fn main() {}
