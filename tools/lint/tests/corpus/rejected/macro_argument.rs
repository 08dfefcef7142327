use context::*;

macro_rules! twice {
    ($e:expr) => {
        let _ = ($e, $e);
    };
}

fn caller(cx: &mut Cx) { //~ cx_without_suffix
    twice!(park_async(cx)); //~ call_outside_async
}
