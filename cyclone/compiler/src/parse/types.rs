//! Types before the declared name: specifiers, type arguments, alias qualifiers, and what `struct`, `enum` and `datatype` define.

use super::{Parsed, Parser, declarators::Declared};
use crate::ast::{
    Aggregate, AggregateBody, Aqual, Attribute, Constructor, Datatype, Enum, Field, FloatSize, Ident, IntSize, Path,
    Quals, Sign, Storage, Type, TypeKind, TypeVar,
};
use crate::lex::Tok;
use crate::symbol::Symbol;
use std::sync::Arc;
use thin_vec::{ThinVec, thin_vec};

/// What stands before the first declarator.
pub(super) struct Specifiers {
    pub ty: Type,
    pub storage: ThinVec<Storage>,
    pub is_inline: bool,
    pub attributes: ThinVec<Attribute>,
}

#[derive(Default)]
struct BasicWords {
    signed: Option<Sign>,
    short: bool,
    longs: u8,
    complex: bool,
    base: Option<Tok>,
}

impl BasicWords {
    fn any(&self) -> bool {
        self.signed.is_some() || self.short || self.longs > 0 || self.complex || self.base.is_some()
    }

    fn kind(&self) -> TypeKind {
        let sign = self.signed.unwrap_or(Sign::Plain);
        match self.base {
            Some(Tok::Void) => TypeKind::Void,
            Some(Tok::Char) => TypeKind::Int(sign, IntSize::Char),
            Some(Tok::Float) if self.complex => TypeKind::Complex(FloatSize::Float),
            Some(Tok::Float) => TypeKind::Float(FloatSize::Float),
            Some(Tok::Double) => {
                let size = if self.longs > 0 { FloatSize::LongDouble } else { FloatSize::Double };
                if self.complex { TypeKind::Complex(size) } else { TypeKind::Float(size) }
            }
            None if self.complex => TypeKind::Complex(FloatSize::Double),
            _ if self.short => TypeKind::Int(sign, IntSize::Short),
            _ if self.longs == 1 => TypeKind::Int(sign, IntSize::Long),
            _ if self.longs > 1 => TypeKind::Int(sign, IntSize::LongLong),
            _ => TypeKind::Int(sign, IntSize::Int),
        }
    }
}

