use context::*;

/// ```
/// fn caller(cx: &mut context::Cx) {
///     context::park_async(cx);
/// }
/// ```
fn documented_async(cx: &mut Cx) {
    park_async(cx);
}
