use context::*;

macro_rules! wait_twice {
    ($cx:expr) => {{
        park_async($cx);
        context::park!($cx);
    }};
}

macro_rules! function {
    ($name:ident, $body:expr) => {
        fn $name(cx: &mut Cx) {
            let run = $body;
            park_async(cx);
            let _ = run;
        }
    };
}

function!(made_async, 3);

fn caller_async(cx: &mut Cx) {
    wait_twice!(cx);
}
