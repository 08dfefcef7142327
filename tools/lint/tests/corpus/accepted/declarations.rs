use context::*;

type Right<'a> = &'a mut Cx;

pub trait Job {
    fn run_async(&mut self, cx: &mut Cx);
    fn look(&mut self, cx: &Cx, then: &mut dyn FnMut(&mut Cx), or: fn(&mut Cx));
    fn wait_async(&self, cx: Right<'_>) -> u8;
    async fn fetch_async(&self) -> u8;
    fn later_async(&self) -> impl Future<Output = ()> + Send;

    #[cfg_attr(false, ebb_lint::never_suspends)]
    fn destroy(self, cx: &mut Cx);

    #[cfg_attr(false, ebb_lint::unrelated)]
    fn is_async(&self) -> bool;
}

/// Implemented by contexts.
pub trait Suspend {
    fn park_async(&mut self);
}

#[cfg(test)]
mod tests {
    trait Trial {
        fn run(&self, cx: &mut context::Cx);
    }
}
