use context::*;

fn caller(cx: &mut Cx) { //~ cx_without_suffix
    let park = 1;
    {
        use context::park_async as park;
        park(cx); //~ call_outside_async
    }
    let _ = park;
}
