use context::*;

fn caller() {
    start(|cx| {
        let mut again = || park_async(cx); //~ call_outside_async
        again();
    });
}
