//! Types and paths as the compiler writes them in MIR: `for<'a> fn(&'a mut refs::Cx) -> u8 {tasks::park_async}`.
//!
//! Nothing here knows what a name means. Text that does not fit gives `None` or `false`, never a panic: it comes from a compiler
//! that promises nothing about it.

/// The type of a function or of a function pointer, taken apart.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Signature {
    /// The types of the parameters, `self` included.
    pub params: Vec<String>,
    /// The return type; `()` where none is written.
    pub returns: String,
    /// Which function it is; `None` for a pointer, which may be any.
    pub path: Option<String>,
}

impl Signature {
    /// Reads `fn(..) -> ..` with whatever stands before it (`for<'a>`, `unsafe`, `extern "C"`) and `{path}` after it.
    pub fn parse(text: &str) -> Option<Signature> {
        let mut rest = text.trim();
        if rest.starts_with("for<") {
            let end = closing(rest, 3)?;
            rest = rest.get(end + 1..)?.trim_start();
        }
        rest = rest.strip_prefix("unsafe ").unwrap_or(rest);
        if let Some(after) = rest.strip_prefix("extern \"") {
            rest = after.split_once("\" ")?.1;
        }
        let parameters = rest.strip_prefix("fn")?;
        let end = closing(parameters, 0)?;
        let params = parameters.get(1..end).filter(|_| parameters.starts_with('('))?;
        let params = split_at_commas(params).into_iter().map(str::to_owned).collect();
        let rest = parameters.get(end + 1..)?.trim();
        let (returns, path) = match last_braces(rest) {
            // In `fn() -> {closure@...}` the braces are what is returned.
            Some(open) if !rest.get(..open)?.trim_end().ends_with("->") => {
                (rest.get(..open)?, rest.get(open + 1..rest.len() - 1).map(str::to_owned))
            }
            _ => (rest, None),
        };
        let returns = returns.trim().strip_prefix("->").map_or("()", str::trim).to_owned();
        Some(Signature { params, returns, path })
    }
}

/// Whether a value of this type brings the right to suspend: it is or contains `&mut Cx`. A function that takes one does not.
pub fn takes_context(ty: &str, contexts: &[String]) -> bool {
    let mut at = 0;
    while let Some(byte) = ty.as_bytes().get(at) {
        match byte {
            b'(' | b'<' if is_callable(ty.get(..at).unwrap_or("")) => at = closing(ty, at).unwrap_or(ty.len()),
            b'&' if ty.get(at + 1..).is_some_and(|after| is_mutable_context(after, contexts)) => return true,
            _ => {}
        }
        at += 1;
    }
    false
}

fn is_callable(before: &str) -> bool {
    let name = before.rsplit(|c: char| !c.is_alphanumeric() && c != '_').next().unwrap_or("");
    matches!(name, "fn" | "Fn" | "FnMut" | "FnOnce")
}

/// `after` is what follows a `&`.
fn is_mutable_context(after: &str, contexts: &[String]) -> bool {
    let after = match after.strip_prefix('\'') {
        Some(lifetime) => lifetime.split_once(' ').map_or("", |(_, rest)| rest),
        None => after,
    };
    let Some(path) = after.strip_prefix("mut ") else { return false };
    let end = path.find(|c: char| !c.is_alphanumeric() && c != '_' && c != ':').unwrap_or(path.len());
    let path = path[..end].trim_end_matches(':');
    let name = path.rsplit("::").next().unwrap_or("");
    contexts.iter().any(|context| context == name)
}

/// Whether a function with this return type is one of Rust's own: what it starts is suspended by `.await`, not by the call.
pub fn is_future(returns: &str) -> bool {
    let mut ty = returns;
    for wrapper in ["std::pin::Pin<", "core::pin::Pin<", "std::boxed::Box<", "alloc::boxed::Box<", "Pin<", "Box<"] {
        ty = ty.strip_prefix(wrapper).unwrap_or(ty);
    }
    // `(dyn Future + Send)`
    ty = ty.strip_prefix('(').unwrap_or(ty);
    let opaque = ty.strip_prefix("impl ").or_else(|| ty.strip_prefix("dyn ")).unwrap_or("");
    let opaque = opaque.split('<').next().unwrap_or("");
    ty.starts_with("{async ") || ty.starts_with("{coroutine") || opaque.rsplit("::").next() == Some("Future")
}

