//@ E0277
pub fn send(core: refs::reclaim::Core) {
    std::thread::spawn(move || drop(core));
}
fn main() {}
