//@ E0432
use refs::dynamic::Lender;

fn main() {
    reject_kernel::boot(|_| drop(Lender::new()));
}
