use context::*;

fn one_async(cx: &mut Cx) {
    park_async(cx);
}

#[cfg_attr(false, ebb_lint::table)]
static TABLE: [(u8, fn(&mut Cx)); 2] = [(1, one_async), (2, park_async)];

#[cfg_attr(false, ebb_lint::table)]
pub const FIRST: &[fn(&mut Cx)] = &[one_async, one_async];

fn dispatch_async(cx: &mut Cx, number: usize) {
    if let Some((_, call)) = TABLE.get(number) {
        call(cx);
    }
}
