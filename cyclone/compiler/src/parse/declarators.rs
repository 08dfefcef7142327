//! Types around the declared name: declarators, parameters, effects and constraints of functions.
//!
//! A declarator is read into modifiers from the name outwards (`*x[3]`: array, then pointer) and then folded over the
//! specifiers' type, outermost first.

use super::{Parsed, Parser, types::Specifiers};
use crate::ast::{
    Array, Attribute, Constraint, Contract, ContractKind, Expr, Function, Ident, Param, Path, Pointer, PointerQual,
    Quals, Sigil, Type, TypeKind, VarArgs,
};
use crate::lex::Tok;
use crate::source::Span;
use thin_vec::{ThinVec, thin_vec};

/// One declarator, folded over its specifiers.
pub(super) struct Declared {
    pub name: Option<Path>,
    pub ty: Type,
    pub type_params: ThinVec<Type>,
    pub attributes: ThinVec<Attribute>,
}

/// May a declarator have a name?
#[derive(Clone, Copy, PartialEq, Eq)]
enum Naming {
    Abstract,
    Either,
}

pub(super) enum Modifier {
    Pointer(Box<Pointer>, Quals, Span),
    Array(Option<Expr>, Option<bool>, Span),
    Function(Box<Function>, Span),
    TypeParams(ThinVec<Type>),
    Attributes(ThinVec<Attribute>),
}

struct Declarator {
    name: Option<Path>,
    modifiers: ThinVec<Modifier>,
    /// The names of an old-style definition's parameters.
    kr_names: ThinVec<Ident>,
}

