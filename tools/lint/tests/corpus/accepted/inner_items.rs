use context::*;

fn outer_async(cx: &mut Cx) {
    fn helper(n: u8) -> u8 {
        n
    }
    fn inner_async(cx: &mut Cx) {
        park_async(cx);
    }
    let _ = helper(1);
    inner_async(cx);
}
