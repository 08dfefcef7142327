use context::*;

async fn real_async(cx: &mut Cx) {
    park_async(cx); //~ call_outside_async
    std::future::ready(()).await;
}