impl Parser<'_> {
    /// A type without a name: `int *[3]`.
    pub(super) fn type_name(&mut self) -> Parsed<Type> {
        let specifiers = self.type_words()?;
        let declarator = self.nested(|parser| parser.declarator(Naming::Abstract))?;
        Ok(fold(declarator, specifiers.ty).0.ty)
    }

    /// Specifiers that must hold a type.
    fn type_words(&mut self) -> Parsed<Specifiers> {
        if !self.begins_type(0) && !self.is_name() && !self.is(Tok::Extension) {
            return self.unexpected("a type");
        }
        if self.is_name() && !self.begins_type(0) {
            // Nobody declared it, but only a type can stand here.
            let start = self.span();
            let name = self.path()?;
            let kind = TypeKind::Named(name, self.type_arguments()?);
            let mut ty = Type::new(kind, self.since(start));
            self.tquals(&mut ty.quals);
            return Ok(Specifiers { ty, storage: ThinVec::new(), is_inline: false, attributes: ThinVec::new() });
        }
        self.specifiers(false)
    }

    /// A parameter: a type with or without a name.
    pub(super) fn param(&mut self) -> Parsed<Param> {
        let register = self.is(Tok::Register);
        if register {
            self.bump();
        }
        let specifiers = self.type_words()?;
        let declarator = self.nested(|parser| parser.declarator(Naming::Either))?;
        let (declared, _) = fold(declarator, specifiers.ty);
        let mut attributes = declared.attributes;
        attributes.extend(specifiers.attributes);
        attributes.extend(self.attributes()?);
        let mut ty = declared.ty;
        if let TypeKind::Function(function) = &mut ty.kind {
            function.attributes.append(&mut attributes);
        }
        Ok(Param { name: declared.name.map(|path| Ident { name: path.name, span: path.span }), ty, attributes })
    }

    /// A declarator, folded over `base`, and the names of an old-style parameter list.
    pub(super) fn declarator_of(&mut self, base: Type) -> Parsed<(Declared, ThinVec<Ident>)> {
        let declarator = self.nested(|parser| parser.declarator(Naming::Either))?;
        Ok(fold(declarator, base))
    }

    fn declarator(&mut self, naming: Naming) -> Parsed<Declarator> {
        let mut pointers = ThinVec::new();
        while matches!(self.kind(), Tok::Star | Tok::At | Tok::Question) {
            if pointers.len() > super::DEPTH_LIMIT as usize {
                return self.fail(self.span(), "too many pointers to pointers");
            }
            pointers.push(self.pointer()?);
        }
        let mut declarator = self.direct_declarator(naming)?;
        declarator.modifiers.extend(pointers.into_iter().rev());
        Ok(declarator)
    }

    fn tquals(&mut self, quals: &mut Quals) {
        loop {
            match self.kind() {
                Tok::Const => quals.is_const = true,
                Tok::Volatile => quals.is_volatile = true,
                Tok::Restrict => quals.is_restrict = true,
                _ => return,
            }
            self.bump();
        }
    }

    fn pointer(&mut self) -> Parsed<Modifier> {
        let span = self.span();
        let sigil = match self.kind() {
            Tok::Star => Sigil::Star,
            Tok::At => Sigil::At,
            _ => Sigil::Question,
        };
        self.bump();
        let mut pointer = Pointer {
            target: Type::int(span),
            sigil,
            bound: None,
            quals: ThinVec::new(),
            effect: None,
            attributes: ThinVec::new(),
        };
        if sigil != Sigil::Question && self.eat(Tok::LBrace) {
            let bound = if self.is(Tok::TypeVar) {
                let start = self.span();
                let var = self.type_var()?;
                let ty = Type::new(TypeKind::Var(var), self.since(start));
                Expr { kind: crate::ast::ExprKind::ValueOf(Box::new(ty)), span: self.since(start) }
            } else {
                self.assignment()?
            };
            pointer.bound = Some(Box::new(bound));
            self.expect(Tok::RBrace)?;
        }
        loop {
            let qual = match self.kind() {
                Tok::QThin => PointerQual::Thin,
                Tok::QFat => PointerQual::Fat,
                Tok::QZeroTerm => PointerQual::ZeroTerm,
                Tok::QNoZeroTerm => PointerQual::NoZeroTerm,
                Tok::QNotNull => PointerQual::NotNull,
                Tok::QNullable => PointerQual::Nullable,
                Tok::QAutoreleased => PointerQual::Autoreleased,
                Tok::AqualShort => {
                    let aqual = self.aqual()?;
                    pointer.quals.push(PointerQual::Aqual(aqual));
                    continue;
                }
                kind @ (Tok::QAqual | Tok::QNumelts | Tok::QRegion | Tok::QEffect) => {
                    self.bump();
                    self.expect(Tok::LParen)?;
                    match kind {
                        Tok::QAqual => pointer.quals.push(PointerQual::Aqual(self.aqual()?)),
                        Tok::QNumelts => pointer.bound = Some(Box::new(self.assignment()?)),
                        _ => pointer.effect = Some(self.type_argument()?),
                    }
                    self.expect(Tok::RParen)?;
                    continue;
                }
                _ => break,
            };
            self.bump();
            pointer.quals.push(qual);
        }
        self.pointer_effect(&mut pointer)?;
        pointer.attributes = self.attributes()?;
        let mut quals = Quals::default();
        self.tquals(&mut quals);
        Ok(Modifier::Pointer(Box::new(pointer), quals, self.since(span)))
    }

    /// `` `r ``, `` `r+`s `` or `_`.
    fn pointer_effect(&mut self, pointer: &mut Pointer) -> Parsed<()> {
        let start = self.span();
        if self.is(Tok::Underscore) {
            self.bump();
            pointer.effect = Some(Type::new(TypeKind::Infer(None), start));
            return Ok(());
        }
        if !self.is(Tok::TypeVar) {
            return Ok(());
        }
        let first = self.region_of(pointer)?;
        if !self.more_regions() {
            pointer.effect = Some(first);
            return Ok(());
        }
        let mut parts = thin_vec![first];
        while self.more_regions() {
            self.bump();
            parts.push(self.region_of(pointer)?);
        }
        pointer.effect = Some(Type::new(TypeKind::EffectJoin(parts), self.since(start)));
        Ok(())
    }

    fn more_regions(&self) -> bool {
        self.is(Tok::Plus) && self.kind_at(1) == Tok::TypeVar
    }

    /// One region of a pointer; the alias qualifier that may stand with it is the pointer's.
    fn region_of(&mut self, pointer: &mut Pointer) -> Parsed<Type> {
        let start = self.span();
        let var = self.type_var()?;
        if let Some(aqual) = &var.aqual {
            pointer.quals.push(PointerQual::Aqual((**aqual).clone()));
        }
        Ok(Type::new(TypeKind::Var(var), self.since(start)))
    }

    fn direct_declarator(&mut self, naming: Naming) -> Parsed<Declarator> {
        let mut declarator = Declarator { name: None, modifiers: ThinVec::new(), kr_names: ThinVec::new() };
        match self.kind() {
            Tok::Name | Tok::QualifiedName if naming == Naming::Either => declarator.name = Some(self.path()?),
            _ if naming == Naming::Either && self.keyword_is_declared() => {
                let Ident { name, span } = self.keyword_as_name();
                declarator.name = Some(Path { qualifier: None, name, span });
            }
            Tok::LParen if self.paren_nests(naming) => {
                self.bump();
                let attributes = self.attributes()?;
                declarator = self.nested(|parser| parser.declarator(naming))?;
                if !attributes.is_empty() {
                    declarator.modifiers.push(Modifier::Attributes(attributes));
                }
                self.expect(Tok::RParen)?;
            }
            _ => {}
        }
        loop {
            let start = self.span();
            if declarator.modifiers.len() > super::DEPTH_LIMIT as usize {
                return self.fail(start, "this declarator has too many parts");
            }
            match self.kind() {
                Tok::LBracket => {
                    self.bump();
                    let mut quals = Quals::default();
                    self.tquals(&mut quals);
                    if let Some(pointer) = self.fat_array(start) {
                        declarator.modifiers.push(pointer);
                        continue;
                    }
                    let len = if self.is(Tok::RBracket) { None } else { Some(self.assignment()?) };
                    self.expect(Tok::RBracket)?;
                    let zeroterm = match self.kind() {
                        Tok::QZeroTerm => Some(true),
                        Tok::QNoZeroTerm => Some(false),
                        _ => None,
                    };
                    if zeroterm.is_some() {
                        self.bump();
                    }
                    declarator.modifiers.push(Modifier::Array(len, zeroterm, self.since(start)));
                }
                Tok::LParen => {
                    self.bump();
                    if self.old_style_names() && naming == Naming::Either && declarator.name.is_some() {
                        declarator.kr_names = self.list(Tok::RParen, |parser| parser.ident())?;
                        declarator.modifiers.push(Modifier::Function(Box::default(), self.since(start)));
                        continue;
                    }
                    let function = self.params_and_more()?;
                    declarator.modifiers.push(Modifier::Function(Box::new(function), self.since(start)));
                }
                Tok::Lt => {
                    self.bump();
                    let params = self.type_list()?;
                    declarator.modifiers.push(Modifier::TypeParams(params));
                }
                Tok::Attribute => {
                    let attributes = self.attributes()?;
                    declarator.modifiers.push(Modifier::Attributes(attributes));
                }
                _ => return Ok(declarator),
            }
        }
    }

    /// Does `(` open a declarator in parentheses, rather than parameters?
    fn paren_nests(&self, naming: Naming) -> bool {
        match self.kind_at(1) {
            Tok::Star | Tok::At | Tok::Question | Tok::LParen | Tok::LBracket | Tok::Lt => true,
            Tok::Attribute => true,
            Tok::Name | Tok::QualifiedName => naming == Naming::Either && !self.names_type(1),
            _ => false,
        }
    }

    /// After `(`: names only, none of them a type's, up to `)`, and then a definition follows.
    fn old_style_names(&self) -> bool {
        let mut ahead = 0;
        loop {
            if self.kind_at(ahead) != Tok::Name || self.names_type(ahead) {
                return false;
            }
            match self.kind_at(ahead + 1) {
                Tok::Comma => ahead += 2,
                Tok::RParen => {
                    let after = ahead + 2;
                    return self.kind_at(after) == Tok::LBrace
                        || self.begins_type(after)
                        || self.kind_at(after) == Tok::Register;
                }
                _ => return false,
            }
        }
    }

    /// After `(`: parameters, effect, constraints, `)`, contracts.
    fn params_and_more(&mut self) -> Parsed<Function> {
        let mut function = Function::default();
        if self.is(Tok::Void) && self.kind_at(1) == Tok::RParen {
            self.bump();
        }
        while !matches!(self.kind(), Tok::RParen | Tok::Semi | Tok::Colon | Tok::End) {
            if self.eat(Tok::Ellipsis) {
                if matches!(self.kind(), Tok::RParen | Tok::Semi | Tok::Colon) {
                    function.c_varargs = true;
                } else {
                    let inject = self.is(Tok::Name) && self.text() == "inject" && self.kind_at(1) != Tok::RParen;
                    if inject {
                        self.bump();
                    }
                    function.varargs = Some(Box::new(VarArgs { inject, param: self.param()? }));
                }
                break;
            }
            function.params.push(self.param()?);
            if !self.eat(Tok::Comma) {
                break;
            }
        }
        if self.eat(Tok::Semi) {
            function.effect = Some(self.type_argument()?);
        }
        if self.eat(Tok::Colon) {
            function.constraints = self.constraints()?;
        }
        self.expect(Tok::RParen)?;
        loop {
            let kind = match self.kind() {
                Tok::QChecks => ContractKind::Checks,
                Tok::QRequires => ContractKind::Requires,
                Tok::QEnsures => ContractKind::Ensures,
                Tok::QThrows => ContractKind::Throws,
                _ => return Ok(function),
            };
            self.bump();
            self.expect(Tok::LParen)?;
            let condition = self.conditional()?;
            self.expect(Tok::RParen)?;
            function.contracts.push(Contract { kind, condition });
        }
    }

    pub(super) fn constraints(&mut self) -> Parsed<ThinVec<Constraint>> {
        let mut constraints = ThinVec::new();
        loop {
            constraints.push(self.constraint()?);
            if !self.eat(Tok::Comma) {
                return Ok(constraints);
            }
        }
    }

    fn constraint(&mut self) -> Parsed<Constraint> {
        if self.is(Tok::Name) && self.kind_at(1) == Tok::LParen {
            let word = self.ident()?;
            self.bump();
            let of = self.type_argument()?;
            self.expect(Tok::RParen)?;
            return Ok(Constraint::Named(word, of));
        }
        if matches!(
            self.kind(),
            Tok::Aliasable | Tok::Unique | Tok::Refcnt | Tok::Restricted | Tok::AqualShort | Tok::Aquals
        ) {
            let aqual = self.aqual()?;
            self.expect(Tok::Ge)?;
            return Ok(Constraint::QualBound(aqual, self.type_argument()?));
        }
        let left = self.type_argument()?;
        if self.eat(Tok::Or) {
            return Ok(Constraint::Disjoint(left, self.type_argument()?));
        }
        if !self.eat(Tok::Le) && !self.eat(Tok::Gt) {
            return self.unexpected("`<=`, `>` or `|`");
        }
        Ok(Constraint::Outlives(left, self.type_var()?))
    }
}

