use context::*;

#[cfg(test)]
mod tests {
    fn caller(cx: &mut super::Cx) {
        super::park_async(cx);
    }
}
