//@ accepted
fn main() {
    reject_kernel::boot(|cx| tasks::yield_async(cx));
}
