use context::*;

fn one_async(cx: &mut Cx) {
    park_async(cx);
}

static TABLE: [(u8, fn(&mut Cx)); 2] = [
    (1, one_async), //~ async_as_value
    (2, park_async), //~ async_as_value
];
