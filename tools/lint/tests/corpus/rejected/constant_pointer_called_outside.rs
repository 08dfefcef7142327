use context::*;

#[cfg_attr(false, ebb_lint::table)]
const JOB: fn(&mut Cx) = park_async;

fn run(cx: &mut Cx) { //~ cx_without_suffix
    JOB(cx); //~ call_outside_async
}
