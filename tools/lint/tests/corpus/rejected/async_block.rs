use context::*;

fn future(mut cx: Cx) -> impl Future<Output = ()> {
    async move {
        park_async(&mut cx); //~ call_outside_async
    }
}
