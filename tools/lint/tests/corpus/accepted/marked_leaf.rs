use context::*;

#[cfg_attr(false, ebb_lint::leaf)]
fn switch_async(cx: &mut Cx) {
    let _ = cx;
}

struct Stack;

impl Stack {
    /// Switches.
    #[inline]
    #[cfg_attr(false, ebb_lint::leaf)]
    pub(crate) fn leave_async(&self, cx: &mut Cx) {
        let _ = cx;
    }
}

fn caller_async(cx: &mut Cx) {
    Stack.leave_async(cx);
    switch_async(cx);
}
