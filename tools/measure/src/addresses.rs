//! User addresses have types: each says what is there where it is decoded, and only `user_memory` copies.
//!
//! Two things would take that back, and the compiler refuses neither. A pointer whose type is inferred from the value that is written fits any value:
//! so where one is made the type stands beside it (`args.output::<u32>(2)`, `UserIn::<Stat>::new(address)`). And `frame`'s own copies take
//! a plain address and a length: so no file but those of `user_memory` and `memory` calls them on an address space.

use std::path::Path;

use anyhow::{Context, Result};
use proc_macro2::{TokenStream, TokenTree};

use crate::sources::rust_files;

const SOURCES: &str = "kernel/src";
/// Where plain addresses are at home.
const EXEMPT: [&str; 2] = ["user_memory", "memory"];
/// Methods that make a typed pointer of a plain address.
const MAKERS: [&str; 3] = ["input", "output", "in_out"];
/// Typed pointers.
const POINTERS: [&str; 4] = ["UserPtr", "UserIn", "UserOut", "UserInOut"];
/// Copies by plain address, of what `AddressSpace::vm` gives.
const COPIES: [&str; 4] = ["reader", "writer", "load_u32", "compare_exchange_u32"];

/// What breaks the two rules, a line for each.
pub fn violations(root: &Path) -> Result<Vec<String>> {
    let sources = root.join(SOURCES);
    let mut found = Vec::new();
    for file in rust_files(&sources, &[]) {
        let within = file.strip_prefix(&sources).unwrap_or(&file);
        if within.components().next().is_some_and(|first| EXEMPT.iter().any(|exempt| first.as_os_str() == *exempt)) {
            continue;
        }
        let name = file.strip_prefix(root).unwrap_or(&file).display().to_string();
        let text = std::fs::read_to_string(&file).with_context(|| name.clone())?;
        let tokens = text.parse::<TokenStream>().map_err(|error| anyhow::anyhow!("{name}: {error}"))?;
        for (line, problem) in untyped(tokens) {
            found.push(format!("{name}:{line}: {problem}"));
        }
    }
    Ok(found)
}

fn untyped(tokens: TokenStream) -> Vec<(usize, String)> {
    let mut found = Vec::new();
    look(&tokens.into_iter().collect::<Vec<_>>(), &mut found);
    found
}

fn look(tokens: &[TokenTree], found: &mut Vec<(usize, String)>) {
    for (at, token) in tokens.iter().enumerate() {
        match token {
            TokenTree::Group(group) => look(&group.stream().into_iter().collect::<Vec<_>>(), found),
            TokenTree::Ident(ident) => {
                let name = ident.to_string();
                let line = ident.span().start().line;
                let is_method = at > 0 && is_punct(tokens.get(at - 1), '.');
                let is_called = matches!(tokens.get(at + 1), Some(TokenTree::Group(_)));
                if is_method && is_called && MAKERS.contains(&name.as_str()) {
                    found
                        .push((line, format!("`.{name}(...)` without a type: say what is there, `.{name}::<T>(...)`")));
                }
                if POINTERS.contains(&name.as_str()) && is_new(&tokens[at + 1..]) {
                    found.push((line, format!("`{name}::new` without a type: say what is there, `{name}::<T>::new`")));
                }
                if is_method && is_called && COPIES.contains(&name.as_str()) && follows_vm(&tokens[..at - 1]) {
                    found.push((line, format!("`vm().{name}` copies by a plain address: only `user_memory` does")));
                }
            }
            _ => {}
        }
    }
}

/// Whether the tokens are `::new`.
fn is_new(tokens: &[TokenTree]) -> bool {
    is_punct(tokens.first(), ':')
        && is_punct(tokens.get(1), ':')
        && matches!(tokens.get(2), Some(TokenTree::Ident(ident)) if *ident == "new")
}

/// Whether the tokens end in `vm()`.
fn follows_vm(tokens: &[TokenTree]) -> bool {
    matches!(tokens, [.., TokenTree::Ident(ident), TokenTree::Group(_)] if *ident == "vm")
}

fn is_punct(token: Option<&TokenTree>, expected: char) -> bool {
    matches!(token, Some(TokenTree::Punct(punct)) if punct.as_char() == expected)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn count(source: &str) -> usize {
        untyped(source.parse().expect("the test's source is Rust")).len()
    }

    #[test]
    fn a_pointer_needs_its_type_where_it_is_made() {
        assert_eq!(count("memory.write(args.output(2), &len)"), 1);
        assert_eq!(count("memory.write(args.output::<u32>(2), &len); tty.input.wake_all()"), 0);
        assert_eq!(count("let place = UserOut::new(address);"), 1);
        assert_eq!(count("let place = UserOut::<Stat>::new(address); Sets::new(1)"), 0);
    }

    #[test]
    fn frames_copies_are_for_user_memory() {
        assert_eq!(count("space.vm().reader(address, len, cx)"), 1);
        assert_eq!(count("me.memory(cx)?.reader(slice); frame.writer(range); space.vm().activate(cx)"), 0);
    }
}
