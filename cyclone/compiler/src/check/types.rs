//! Types as written become [`Ty`]s, with the defaults of their position filled in.
//!
//! What is not written - regions and alias qualifiers of pointers, arguments of typedefs, `_` - becomes what [`Position`] says.
//! Whatever stands in a type is read for a [`Kind`] that its place wants; the kinds of type variables are found from that
//! ([`super::variables`]).

use super::Checker;
use crate::ast::{self, IntSize, PointerQual, Quals, Sigil, Sign, TypeKind};
use crate::diagnostics::{Code, Diagnostic};
use crate::source::Span;
use crate::symbol::Symbol;
use crate::types::unify::kind_fits;
use crate::types::{Alias, Array, Kind, Member, Pointer, Signedness, Substitution, Ty, TyKind, TyVar};
use std::rc::Rc;

/// Where a type stands: what the parts that are not written become.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Position {
    /// A parameter: a region that is not written is a fresh type parameter of the function.
    Parameter,
    /// A result, a member, a global, a typedef, a type argument outside of bodies: the heap.
    Heap,
    /// In a body: to be inferred.
    Body,
}

impl Checker<'_> {
    /// A type, with the qualifiers of what has it. Wrong parts are reported and become `Error`.
    pub fn read_type(&mut self, ty: &ast::Type, position: Position) -> (Ty, Quals) {
        self.read(ty, Kind::Any, position)
    }

    /// A set of regions.
    pub fn read_effect(&mut self, ty: &ast::Type, position: Position) -> Ty {
        let (effect, _) = self.read(ty, Kind::Effect, position);
        self.plain_effect(effect, ty.span)
    }

    /// Reports a region that brings a qualifier along where only regions are meant.
    pub(super) fn plain_effect(&mut self, effect: Ty, span: Span) -> Ty {
        if let TyKind::Place(..) = self.types.get(effect) {
            let message = "`U` and `RC` are no regions here; write an alias qualifier instead";
            self.error(Code::WrongKind, span, message);
        }
        self.types.join([effect])
    }

    /// A number of the level of types: ``  `n ``, `valueof_t(8)`.
    pub fn read_number_type(&mut self, ty: &ast::Type, position: Position) -> Ty {
        self.read(ty, Kind::Int, position).0
    }

    /// A type, effect, qualifier or number: what a place of this kind wants.
    pub(super) fn read(&mut self, ty: &ast::Type, want: Kind, position: Position) -> (Ty, Quals) {
        let (out, from_typedef) = self.read_unchecked(ty, want, position);
        let quals = Quals {
            is_const: ty.quals.is_const || from_typedef.is_const,
            is_volatile: ty.quals.is_volatile || from_typedef.is_volatile,
            is_restrict: ty.quals.is_restrict || from_typedef.is_restrict,
        };
        let have = self.types.kind(out);
        if matches!(self.types.get(out), TyKind::Error) || kind_fits(have, want) {
            return (self.qualify_elements(out, quals), quals);
        }
        // An unknown type that is wanted in a register is one that fits it.
        if let TyKind::Evar(evar) = *self.types.get(out)
            && kind_fits(want, have)
        {
            let (level, alias) = (self.types.evar_level(evar), self.types.evar_alias(evar));
            self.types.restrict(evar, level, want, alias);
            return (out, quals);
        }
        let shown = self.show(out);
        let message =
            format!("`{shown}` has kind {}, but kind {} is needed here", kind_letter(have), kind_letter(want));
        self.error(Code::WrongKind, ty.span, message);
        (self.make(TyKind::Error), quals)
    }

    /// In C, qualifiers of an array are those of its elements.
    fn qualify_elements(&mut self, ty: Ty, quals: Quals) -> Ty {
        if quals == Quals::default() {
            return ty;
        }
        let TyKind::Array(array) = self.types.get(ty) else { return ty };
        let mut array = array.clone();
        array.quals.is_const |= quals.is_const;
        array.quals.is_volatile |= quals.is_volatile;
        self.make(TyKind::Array(array))
    }

    fn read_unchecked(&mut self, ty: &ast::Type, want: Kind, position: Position) -> (Ty, Quals) {
        let kind = match &ty.kind {
            TypeKind::Void => TyKind::Void,
            TypeKind::Int(sign, size) => TyKind::Int(signedness(*sign, *size), *size),
            TypeKind::Float(size) => TyKind::Float(*size),
            TypeKind::Complex(size) => TyKind::Complex(*size),
            TypeKind::VaList => TyKind::VaList,
            TypeKind::Named(path, args) => return self.read_typedef(path, args, position, ty.span),
            TypeKind::Aggregate(aggregate) => {
                return (self.aggregate_type(aggregate, position, ty.span), Quals::default());
            }
            TypeKind::Enum(enumeration) => return (self.enum_type(enumeration, ty.span), Quals::default()),
            TypeKind::Datatype(datatype) => {
                return (self.datatype_type(datatype, position, ty.span), Quals::default());
            }
            TypeKind::TypeOf(operand) => return (self.expr(operand, None).ty, Quals::default()),
            TypeKind::Var(var) => return (self.read_variable(var, want, position), Quals::default()),
            TypeKind::Infer(kind) => {
                let kind = kind.map_or(want, |ident| self.read_kind(&ident).0);
                return (self.unwritten(kind, Alias::Restricted, position, ty.span), Quals::default());
            }
            TypeKind::Tuple(members) => {
                let members = members.iter().map(|member| self.read_member(member, position)).collect();
                TyKind::Tuple(members)
            }
            TypeKind::RegionHandle(region) => TyKind::RegionHandle(match region {
                Some(region) => self.read_handle(region, position),
                None => self.unwritten(Kind::Effect, Alias::Aliasable, position, ty.span),
            }),
            TypeKind::TagHandle(number) => TyKind::TagHandle(match number {
                Some(number) => self.read_number_type(number, position),
                None => self.unwritten(Kind::Int, Alias::Aliasable, position, ty.span),
            }),
            TypeKind::AqualHandle(aqual) => TyKind::AqualHandle(self.read_aqual(aqual, position)),
            TypeKind::ValueOf(value) => return (self.read_number(value, position), Quals::default()),
            TypeKind::Subset(param, condition) => {
                return (self.read_subset(param, condition, want, position), Quals::default());
            }
            TypeKind::Pointer(pointer) => return (self.read_pointer(pointer, position), Quals::default()),
            TypeKind::Array(array) => return (self.read_array(array, position), Quals::default()),
            TypeKind::Function(function) => {
                let function = self.read_function_type(function, &[], position);
                TyKind::Function(Rc::new(function))
            }
            TypeKind::RegionSet(parts) | TypeKind::EffectJoin(parts) => {
                let parts: Vec<Ty> = parts.iter().map(|part| self.read_effect(part, position)).collect();
                return (self.types.join(parts), Quals::default());
            }
            TypeKind::RegionsOf(of) => {
                let (of, _) = self.read(of, Kind::Any, position);
                let regions = self.make(TyKind::RegionsOf(of));
                return (self.types.join([regions]), Quals::default());
            }
            TypeKind::Aqual(aqual) => return (self.read_aqual(aqual, position), Quals::default()),
        };
        (self.make(kind), Quals::default())
    }

    /// A component of a tuple or of a constructor, which has a size.
    pub(super) fn read_member(&mut self, param: &ast::Param, position: Position) -> Member {
        let (ty, quals) = self.read(&param.ty, Kind::Memory, position);
        Member { name: param.name.map(|name| name.name), ty, quals }
    }

    /// An alias qualifier.
    pub fn read_aqual(&mut self, aqual: &ast::Aqual, position: Position) -> Ty {
        let kind = match aqual {
            ast::Aqual::Var(var) => return self.read_variable(var, Kind::Aqual, position),
            ast::Aqual::Of(of) => {
                let (of, _) = self.read(of, Kind::Any, position);
                return self.types.aquals_of(of);
            }
            constant => TyKind::Aqual(constant_alias(constant).unwrap_or(Alias::Restricted)),
        };
        self.make(kind)
    }

    /// What stands for a part that is not written.
    pub(super) fn unwritten(&mut self, kind: Kind, alias: Alias, position: Position, span: Span) -> Ty {
        match position {
            Position::Body if kind == Kind::Aqual && self.reading.in_function > 0 => {
                self.make(TyKind::Aqual(Alias::Aliasable))
            }
            Position::Body => {
                let level = self.level() + self.reading.depth;
                self.types.fresh_bounded(kind, level, alias)
            }
            Position::Parameter if kind == Kind::Aqual => self.make(TyKind::Aqual(Alias::Aliasable)),
            Position::Parameter if self.reading.prototype.is_some() => {
                let var = self.fresh_parameter(kind, span);
                self.make(TyKind::Var(var))
            }
            Position::Parameter | Position::Heap => match kind {
                Kind::Effect => self.make(TyKind::Heap),
                Kind::Aqual => self.make(TyKind::Aqual(Alias::Aliasable)),
                Kind::Bool => self.make(TyKind::False),
                Kind::Bound => {
                    let one = self.make(TyKind::Nat(1));
                    self.make(TyKind::Thin(one))
                }
                _ => self.argument_in_c(kind, alias, span).unwrap_or_else(|| {
                    self.error(
                        Code::WrongType,
                        span,
                        "a type must be written here: it is not inferred outside of functions",
                    );
                    self.make(TyKind::Error)
                }),
            },
        }
    }

    fn read_typedef(&mut self, path: &ast::Path, args: &[ast::Type], position: Position, span: Span) -> (Ty, Quals) {
        let Some(id) = self.lookup_typedef(path) else {
            self.unknown_type(path);
            return (self.make(TyKind::Error), Quals::default());
        };
        let typedef = self.names.typedef(id);
        let (ty, quals) = (typedef.ty, typedef.quals);
        if typedef.params.is_empty() && args.is_empty() {
            return (ty, quals);
        }
        let (name, params) = (typedef.name, typedef.params.clone());
        let args = self.read_arguments(name, &params, args, position, span);
        let map = Substitution::of(&params, &args);
        (self.types.substitute(ty, &map), quals)
    }

    /// Arguments for type parameters; those that are not written are filled in.
    pub(super) fn read_arguments(
        &mut self,
        of: Symbol,
        params: &[TyVar],
        args: &[ast::Type],
        position: Position,
        span: Span,
    ) -> Rc<[Ty]> {
        if args.len() > params.len() {
            let message = format!("`{of}` takes {} type arguments, not {}", params.len(), args.len());
            self.error(Code::WrongArguments, span, message);
        }
        if params.is_empty() {
            return self.types.no_arguments();
        }
        let mut out = Vec::with_capacity(params.len());
        // The qualifier that an argument for a region brings for the parameter after it.
        let mut by_region = None;
        for (at, &param) in params.iter().enumerate() {
            let (kind, alias) = (self.types.var(param).kind, self.types.var(param).alias);
            let written =
                args.get(at).filter(|arg| !matches!(arg.kind, TypeKind::Infer(_)) || !self.types.is_place(param));
            let Some(arg) = written else {
                let unwritten = match (kind, by_region.take()) {
                    (Kind::Aqual, Some(aqual)) => aqual,
                    _ if position == Position::Body && self.types.is_place(param) => {
                        let level = self.level() + self.reading.depth;
                        self.types.fresh_for(param, level)
                    }
                    _ => self.unwritten(kind, alias, position, span),
                };
                out.push(unwritten);
                continue;
            };
            // A type used inside of its own definition, before the kinds of its parameters are known.
            if self.is_open(param)
                && let TypeKind::Var(var) = &arg.kind
                && self.lookup_tyvar(var.name) == Some(param)
            {
                out.push(self.make(TyKind::Var(param)));
                continue;
            }
            let (mut ty, _) = self.read(arg, kind, position);
            let next = params.get(at + 1).map(|&next| self.types.var(next).kind);
            if kind == Kind::Effect && next == Some(Kind::Aqual) && args.len() == at + 1 && !self.types.is_place(param)
            {
                (ty, by_region) = self.split_region(ty);
            }
            if matches!(kind, Kind::Any | Kind::Memory | Kind::Boxed | Kind::Aqual) {
                self.check_alias_bound(alias, ty, arg.span);
            }
            out.push(ty);
        }
        out.into()
    }

    /// A type parameter that is freely copied takes no unique or counted pointer.
    fn check_alias_bound(&mut self, bound: Alias, ty: Ty, span: Span) {
        let aqual = self.types.aquals_of(ty);
        if matches!(self.types.get(ty), TyKind::Var(_)) {
            // Whoever instantiates the variable is asked.
            return;
        }
        if matches!(self.types.get(aqual), TyKind::Evar(_)) || bound.admits(self.types.alias_bound(aqual)) {
            return;
        }
        let shown = self.show(ty);
        self.error(Code::WrongType, span, format!("`{shown}` may not be copied freely, as this type argument must"));
    }

    fn read_pointer(&mut self, pointer: &ast::Pointer, position: Position) -> Ty {
        let (target, quals) = self.read(&pointer.target, Kind::Any, position);
        let mut aqual = None;
        let region = match &pointer.effect {
            Some(effect) => match region_word(effect) {
                Some(alias) => {
                    aqual = Some(self.make(TyKind::Aqual(alias)));
                    self.make(TyKind::Heap)
                }
                None => {
                    let place = self.read_handle(effect, position);
                    let (region, of_place) = self.split_region(place);
                    aqual = of_place;
                    region
                }
            },
            None => self.unwritten(Kind::Effect, Alias::Restricted, position, pointer.target.span),
        };
        let mut fat = pointer.sigil == Sigil::Question;
        let mut nullable = pointer.sigil != Sigil::At;
        let mut zeroterm = self.is_character(target);
        let mut autoreleased = false;
        for qual in &pointer.quals {
            match qual {
                PointerQual::Thin => fat = false,
                PointerQual::Fat => fat = true,
                PointerQual::ZeroTerm => zeroterm = true,
                PointerQual::NoZeroTerm => zeroterm = false,
                PointerQual::NotNull => nullable = false,
                PointerQual::Nullable => nullable = true,
                PointerQual::Autoreleased => autoreleased = true,
                PointerQual::Aqual(written) => aqual = Some(self.read_aqual(written, position)),
            }
        }
        let aqual = aqual.or_else(|| self.aqual_by_region(region));
        let aqual =
            aqual.unwrap_or_else(|| self.unwritten(Kind::Aqual, Alias::Restricted, position, pointer.target.span));
        let bound = if fat {
            TyKind::Fat
        } else {
            let number = match &pointer.bound {
                Some(number) => self.read_number(number, position),
                None => self.make(TyKind::Nat(1)),
            };
            TyKind::Thin(number)
        };
        if zeroterm
            && let TyKind::Thin(number) = bound
            && matches!(self.types.get(number), TyKind::Nat(0))
        {
            let message = "a zero-terminated pointer cannot point to an empty sequence";
            self.error(Code::WrongType, pointer.target.span, message);
        }
        if zeroterm {
            self.expect_zero_among(target, pointer.target.span);
        }
        let kind = TyKind::Pointer(Pointer {
            target,
            quals,
            region,
            aqual,
            nullable: self.truth_type(nullable),
            bound: self.make(bound),
            zeroterm: self.truth_type(zeroterm),
            autoreleased: match position {
                Position::Body if !autoreleased => self.fresh(Kind::Bool),
                _ => self.truth_type(autoreleased),
            },
        });
        self.make(kind)
    }

    /// A type argument in a body, of the kind of its parameter.
    pub(super) fn read_of_kind(&mut self, ty: &ast::Type, kind: Kind) -> Ty {
        match &ty.kind {
            TypeKind::Aqual(aqual) => self.read_aqual(aqual, Position::Body),
            _ => self.read(ty, kind, Position::Body).0,
        }
    }

    /// True or false at the level of types.
    pub(super) fn truth_type(&mut self, value: bool) -> Ty {
        self.make(if value { TyKind::True } else { TyKind::False })
    }

    /// Pointers to characters are zero-terminated unless they say otherwise.
    fn is_character(&self, ty: Ty) -> bool {
        matches!(self.types.get(ty), TyKind::Int(_, IntSize::Char))
    }

    /// Reports if none of the type's values is what ends a sequence: all bytes zero. It has to be one value, so that nothing is
    /// written to a part of it.
    fn expect_zero_among(&mut self, element: Ty, span: Span) {
        let has_zero = match self.types.get(element) {
            TyKind::Pointer(pointer) => !self.is_false(pointer.nullable),
            kind => matches!(
                kind,
                TyKind::Int(..) | TyKind::Bool | TyKind::Float(_) | TyKind::Enum(_) | TyKind::Evar(_) | TyKind::Error
            ),
        };
        if !has_zero {
            let shown = self.show(element);
            let message = format!("no value of `{shown}` can end a zero-terminated sequence");
            self.error(Code::ZeroTerminated, span, message);
        }
    }

    fn read_array(&mut self, array: &ast::Array, position: Position) -> Ty {
        let (element, quals) = self.read(&array.element, Kind::Memory, position);
        if matches!(self.types.get(element), TyKind::Array(Array { len: None, .. })) {
            self.error(
                Code::Incomplete,
                array.element.span,
                "only the first length of an array of arrays may be left out",
            );
        }
        let len = array.len.as_ref().map(|len| self.read_number(len, position));
        if array.zeroterm == Some(true) {
            self.expect_zero_among(element, array.element.span);
        }
        let zeroterm = self.truth_type(array.zeroterm == Some(true));
        self.make(TyKind::Array(Array { element, quals, len, zeroterm }))
    }

    /// A number of the level of types, written as an expression: a constant, ``valueof(`n)``, or the name of a tag in scope.
    pub(super) fn read_number(&mut self, number: &ast::Expr, position: Position) -> Ty {
        match &number.kind {
            ast::ExprKind::ValueOf(ty) => return self.read_number_type(ty, position),
            ast::ExprKind::Cast(_, inner) if matches!(inner.kind, ast::ExprKind::ValueOf(_)) => {
                return self.read_number(inner, position);
            }
            ast::ExprKind::SizeOfType(ty) => {
                let (ty, _) = self.read(ty, Kind::Any, position);
                return self.types.size_number(ty);
            }
            ast::ExprKind::Name(path) if path.qualifier.is_none() => {
                if let Some(tag) = self.tag_of_name(path) {
                    return tag;
                }
            }
            _ => {}
        }
        match self.constant_ast(number) {
            Some(value) => match u64::try_from(value) {
                Ok(value) => self.make(TyKind::Nat(value)),
                Err(_) => {
                    self.error(Code::WrongType, number.span, "a number of elements cannot be negative");
                    self.make(TyKind::Error)
                }
            },
            None => {
                let report =
                    Diagnostic::error(Code::NotConstant, number.span, "this number must be known at compile time");
                self.diagnostics.push(
                    report.help("`new {for i < n : 0}` makes as many elements as `n` says, for a fat pointer (`?`)"),
                );
                self.make(TyKind::Error)
            }
        }
    }

    /// The type-level number of a parameter or variable that is a tag.
    fn tag_of_name(&mut self, path: &ast::Path) -> Option<Ty> {
        if let Some(&(_, tag)) = self.reading.tags.iter().rev().find(|(name, _)| *name == path.name) {
            return Some(tag);
        }
        let super::names::Value::Local(local) = self.lookup_value(path)? else { return None };
        let ty = self.body.as_ref()?.locals.get(local.0 as usize)?.ty;
        match self.types.get(ty) {
            TyKind::TagHandle(number) => Some(*number),
            _ => None,
        }
    }

    /// Notes the parameters or members that are tags, so that bounds written after them can name them.
    pub(super) fn note_tag(&mut self, name: Option<Symbol>, ty: Ty) {
        if let (Some(name), TyKind::TagHandle(number)) = (name, self.types.get(ty)) {
            let number = *number;
            self.reading.tags.push((name, number));
        }
    }
}

