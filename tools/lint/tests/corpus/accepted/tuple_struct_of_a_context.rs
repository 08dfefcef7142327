use context::*;

struct Guard<'a>(&'a mut Cx);

enum Either<'a> {
    One(&'a mut Cx),
    Two(u8, &'a mut Cx),
}

fn hold_async(cx: &mut Cx) {
    let guard = Guard(cx);
    park_async(guard.0);
}
