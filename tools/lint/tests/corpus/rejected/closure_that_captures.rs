use context::*;

fn caller_async(cx: &mut Cx, disk: Option<Disk>) -> Option<usize> {
    park_async(cx);
    disk.map(|disk| disk.read_async(cx)) //~ call_outside_async
}
