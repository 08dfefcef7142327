//! What a crate's sources say: lines of code, and where `unsafe` stands.

use std::collections::BTreeSet;
use std::ops::RangeInclusive;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use proc_macro2::{Delimiter, Spacing, TokenStream, TokenTree};
use walkdir::WalkDir;

/// The measure of some sources.
#[derive(Default)]
pub struct Measured {
    /// Lines with a token on them.
    pub code_lines: usize,
    /// `file:line` of each `unsafe`.
    pub unsafe_places: Vec<String>,
}

/// Measures all Rust files under a folder (nothing, where there is none).
pub fn measure(folder: &Path) -> Result<Measured> {
    let mut measured = Measured::default();
    for file in rust_files(folder, &[]) {
        let mut lines = BTreeSet::new();
        let text = std::fs::read_to_string(&file).with_context(|| file.display().to_string())?;
        // Files that are no Rust by themselves (templates of other crates) count nothing.
        let Ok(tokens) = text.parse::<TokenStream>() else { continue };
        walk(tokens, &mut lines, &mut |line| {
            measured.unsafe_places.push(format!("{}:{line}", file.display()));
        });
        measured.code_lines += lines.len();
    }
    Ok(measured)
}

/// Every `unsafe` under `root` that is in none of the folders named.
pub fn unsafe_outside(root: &Path, allowed: &[&str]) -> Result<Vec<String>> {
    let mut places = Vec::new();
    for file in rust_files(root, allowed) {
        let text = std::fs::read_to_string(&file).with_context(|| file.display().to_string())?;
        let tokens = text.parse::<TokenStream>().map_err(|error| anyhow::anyhow!("{}: {error}", file.display()))?;
        let name = file.strip_prefix(root).unwrap_or(&file);
        walk(tokens, &mut BTreeSet::new(), &mut |line| places.push(format!("{}:{line}", name.display())));
    }
    Ok(places)
}

/// The lines of each `unsafe { }` block under a folder, by file; without the tests of the files themselves.
pub fn unsafe_blocks(folder: &Path) -> Result<Vec<(PathBuf, Vec<RangeInclusive<u32>>)>> {
    let mut found = Vec::new();
    for file in rust_files(folder, &["tests", "examples", "benches"]) {
        let text = std::fs::read_to_string(&file).with_context(|| file.display().to_string())?;
        let tokens = text.parse::<TokenStream>().map_err(|error| anyhow::anyhow!("{}: {error}", file.display()))?;
        let mut blocks = Vec::new();
        find_blocks(tokens, &mut blocks);
        if !blocks.is_empty() {
            found.push((file, blocks));
        }
    }
    Ok(found)
}

fn find_blocks(tokens: TokenStream, blocks: &mut Vec<RangeInclusive<u32>>) {
    let (mut after_unsafe, mut is_test) = (false, false);
    for token in tokens {
        if let TokenTree::Group(group) = &token {
            let is_block = group.delimiter() == Delimiter::Brace;
            if after_unsafe && is_block {
                blocks.push(group.span_open().start().line as u32..=group.span_close().end().line as u32);
            }
            // `#[cfg(test)] mod tests { }`: the attribute, `mod`, the name, the group.
            let in_test = is_test && is_block;
            if group.delimiter() == Delimiter::Bracket {
                is_test |= group.stream().to_string().replace(' ', "") == "cfg(test)";
            } else if is_block {
                is_test = false;
            }
            if !in_test {
                find_blocks(group.stream(), blocks);
            }
        }
        if matches!(&token, TokenTree::Punct(mark) if mark.as_char() == ';') {
            is_test = false;
        }
        after_unsafe = matches!(&token, TokenTree::Ident(ident) if ident == "unsafe");
    }
}

pub fn rust_files(root: &Path, skipped: &[&str]) -> Vec<PathBuf> {
    WalkDir::new(root)
        .sort_by_file_name()
        .into_iter()
        .filter_entry(|entry| {
            let name = entry.file_name().to_string_lossy();
            !(entry.depth() == 1 && skipped.contains(&name.as_ref())) && (entry.depth() == 0 || !name.starts_with('.'))
        })
        .filter_map(Result::ok)
        .filter(|entry| entry.file_type().is_file() && entry.path().extension().is_some_and(|ending| ending == "rs"))
        .map(|entry| entry.into_path())
        .collect()
}

/// Visits all tokens: notes their lines, and calls `found` with the line of each `unsafe`. (Doc comments become `doc`
/// attributes, which count nothing.)
fn walk(tokens: TokenStream, lines: &mut BTreeSet<usize>, found: &mut impl FnMut(usize)) {
    let mut tokens = tokens.into_iter().peekable();
    while let Some(token) = tokens.next() {
        match token {
            TokenTree::Punct(hash) if hash.as_char() == '#' && hash.spacing() == Spacing::Alone => {
                if let Some(TokenTree::Punct(bang)) = tokens.peek()
                    && bang.as_char() == '!'
                {
                    tokens.next();
                }
                if let Some(TokenTree::Group(group)) = tokens.next() {
                    attribute(group.stream(), lines, found);
                }
            }
            TokenTree::Group(group) => {
                lines.insert(group.span_open().start().line);
                lines.insert(group.span_close().start().line);
                walk(group.stream(), lines, found);
            }
            TokenTree::Ident(ident) => {
                let line = ident.span().start().line;
                lines.insert(line);
                if ident == "unsafe" {
                    found(line);
                }
            }
            other => {
                lines.insert(other.span().start().line);
            }
        }
    }
}

fn attribute(tokens: TokenStream, lines: &mut BTreeSet<usize>, found: &mut impl FnMut(usize)) {
    let is_doc = matches!(tokens.clone().into_iter().next(), Some(TokenTree::Ident(name)) if name == "doc");
    if !is_doc {
        walk(tokens, lines, found);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn places(source: &str) -> (usize, Vec<usize>) {
        let (mut lines, mut found) = (BTreeSet::new(), Vec::new());
        walk(source.parse().unwrap(), &mut lines, &mut |line| found.push(line));
        (lines.len(), found)
    }

    #[test]
    fn comments_strings_and_blank_lines_are_no_code() {
        let source = "//! unsafe\n\n/// unsafe\nfn f() {\n    // unsafe\n    g(\"unsafe\");\n}\n";
        assert_eq!(places(source), (3, vec![]));
    }

    #[test]
    fn blocks_are_found_with_their_lines_and_those_of_tests_are_not() {
        let source = "fn f() {\n    unsafe {\n        g()\n    }\n}\nunsafe fn h() { unsafe { i() } }\n\
                      #[cfg(test)]\nmod tests { fn t() { unsafe { f() } } }\nfn j() { unsafe { k() } }\n";
        let mut blocks = Vec::new();
        find_blocks(source.parse().unwrap(), &mut blocks);
        assert_eq!(blocks, [2..=4, 6..=6, 9..=9]);
    }

    #[test]
    fn unsafe_is_found_in_blocks_functions_attributes_and_macros() {
        let source = "unsafe fn f() {}\nfn g() { unsafe { f() } }\n#[unsafe(no_mangle)]\nfn h() {}\nm! { unsafe {} }\n";
        assert_eq!(places(source).1, [1, 2, 3, 5]);
    }
}
