use context::*;

fn choose(twice: bool) -> fn(&mut Cx) {
    match twice {
        true => other::twice_async, //~ async_as_value
        false => park_async, //~ async_as_value
    }
}