fn signedness(sign: Sign, size: IntSize) -> Signedness {
    match (sign, size) {
        (Sign::Plain, IntSize::Char) => Signedness::Plain,
        (Sign::Unsigned, _) => Signedness::Unsigned,
        (Sign::Plain | Sign::Signed, _) => Signedness::Signed,
    }
}

/// `` `U `` and `` `RC `` after a pointer: the heap, with an alias qualifier.
fn region_word(effect: &ast::Type) -> Option<Alias> {
    match &effect.kind {
        TypeKind::Var(var) if var.name.as_str() == "`U" => Some(Alias::Unique),
        TypeKind::Var(var) if var.name.as_str() == "`RC" => Some(Alias::Refcnt),
        _ => None,
    }
}

/// A qualifier written as a word.
pub(super) fn constant_alias(aqual: &ast::Aqual) -> Option<Alias> {
    match aqual {
        ast::Aqual::Aliasable => Some(Alias::Aliasable),
        ast::Aqual::Unique => Some(Alias::Unique),
        ast::Aqual::Refcnt => Some(Alias::Refcnt),
        ast::Aqual::Restricted => Some(Alias::Restricted),
        ast::Aqual::Var(_) | ast::Aqual::Of(_) => None,
    }
}

/// The letter of a kind, for messages.
pub(super) fn kind_letter(kind: Kind) -> &'static str {
    match kind {
        Kind::Any => "A (any type)",
        Kind::Memory => "M (a type whose size is known)",
        Kind::Boxed => "B (a type that fits a register)",
        Kind::Effect => "E (regions)",
        Kind::Int => "I (a number)",
        Kind::Aqual => "Q (an alias qualifier)",
        Kind::Bool => "boolean",
        Kind::Bound => "bound",
    }
}
