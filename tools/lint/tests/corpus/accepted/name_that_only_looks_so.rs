use context::*;

fn look(cx: &Cx) -> usize {
    std::ptr::from_ref(cx) as usize
}

fn caller(cx: &Cx) -> usize {
    use self::look as look_async;
    let read_async = |cx: &Cx| look_async(cx);
    read_async(cx)
}

struct Flags {
    is_async: bool,
}

fn asynchronous(flags: &Flags) -> bool {
    flags.is_async
}

mod park_async {
    pub fn inside() {}
}

fn other() {
    park_async::inside();
}