/// The name at the end of a path, without generic arguments: `m_async` of `<inner::S<X> as T>::m_async::<u8>`.
pub fn last_segment(path: &str) -> &str {
    let path = without_trailing_generics(path);
    path.rsplit("::").next().unwrap_or(path)
}

/// A path's names alone: `T::m_async` of `<inner::S<X> as T>::m_async::<u8>`; blocks of `impl` have none.
pub fn plain_path(path: &str) -> Vec<String> {
    let mut names = Vec::new();
    let mut rest = path;
    if rest.starts_with('<')
        && let Some(end) = closing(rest, 0)
    {
        let inner = &rest[1..end];
        let named = match inner.rfind(" as ") {
            Some(at) => &inner[at + 4..],
            None => inner,
        };
        if !inner.starts_with("impl at ") && named.len() < path.len() {
            names.extend(plain_path(named));
        }
        rest = &rest[end + 1..];
    }
    let mut name = String::new();
    let mut at = 0;
    while let Some(c) = rest.get(at..).and_then(|text| text.chars().next()) {
        if c == '<' {
            at = closing(rest, at).map_or(rest.len(), |end| end + 1);
            continue;
        }
        if c == ':' {
            names.extend((!name.is_empty()).then(|| std::mem::take(&mut name)));
        } else {
            name.push(c);
        }
        at += c.len_utf8();
    }
    names.extend((!name.is_empty()).then_some(name));
    names
}

fn without_trailing_generics(path: &str) -> &str {
    if !path.ends_with('>') {
        return path;
    }
    let mut open = None;
    let mut at = 0;
    while let Some(next) = path.get(at..).and_then(|rest| rest.find('<')) {
        let start = at + next;
        let Some(end) = closing(path, start) else { return path };
        if end + 1 == path.len() {
            open = Some(start);
            break;
        }
        at = end + 1;
    }
    open.and_then(|open| path.get(..open)).map_or(path, |path| path.trim_end_matches("::"))
}

/// Splits at the commas that stand in no brackets.
pub fn split_at_commas(text: &str) -> Vec<&str> {
    let mut parts = Vec::new();
    let mut start = 0;
    let mut at = 0;
    while let Some(byte) = text.as_bytes().get(at) {
        match byte {
            b'(' | b'[' | b'{' | b'<' => at = closing(text, at).unwrap_or(text.len()),
            b',' => {
                parts.push(text[start..at].trim());
                start = at + 1;
            }
            _ => {}
        }
        at += 1;
    }
    let last = text.get(start..).unwrap_or("").trim();
    parts.extend((!last.is_empty()).then_some(last));
    parts
}

/// Where the bracket that opens at `open` closes.
pub fn closing(text: &str, open: usize) -> Option<usize> {
    let bytes = text.as_bytes();
    let mut depth = 0usize;
    let mut at = open;
    while let Some(&byte) = bytes.get(at) {
        match byte {
            b'(' | b'[' | b'{' | b'<' => depth += 1,
            b'>' if at > 0 && matches!(bytes[at - 1], b'-' | b'=') => {}
            b')' | b']' | b'}' | b'>' => {
                depth = depth.checked_sub(1)?;
                if depth == 0 {
                    return Some(at);
                }
            }
            _ if depth == 0 => return None,
            _ => {}
        }
        at += 1;
    }
    None
}

