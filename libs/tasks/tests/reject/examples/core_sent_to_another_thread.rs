//@ E0277
pub fn send() {
    let core = refs::reclaim::Core::register();
    std::thread::spawn(move || drop(core));
}
fn main() {}
