use context::*;

fn caller() {
    start(|cx| park_async(cx));
    start(move |cx: &mut Cx| {
        Disk.flush_async(cx);
        other::twice_async(cx);
    });
}