/// Where the braces open that end the text, if braces end it.
fn last_braces(text: &str) -> Option<usize> {
    let mut at = 0;
    while let Some(byte) = text.as_bytes().get(at) {
        if matches!(byte, b'(' | b'[' | b'{' | b'<') {
            let end = closing(text, at)?;
            if *byte == b'{' && end + 1 == text.len() {
                return Some(at);
            }
            at = end;
        }
        at += 1;
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    fn contexts() -> Vec<String> {
        vec!["Cx".to_owned()]
    }

    #[test]
    fn a_function_is_taken_apart() {
        let signature = Signature::parse(
            "for<'a, 'b> unsafe extern \"C\" fn(&'a [u8; 3], (u8, &'b mut refs::Cx)) -> Result<(), u8> {<X as a::T>::go_async::<u8>}",
        )
        .unwrap();
        assert_eq!(signature.params, ["&'a [u8; 3]", "(u8, &'b mut refs::Cx)"]);
        assert_eq!(signature.returns, "Result<(), u8>");
        assert_eq!(signature.path.as_deref(), Some("<X as a::T>::go_async::<u8>"));
    }

    #[test]
    fn a_pointer_has_no_path() {
        let pointer = Signature::parse("fn(u8) -> fn(&mut Cx) -> {closure@a.rs:1:2: 3:4}").unwrap();
        assert_eq!(pointer.path, None);
        assert_eq!(Signature::parse("fn(u8)").unwrap().returns, "()");
        assert_eq!(Signature::parse("&str"), None);
    }

    #[test]
    fn a_function_in_generic_arguments_is_not_the_callee() {
        let ty =
            "for<'a> fn(&'a mut Cx, for<'a> fn(&'a mut Cx) {leaf_async}) {run::<for<'a> fn(&'a mut Cx) {leaf_async}>}";
        let signature = Signature::parse(ty).unwrap();
        assert_eq!(signature.params.len(), 2);
        assert_eq!(last_segment(signature.path.as_deref().unwrap()), "run");
    }

    #[test]
    fn the_last_segment_is_the_functions_own_name() {
        assert_eq!(last_segment("a::b::<fn() -> u8>::c_async::<{closure@x.rs:1:1: 1:2}, Vec<u8>>"), "c_async");
        assert_eq!(last_segment("inner::<impl at b.rs:3:95: 3:107>::m_async"), "m_async");
        assert_eq!(last_segment("f_async::{closure#0}"), "{closure#0}");
    }

    #[test]
    fn plain_paths_are_names_alone() {
        assert_eq!(plain_path("<inner::S<X> as a::T<u8>>::m_async::<u8>"), ["a", "T", "m_async"]);
        assert_eq!(plain_path("inner::<impl at b.rs:3:95: 3:107>::m_async"), ["inner", "m_async"]);
        assert_eq!(plain_path("inner::S::<X>::m_async"), ["inner", "S", "m_async"]);
    }

    #[test]
    fn the_context_is_found_where_it_is_given_and_not_where_it_is_promised() {
        for ty in ["&mut Cx", "&'a mut refs::Cx", "Option<&mut a::Cx<'_>>", "(&mut Cx,)"] {
            assert!(takes_context(ty, &contexts()), "{ty}");
        }
        for ty in [
            "&Cx",
            "Cx",
            "fn(&mut Cx)",
            "impl FnOnce(&mut Cx)",
            "&mut dyn FnMut(&mut Cx, u8)",
            "&mut Cxx",
            "&mut Cx::Other",
        ] {
            assert!(!takes_context(ty, &contexts()), "{ty}");
        }
    }

    #[test]
    fn futures_are_told_from_other_results() {
        for ty in [
            "impl std::future::Future<Output = ()>",
            "{async fn body of a::b_async()}",
            "std::pin::Pin<std::boxed::Box<dyn std::future::Future<Output = ()>>>",
            "std::pin::Pin<std::boxed::Box<(dyn std::future::Future<Output = u8> + std::marker::Send + 'static)>>",
        ] {
            assert!(is_future(ty), "{ty}");
        }
        for ty in ["()", "Result<FutureValue, u8>", "impl Fn() -> Future", "Vec<Pin<Box<dyn Future>>>"] {
            assert!(!is_future(ty), "{ty}");
        }
    }

    #[test]
    fn broken_text_is_refused_without_a_panic() {
        for ty in [
            "fn",
            "fn(",
            "fn(é",
            "for<",
            "for<'a> fn(x)) {",
            "extern \"C\"",
            "{",
            "}",
            "<<>",
            "fn() -> {é",
            "é>",
            "->>",
        ] {
            let _ = (Signature::parse(ty), takes_context(ty, &contexts()), is_future(ty));
            let _ = (last_segment(ty), plain_path(ty), split_at_commas(ty));
        }
    }
}