/// Folds a declarator over the type before it.
fn fold(declarator: Declarator, base: Type) -> (Declared, ThinVec<Ident>) {
    let mut ty = base;
    let mut type_params = ThinVec::new();
    let mut attributes = ThinVec::new();
    for modifier in declarator.modifiers.into_iter().rev() {
        match modifier {
            Modifier::Pointer(mut pointer, quals, span) => {
                let whole = ty.span.to(span);
                pointer.target = ty;
                ty = Type { kind: TypeKind::Pointer(pointer), quals, span: whole };
            }
            Modifier::Array(len, zeroterm, span) => {
                let whole = ty.span.to(span);
                ty = Type::new(TypeKind::Array(Box::new(Array { element: ty, len, zeroterm })), whole);
            }
            Modifier::Function(mut function, span) => {
                let whole = ty.span.to(span);
                function.result = Some(ty);
                ty = Type::new(TypeKind::Function(function), whole);
            }
            Modifier::TypeParams(params) => match &mut ty.kind {
                TypeKind::Function(function) => function.type_params = params,
                _ => type_params = params,
            },
            Modifier::Attributes(more) => match &mut ty.kind {
                TypeKind::Function(function) => function.attributes.extend(more),
                _ => attributes.extend(more),
            },
        }
    }
    (Declared { name: declarator.name, ty, type_params, attributes }, declarator.kr_names)
}
