//@ E0624
use refs::Mode;
pub fn give_links_back_twice<M: Mode>() {
    let _take = M::take_link;
    let _give = M::give_link;
}
fn main() {}
