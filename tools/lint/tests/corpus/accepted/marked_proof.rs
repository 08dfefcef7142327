use context::*;

struct Owner(Vec<u8>);

impl Owner {
    #[cfg_attr(false, ebb_lint::never_suspends)]
    fn destroy(self, _cx: &mut Cx) {}
}

fn caller_async(cx: &mut Cx) {
    Owner(Vec::new()).destroy(cx);
    park_async(cx);
}
