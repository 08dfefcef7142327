//@ E0433
fn main() {
    reject_kernel::boot(|cx| tasks::rt::yield_async(cx));
}
