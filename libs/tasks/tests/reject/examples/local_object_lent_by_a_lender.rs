//@ E0277
use refs::dynamic::{Here, Lender};
use refs::{Cx, Local, StrongRc};
pub fn read_what_is_freed(lender: &Lender, owner: StrongRc<Vec<u8>, Local>, cx: &mut Cx) -> u8 {
    lender.with(|here| {
        let borrowed = owner.get(here);
        owner.destroy(cx);
        borrowed[0]
    })
}
pub fn borrow<'a>(owner: &StrongRc<Vec<u8>, Local>, here: &'a Here) -> &'a Vec<u8> {
    owner.get(here).into_ref()
}
fn main() {}
