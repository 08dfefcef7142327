use context::*;

macro_rules! function {
    ($name:ident) => {
        fn $name(cx: &mut Cx) { //~ async_never_suspends
            let _ = cx;
        }
    };
}

function!(first_async);
function!(second_async);
