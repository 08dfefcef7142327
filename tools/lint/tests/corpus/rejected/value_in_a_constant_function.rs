use context::*;

struct Operations {
    park: fn(&mut Cx),
}

const fn operations() -> Operations {
    Operations { park: park_async } //~ async_as_value
}
