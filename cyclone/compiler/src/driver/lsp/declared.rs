//! What a file and its headers declare outside of functions, by name.

use crate::ast::{Declaration, Item, Storage, Type, TypeKind};
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
    /// It is no typedef: `struct`, `union`, `enum` or `datatype` stands before its name.
    pub has_word: bool,
}

/// What a file declares.
#[derive(Default)]
pub struct Declared {
    /// In the order of the text.
    pub types: Vec<DeclaredType>,
    /// Variables and functions, at each of their declarations.
    pub values: Vec<(String, Span)>,
    /// Constants of enumerations.
    pub enumerators: Vec<(String, Span)>,
    /// Parameters of prototypes.
    pub parameters: Vec<Span>,
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
                Item::Function(function) => {
                    self.values.push((
                        format!("{namespace}{}", function.name.name),
                        last(function.name.span, function.name.name),
                    ));
                    self.parameters_of(&function.ty);
                }
                Item::Let(..) | Item::Switch(_) => {}
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
        if let TypeKind::Enum(enumeration) = &declaration.base.kind {
            for (name, _) in enumeration.body.iter().flatten() {
                self.enumerators.push((format!("{namespace}{}", name.name), name.span));
            }
        }
        let mut add = |name: Symbol, at, whole, has_word| {
            self.types.push(DeclaredType { name: format!("{namespace}{name}"), at, whole, has_word });
        };
        if let Some(name) = defined {
            add(name.name, name.span, declaration.base.span, true);
        }
        let is_typedef = declaration.storage.contains(&Storage::Typedef);
        for declarator in &declaration.declarators {
            let name = &declarator.name;
            match is_typedef {
                true => add(name.name, name.span, declaration.span, false),
                false => self.values.push((format!("{namespace}{}", name.name), last(name.span, name.name))),
            }
        }
        for declarator in &declaration.declarators {
            self.parameters_of(&declarator.ty);
        }
    }

    fn parameters_of(&mut self, ty: &Type) {
        match &ty.kind {
            TypeKind::Function(function) => {
                for param in &function.params {
                    self.parameters.extend(param.name.as_ref().map(|name| name.span));
                    self.parameters_of(&param.ty);
                }
                function.result.iter().for_each(|result| self.parameters_of(result));
            }
            TypeKind::Pointer(pointer) => self.parameters_of(&pointer.target),
            TypeKind::Array(array) => self.parameters_of(&array.element),
            _ => {}
        }
    }

    /// The type that a word means at a place: declared before it, if it is. Namespaces that are not written may be open.
    pub fn find(&self, word: &str, offset: u32) -> Option<&DeclaredType> {
        self.found(word, offset, |_| true)
    }

    /// The same among typedefs, or among what has a word such as `struct` before its name.
    pub fn find_kind(&self, word: &str, offset: u32, has_word: bool) -> Option<&DeclaredType> {
        self.found(word, offset, |ty| ty.has_word == has_word)
    }

    fn found(&self, word: &str, offset: u32, fits: impl Fn(&DeclaredType) -> bool) -> Option<&DeclaredType> {
        let suffix = format!("::{word}");
        let named = || self.types.iter().filter(|ty| (ty.name == word || ty.name.ends_with(&suffix)) && fits(ty));
        named().rfind(|ty| ty.at.start <= offset).or_else(|| named().next())
    }
}

/// The last part of a name that may have namespaces before it.
fn last(path: Span, name: Symbol) -> Span {
    Span { start: path.end.saturating_sub(name.as_str().len() as u32).max(path.start), end: path.end }
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
