use context::*;

#[cfg_attr(false, ebb_lint::unrelated)]
fn is_async() -> bool {
    true
}

struct Mode;

impl Mode {
    #[cfg_attr(false, ebb_lint::unrelated)]
    fn set_async(&mut self) {}
}

fn caller() -> bool {
    let questions = [is_async];
    Mode.set_async();
    questions[0]() && is_async()
}