impl Parser<'_> {
    /// Does a type begin `ahead` tokens from here?
    pub(super) fn begins_type(&self, ahead: usize) -> bool {
        match self.kind_at(ahead) {
            Tok::Void
            | Tok::Char
            | Tok::Short
            | Tok::Int
            | Tok::Long
            | Tok::Float
            | Tok::Double
            | Tok::Signed
            | Tok::Unsigned
            | Tok::Complex
            | Tok::Enum
            | Tok::Struct
            | Tok::Union
            | Tok::QTagged
            | Tok::TypeOf
            | Tok::VaList
            | Tok::Datatype
            | Tok::QExtensible
            | Tok::TypeVar
            | Tok::Underscore
            | Tok::RegionT
            | Tok::AqualT
            | Tok::TagT
            | Tok::ValueOfT
            | Tok::QSubset
            | Tok::Const
            | Tok::Volatile
            | Tok::Restrict
            | Tok::Attribute => true,
            Tok::Dollar => self.kind_at(ahead + 1) == Tok::LParen && ahead < 200 && self.begins_type(ahead + 2),
            Tok::Name | Tok::QualifiedName => self.names_type(ahead) || self.old_datatype(ahead).is_some(),
            _ => false,
        }
    }

    /// Does a declaration begin here? Includes names nobody declared that can only be types.
    pub(super) fn begins_declaration(&self) -> bool {
        match self.kind() {
            Tok::Auto | Tok::Register | Tok::Static | Tok::Extern | Tok::Typedef | Tok::Abstract | Tok::Inline => true,
            Tok::Extension => self.begins_type(1),
            Tok::Name | Tok::QualifiedName => self.names_type(0) || self.looks_like_type(0),
            _ => self.begins_type(0),
        }
    }

    /// A name that was not declared, in a place that only a type can have.
    pub(super) fn looks_like_type(&self, ahead: usize) -> bool {
        match self.kind_at(ahead + 1) {
            Tok::Name | Tok::QualifiedName => true,
            Tok::At => self.kind_at(ahead + 2) != Tok::Lt,
            Tok::Lt => self.kind_at(ahead + 2) == Tok::TypeVar || self.angles_before_name(ahead + 1),
            _ => false,
        }
    }

    /// `<T, U> x`, with nothing but types in the angles.
    fn angles_before_name(&self, mut ahead: usize) -> bool {
        let mut depth = 0;
        loop {
            depth += match self.kind_at(ahead) {
                Tok::Lt => 1,
                Tok::Gt => -1,
                Tok::Shr => -2,
                Tok::Name | Tok::QualifiedName | Tok::Comma | Tok::Star | Tok::At | Tok::Question => 0,
                _ if self.begins_type(ahead) => 0,
                _ => return false,
            };
            ahead += 1;
            if depth <= 0 {
                return depth == 0 && self.kind_at(ahead) == Tok::Name;
            }
        }
    }

    /// Does `(` at the current token open a type in parentheses?
    pub(super) fn paren_opens_type(&self) -> bool {
        if self.begins_type(1) {
            return true;
        }
        if !matches!(self.kind_at(1), Tok::Name | Tok::QualifiedName) {
            return false;
        }
        if self.kind_at(2) == Tok::Lt && self.kind_at(3) == Tok::TypeVar {
            return true;
        }
        let mut ahead = 2;
        while matches!(self.kind_at(ahead), Tok::Star | Tok::At | Tok::Question) {
            ahead += 1;
        }
        // After a value in parentheses an operand cannot stand.
        let operand = matches!(self.kind_at(ahead + 1), Tok::Str | Tok::Character | Tok::Number | Tok::FloatNumber);
        self.kind_at(ahead) == Tok::RParen && (ahead > 2 || operand)
    }

    /// Specifiers; with `storage` also storage classes. Without any type word the type is `int`.
    pub(super) fn specifiers(&mut self, with_storage: bool) -> Parsed<Specifiers> {
        self.nested(|parser| parser.specifiers_here(with_storage))
    }

    fn specifiers_here(&mut self, with_storage: bool) -> Parsed<Specifiers> {
        let start = self.span();
        let mut out =
            Specifiers { ty: Type::int(start), storage: ThinVec::new(), is_inline: false, attributes: ThinVec::new() };
        let mut quals = Quals::default();
        let mut words = BasicWords::default();
        let mut whole: Option<TypeKind> = None;
        let mut unknown = false;
        loop {
            let storage = match self.kind() {
                Tok::Auto => Some(Storage::Auto),
                Tok::Register => Some(Storage::Register),
                Tok::Static => Some(Storage::Static),
                Tok::Extern if self.kind_at(1) == Tok::Str => Some(Storage::ExternC),
                Tok::Extern => Some(Storage::Extern),
                Tok::Typedef => Some(Storage::Typedef),
                Tok::Abstract => Some(Storage::Abstract),
                _ => None,
            };
            if let (Some(storage), true) = (storage, with_storage) {
                if storage == Storage::ExternC {
                    self.bump();
                }
                self.bump();
                out.storage.push(storage);
                continue;
            }
            match self.kind() {
                Tok::Inline if with_storage => {
                    out.is_inline = true;
                    self.bump();
                }
                Tok::Extension => self.bump(),
                Tok::Const => {
                    quals.is_const = true;
                    self.bump();
                }
                Tok::Volatile => {
                    quals.is_volatile = true;
                    self.bump();
                }
                Tok::Restrict => {
                    quals.is_restrict = true;
                    self.bump();
                }
                Tok::Attribute => out.attributes.extend(self.attributes()?),
                // `A B c` with types that nobody declared: one is enough to say so.
                Tok::Name if unknown && self.kind_at(1) == Tok::Name => self.bump(),
                _ if whole.is_some() => break,
                kind @ (Tok::Void | Tok::Char | Tok::Int | Tok::Float | Tok::Double) => {
                    if words.base.is_some() {
                        return self.fail(self.span(), "two types in one declaration");
                    }
                    words.base = Some(kind);
                    self.bump();
                }
                Tok::Short => {
                    words.short = true;
                    self.bump();
                }
                Tok::Long => {
                    words.longs = words.longs.saturating_add(1);
                    self.bump();
                }
                Tok::Signed => {
                    words.signed = Some(Sign::Signed);
                    self.bump();
                }
                Tok::Unsigned => {
                    words.signed = Some(Sign::Unsigned);
                    self.bump();
                }
                Tok::Complex => {
                    words.complex = true;
                    self.bump();
                }
                _ if words.any() => break,
                Tok::Name | Tok::QualifiedName if !self.names_type(0) && !self.can_be_unknown_type() => break,
                kind => {
                    unknown = kind == Tok::Name && !self.begins_type(0);
                    whole = self.type_specifier()?;
                    if whole.is_none() {
                        break;
                    }
                }
            }
        }
        let kind = whole.unwrap_or_else(|| words.kind());
        out.ty = Type { kind, quals, span: self.since(start) };
        Ok(out)
    }

    /// A name nobody declared, where a type specifier may stand: what follows tells a type from a declared name.
    fn can_be_unknown_type(&self) -> bool {
        matches!(
            self.kind_at(1),
            Tok::Name
                | Tok::QualifiedName
                | Tok::Star
                | Tok::At
                | Tok::Question
                | Tok::TypeVar
                | Tok::AqualShort
                | Tok::Lt
                | Tok::Const
                | Tok::Underscore
        )
    }

    /// A specifier that is a whole type; `None` if there is none.
    fn type_specifier(&mut self) -> Parsed<Option<TypeKind>> {
        Ok(Some(match self.kind() {
            Tok::Enum => self.enum_specifier()?,
            Tok::Struct | Tok::Union | Tok::QTagged => self.aggregate()?,
            Tok::Datatype | Tok::QExtensible => self.datatype()?,
            Tok::TypeOf => {
                self.bump();
                self.expect(Tok::LParen)?;
                if self.begins_type(0) {
                    let ty = self.type_name()?;
                    self.expect(Tok::RParen)?;
                    return Ok(Some(ty.kind));
                }
                let operand = self.expression()?;
                self.expect(Tok::RParen)?;
                TypeKind::TypeOf(Box::new(operand))
            }
            Tok::VaList => {
                self.bump();
                TypeKind::VaList
            }
            Tok::TypeVar => TypeKind::Var(self.type_var()?),
            Tok::Underscore => {
                self.bump();
                TypeKind::Infer(if self.eat(Tok::ColonColon) { Some(self.ident()?) } else { None })
            }
            Tok::Dollar => {
                self.bump();
                self.expect(Tok::LParen)?;
                TypeKind::Tuple(self.list(Tok::RParen, |parser| parser.param())?)
            }
            Tok::RegionT => TypeKind::RegionHandle(self.one_type_argument()?),
            Tok::TagT => TypeKind::TagHandle(self.one_type_argument()?),
            Tok::AqualT => {
                self.bump();
                self.expect(Tok::Lt)?;
                let aqual = self.aqual()?;
                self.expect_right_angle()?;
                TypeKind::AqualHandle(aqual)
            }
            Tok::ValueOfT => {
                self.bump();
                self.expect(Tok::LParen)?;
                let value = self.expression()?;
                self.expect(Tok::RParen)?;
                TypeKind::ValueOf(Box::new(value))
            }
            Tok::QSubset => {
                self.bump();
                self.expect(Tok::LParen)?;
                let param = self.param()?;
                self.expect(Tok::Or)?;
                let condition = self.conditional()?;
                self.expect(Tok::RParen)?;
                TypeKind::Subset(Box::new(param), Box::new(condition))
            }
            Tok::Name | Tok::QualifiedName => {
                if let Some(word) = self.old_datatype(0) {
                    return Ok(Some(self.old_datatype_specifier(word)?));
                }
                let name = self.path()?;
                TypeKind::Named(name, self.type_arguments()?)
            }
            _ => return Ok(None),
        }))
    }

    fn one_type_argument(&mut self) -> Parsed<Option<Box<Type>>> {
        self.bump();
        if !self.eat(Tok::Lt) {
            return Ok(None);
        }
        let argument = self.type_argument()?;
        self.expect_right_angle()?;
        Ok(Some(Box::new(argument)))
    }

    /// `<T, U>` or nothing.
    pub(super) fn type_arguments(&mut self) -> Parsed<ThinVec<Type>> {
        if self.eat(Tok::LtGt) {
            return Ok(ThinVec::new());
        }
        if !self.eat(Tok::Lt) {
            return Ok(ThinVec::new());
        }
        self.type_list()
    }

    /// After `<`: types and the closing `>`.
    pub(super) fn type_list(&mut self) -> Parsed<ThinVec<Type>> {
        let mut types = thin_vec![self.type_argument()?];
        while self.eat(Tok::Comma) {
            types.push(self.type_argument()?);
        }
        self.expect_right_angle()?;
        Ok(types)
    }

    /// A type, effect, region set or alias qualifier.
    pub(super) fn type_argument(&mut self) -> Parsed<Type> {
        self.nested(|parser| {
            let start = parser.span();
            let first = parser.atomic_effect_or_type()?;
            if !parser.is(Tok::Plus) {
                return Ok(first);
            }
            let mut parts = thin_vec![first];
            while parser.eat(Tok::Plus) {
                parts.push(parser.atomic_effect_or_type()?);
            }
            Ok(Type::new(TypeKind::EffectJoin(parts), parser.since(start)))
        })
    }

    fn atomic_effect_or_type(&mut self) -> Parsed<Type> {
        let start = self.span();
        let kind = match self.kind() {
            Tok::LBrace => {
                self.bump();
                TypeKind::RegionSet(self.list(Tok::RBrace, |parser| parser.type_name())?)
            }
            Tok::Regions => {
                self.bump();
                self.expect(Tok::LParen)?;
                let of = self.type_argument()?;
                self.expect(Tok::RParen)?;
                TypeKind::RegionsOf(Box::new(of))
            }
            Tok::Aliasable | Tok::Unique | Tok::Refcnt | Tok::Restricted | Tok::AqualShort | Tok::Aquals => {
                TypeKind::Aqual(self.aqual()?)
            }
            _ => return self.type_name(),
        };
        Ok(Type::new(kind, self.since(start)))
    }

    pub(super) fn type_var(&mut self) -> Parsed<TypeVar> {
        let span = self.span();
        let name = self.symbol();
        self.expect(Tok::TypeVar)?;
        let kind = if self.eat(Tok::ColonColon) { Some(self.ident()?) } else { None };
        let aqual = if self.is(Tok::AqualShort) { Some(Box::new(self.aqual()?)) } else { None };
        Ok(TypeVar { name, kind, aqual, span: self.since(span) })
    }

    pub(super) fn aqual(&mut self) -> Parsed<Aqual> {
        let aqual = match (self.kind(), self.text()) {
            (Tok::Aliasable, _) | (Tok::AqualShort, "\\A") => Aqual::Aliasable,
            (Tok::Unique, _) | (Tok::AqualShort, "\\U") => Aqual::Unique,
            (Tok::Refcnt, _) | (Tok::AqualShort, "\\RC") => Aqual::Refcnt,
            (Tok::Restricted, _) | (Tok::AqualShort, "\\T") => Aqual::Restricted,
            (Tok::AqualShort, _) => {
                return self.fail(self.span(), "the short alias qualifiers are `\\A`, `\\U`, `\\RC` and `\\T`");
            }
            (Tok::TypeVar, _) => return Ok(Aqual::Var(Box::new(self.type_var()?))),
            (Tok::Aquals, _) => {
                self.bump();
                self.expect(Tok::LParen)?;
                let of = self.type_argument()?;
                self.expect(Tok::RParen)?;
                return Ok(Aqual::Of(Box::new(of)));
            }
            _ => return self.unexpected("an alias qualifier"),
        };
        self.bump();
        Ok(aqual)
    }

    /// All `__attribute__((..))` that stand here.
    pub(super) fn attributes(&mut self) -> Parsed<ThinVec<Attribute>> {
        let mut attributes = ThinVec::new();
        while self.eat(Tok::Attribute) {
            self.expect(Tok::LParen)?;
            self.expect(Tok::LParen)?;
            attributes.extend(self.list(Tok::RParen, |parser| parser.attribute())?);
            self.expect(Tok::RParen)?;
        }
        Ok(attributes)
    }

    fn attribute(&mut self) -> Parsed<Attribute> {
        // Some attributes have the names of keywords, such as `const`.
        let word = self.text();
        if !word.starts_with(|first: char| first.is_ascii_alphabetic() || first == '_') {
            return self.unexpected("an attribute's name");
        }
        let name = Ident { name: Symbol::new(word), span: self.span() };
        self.bump();
        let arguments =
            if self.eat(Tok::LParen) { self.list(Tok::RParen, |parser| parser.assignment())? } else { ThinVec::new() };
        Ok(Attribute { name, arguments })
    }

    fn enum_specifier(&mut self) -> Parsed<TypeKind> {
        self.bump();
        let name = self.tag()?;
        if self.is_old_enum(name.as_ref()) {
            return self.old_enum(name);
        }
        let body = if self.eat(Tok::LBrace) {
            Some(self.list(Tok::RBrace, |parser| {
                let name = parser.enumerator()?;
                let value = if parser.eat(Tok::Assign) { Some(parser.conditional()?) } else { None };
                Ok((name, value))
            })?)
        } else {
            None
        };
        if name.is_none() && body.is_none() {
            return self.unexpected("a name or `{`");
        }
        Ok(TypeKind::Enum(Arc::new(Enum { name, body })))
    }

    fn aggregate(&mut self) -> Parsed<TypeKind> {
        let is_tagged = self.eat(Tok::QTagged);
        let is_union = self.is(Tok::Union);
        if !is_union && !self.is(Tok::Struct) {
            return self.unexpected("`struct` or `union`");
        }
        self.bump();
        let attributes = self.attributes()?;
        let name = self.tag()?;
        let args = if name.is_some() { self.type_arguments()? } else { ThinVec::new() };
        let body = if self.eat(Tok::LBrace) { Some(self.aggregate_body()?) } else { None };
        if name.is_none() && body.is_none() {
            return self.unexpected("a name or `{`");
        }
        let mut attributes = attributes;
        if body.is_some() {
            attributes.extend(self.attributes()?);
        }
        Ok(TypeKind::Aggregate(Arc::new(Aggregate { is_union, is_tagged, name, args, body, attributes })))
    }

    fn aggregate_body(&mut self) -> Parsed<AggregateBody> {
        let existentials = self.type_arguments()?;
        let constraints = if self.eat(Tok::Colon) { self.constraints()? } else { ThinVec::new() };
        if !constraints.is_empty() {
            self.eat(Tok::Semi);
        }
        let mut fields = ThinVec::new();
        while !self.is(Tok::RBrace) {
            if self.eat(Tok::Semi) {
                continue;
            }
            let specifiers = self.specifiers(false)?;
            loop {
                let (declared, _) = if self.is(Tok::Colon) || self.is(Tok::Semi) || self.is(Tok::Comma) {
                    let ty = specifiers.ty.clone();
                    (
                        Declared { name: None, ty, type_params: ThinVec::new(), attributes: ThinVec::new() },
                        ThinVec::new(),
                    )
                } else {
                    self.declarator_of(specifiers.ty.clone())?
                };
                let mut attributes = declared.attributes;
                let width = if self.eat(Tok::Colon) { Some(self.conditional()?) } else { None };
                let requires = if self.eat(Tok::QRequires) {
                    self.expect(Tok::LParen)?;
                    let condition = self.conditional()?;
                    self.expect(Tok::RParen)?;
                    Some(condition)
                } else {
                    None
                };
                attributes.extend(self.attributes()?);
                attributes.extend(specifiers.attributes.iter().cloned());
                let name = declared.name.map(|path| Ident { name: path.name, span: path.span });
                fields.push(Field { name, ty: declared.ty, width, requires, attributes });
                if !self.eat(Tok::Comma) {
                    break;
                }
            }
            self.expect(Tok::Semi)?;
        }
        self.expect(Tok::RBrace)?;
        Ok(AggregateBody { existentials, constraints, fields })
    }

    fn datatype(&mut self) -> Parsed<TypeKind> {
        let is_extensible = self.eat(Tok::QExtensible);
        self.expect(Tok::Datatype)?;
        let name = self.path()?;
        self.datatype_after_name(is_extensible, name)
    }

    pub(super) fn datatype_after_name(&mut self, is_extensible: bool, name: Path) -> Parsed<TypeKind> {
        let constructor = if self.eat(Tok::Dot) { Some(self.path()?) } else { None };
        let args = self.type_arguments()?;
        let mut body = None;
        if self.eat(Tok::LBrace) {
            let mut constructors = ThinVec::new();
            while !self.is(Tok::RBrace) {
                let storage = match self.kind() {
                    Tok::Extern => Some(Storage::Extern),
                    Tok::Static => Some(Storage::Static),
                    _ => None,
                };
                if storage.is_some() {
                    self.bump();
                }
                let name = self.path()?;
                let params = if self.eat(Tok::LParen) {
                    self.list(Tok::RParen, |parser| parser.param())?
                } else {
                    ThinVec::new()
                };
                constructors.push(Constructor { storage, name, params });
                if !self.eat(Tok::Comma) && !self.eat(Tok::Semi) {
                    break;
                }
            }
            self.expect(Tok::RBrace)?;
            body = Some(constructors);
        }
        Ok(TypeKind::Datatype(Arc::new(Datatype { is_extensible, name, constructor, args, body })))
    }
}
