//@ E0133
fn main() {
    reject_kernel::boot(|_| drop(refs::reclaim::Core::register()));
}
