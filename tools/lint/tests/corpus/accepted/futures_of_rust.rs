use std::pin::Pin;

use context::*;

async fn load_async(n: u8) -> u8 {
    n + fetch_async().await
}

fn start_async() -> impl Future<Output = u8> {
    load_async(1)
}

fn boxed_async(n: u8) -> Pin<Box<dyn Future<Output = u8> + Send>> {
    Box::pin(load_async(n))
}

trait Service {
    async fn call_async(&self) -> u8;
    fn later_async(&self) -> impl Future<Output = u8>;
}

impl Service for Disk {
    async fn call_async(&self) -> u8 {
        fetch_async().await
    }
    fn later_async(&self) -> impl Future<Output = u8> {
        fetch_async()
    }
}

async fn generic<S: Service>(service: &S) -> u8 {
    let functions = [load_async];
    service.call_async().await + service.later_async().await + functions[0](1).await + boxed_async(2).await
}
