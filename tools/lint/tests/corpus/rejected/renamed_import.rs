use context::Cx;
use context::park_async as sleep;

fn caller(cx: &mut Cx) { //~ cx_without_suffix
    sleep(cx); //~ call_outside_async
}
