//! The types that a file and its headers declare, by name.

use crate::ast::{Declaration, Item, Storage, TypeKind};
use crate::source::Span;
use crate::symbol::Symbol;

/// A typedef, structure, union, enumeration or datatype.
pub struct DeclaredType {
    /// With its namespace: `List::list_t`.
    pub name: String,
    /// Where its name stands.
    pub at: Span,
    /// The declaration.
    pub whole: Span,
}

/// What a file declares.
#[derive(Default)]
pub struct Declared {
    /// In the order of the text.
    pub types: Vec<DeclaredType>,
    /// The namespaces that are opened by `using`.
    pub used: Vec<String>,
}

impl Declared {
    pub fn of(items: &[Item]) -> Declared {
        let mut declared = Declared::default();
        declared.items(items, "");
        declared
    }

    fn items(&mut self, items: &[Item], namespace: &str) {
        for item in items {
            match item {
                Item::Declaration(declaration) => self.declaration(declaration, namespace),
                Item::Namespace(name, inner) => self.items(inner, &format!("{namespace}{}::", name.name)),
                Item::Using(path, inner) => {
                    self.used.push(path.to_string());
                    self.items(inner, namespace);
                }
                Item::NoInference(inner) => self.items(inner, namespace),
                Item::ExternC(block) => {
                    self.items(&block.items, namespace);
                    self.items(&block.overrides, namespace);
                }
                Item::Function(_) | Item::Let(..) | Item::Switch(_) => {}
            }
        }
    }

    fn declaration(&mut self, declaration: &Declaration, namespace: &str) {
        let defined = match &declaration.base.kind {
            TypeKind::Aggregate(aggregate) if aggregate.body.is_some() => aggregate.name.as_ref(),
            TypeKind::Enum(enumeration) if enumeration.body.is_some() => enumeration.name.as_ref(),
            TypeKind::Datatype(datatype) if datatype.body.is_some() => Some(&datatype.name),
            _ => None,
        };
        let mut add = |name: Symbol, at, whole| {
            self.types.push(DeclaredType { name: format!("{namespace}{name}"), at, whole });
        };
        if let Some(name) = defined {
            add(name.name, name.span, declaration.base.span);
        }
        if declaration.storage.contains(&Storage::Typedef) {
            for declarator in &declaration.declarators {
                add(declarator.name.name, declarator.name.span, declaration.span);
            }
        }
    }

    /// The type that a word means at a place: declared before it, if it is. Namespaces that are not written may be open.
    pub fn find(&self, word: &str, offset: u32) -> Option<&DeclaredType> {
        let suffix = format!("::{word}");
        let named = || self.types.iter().filter(|ty| ty.name == word || ty.name.ends_with(&suffix));
        named().rfind(|ty| ty.at.start <= offset).or_else(|| named().next())
    }
}

/// The name, with its namespaces, around a byte of a text.
pub fn word_at(text: &str, offset: usize) -> Option<(&str, Span)> {
    let belongs = |&byte: &u8| byte.is_ascii_alphanumeric() || byte == b'_' || byte == b':';
    let bytes = text.as_bytes();
    let before = bytes.get(..offset)?.iter().rev().take_while(|byte| belongs(byte)).count();
    let after = bytes[offset..].iter().take_while(|byte| belongs(byte)).count();
    let mut word = &text[offset - before..offset + after];
    let mut start = offset - before;
    // A single colon belongs to `? :` and labels.
    while let Some(colon) = single_colon(word) {
        if start + colon >= offset {
            word = &word[..colon];
        } else {
            word = &word[colon + 1..];
            start += colon + 1;
        }
    }
    let is_name = word.bytes().next().is_some_and(|first| first.is_ascii_alphabetic() || first == b'_');
    is_name.then_some((word, Span { start: start as u32, end: (start + word.len()) as u32 }))
}

fn single_colon(word: &str) -> Option<usize> {
    let bytes = word.as_bytes();
    (0..bytes.len())
        .find(|&at| bytes[at] == b':' && bytes.get(at + 1) != Some(&b':') && (at == 0 || bytes[at - 1] != b':'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_end_at_single_colons() {
        assert_eq!(word_at("x ? List::map:y", 7).map(|(word, _)| word), Some("List::map"));
        assert_eq!(word_at("x ? List::map:y", 14).map(|(word, _)| word), Some("y"));
        assert_eq!(word_at("3 + 4", 0), None);
    }
}
