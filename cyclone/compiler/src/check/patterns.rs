//! Typing of patterns.
//!
//! A pattern is checked against the type of what it matches, from the outside in. Its variables are made at once but become
//! visible by name only where the owner of the pattern ([`super::switch`]) binds them ([`Checker::bind_pattern`]), because the
//! variables of a clause are known before that (`fallthru` in the clause before gives them values).
//!
//! What a pattern may bind depends on the way to the matched part ([`Way`]): a reference (`*x`) needs a known region, that is a
//! pointer pattern somewhere above, and no package or tagged union between; an owned value can only be taken from a unique path.

use super::aggregate_patterns::union;
use super::names::Value;
use super::types::Position;
use super::{Checker, ast};
use crate::ast::FieldPattern;
use crate::diagnostics::{Code, Diagnostic};
use crate::ownership;
use crate::source::Span;
use crate::symbol::Symbol;
use crate::tree::{ExprKind, LocalId, Pattern, PatternKind};
use crate::types::unify::unify;
use crate::types::{Alias, Constraint, DatatypeId, Kind, Pointer, Quals, Signedness, Ty, TyKind, TyVar, TyVarInfo};
use thin_vec::ThinVec;

/// How the part that a pattern matches is reached.
#[derive(Clone, Copy)]
pub(super) struct Way {
    /// The region it lives in, below a pointer pattern.
    pub(super) region: Option<Ty>,
    /// A reference to it would stay valid: no package and no tagged union is on the way.
    pub(super) may_refer: bool,
    /// Only this way leads to it.
    pub(super) is_unique: bool,
    /// It is inside of what an owned pointer leads to.
    pub(super) below_owner: bool,
    /// It is inside a datatype's value.
    pub(super) in_datatype: bool,
    /// Qualifiers of the place.
    pub(super) quals: Quals,
    /// Whether it is the element that a zero-terminated pointer leads to: true or false at the level of types.
    pub(super) zeroterm: Option<Ty>,
}

/// What a pattern binds.
#[derive(Debug, Default)]
pub struct Bindings {
    /// Variables in order of writing.
    pub locals: ThinVec<LocalId>,
    /// Type variables with their names.
    pub tyvars: Vec<(Symbol, TyVar)>,
    /// Regions of aliases, live where the pattern's variables are.
    pub regions: Vec<TyVar>,
    /// What opened packages promise.
    pub constraints: Vec<Constraint>,
    /// The type of an alias that is not what is asked for: the value has to be converted, where it is a whole `let`'s.
    pub converted: Option<Ty>,
    /// The pattern, or a part of it, was wrong and has been reported.
    pub is_wrong: bool,
}

impl Checker<'_> {
    /// Checks a pattern against what it is to match: a value of type `ty`. `is_unique` says whether only this path leads there.
    pub(super) fn pattern(&mut self, pattern: &ast::Pattern, ty: Ty, is_unique: bool) -> (Pattern, Bindings) {
        let way = Way {
            region: None,
            may_refer: false,
            is_unique,
            below_owner: false,
            in_datatype: false,
            quals: Quals::default(),
            zeroterm: None,
        };
        let mut bindings = Bindings::default();
        // Type variables of patterns are bound one level further in than what is around them.
        let outside = self.level();
        self.set_level(outside + 1);
        self.push_scope();
        let pattern = self.sub_pattern(pattern, ty, way, &mut bindings);
        self.pop_scope();
        self.set_level(outside);
        let is_whole = matches!(pattern.kind, PatternKind::Alias(..));
        if let Some(alias) = bindings.converted.filter(|_| !is_whole) {
            let message = format!("`{}` is not what the pattern says that the alias is", self.show(alias));
            self.error(Code::BadPattern, pattern.span, message);
        }
        (pattern, bindings)
    }

    /// Makes what a pattern binds visible in the current scope, and its variables part of the current block.
    pub(super) fn bind_pattern(&mut self, bindings: &Bindings) {
        for &(name, var) in &bindings.tyvars {
            self.bind_tyvar(name, var);
        }
        for &region in &bindings.regions {
            self.enter_region(region);
        }
        for constraint in &bindings.constraints {
            self.assume(constraint);
        }
        let region = self.body.as_ref().and_then(|body| body.blocks.last()).map(|block| block.region);
        let region = region.map(|region| self.make(TyKind::Var(region)));
        for &id in &bindings.locals {
            let Some(body) = &mut self.body else { continue };
            let local = &mut body.locals[id.0 as usize];
            local.region = region.unwrap_or(local.region);
            let name = local.name;
            self.bind_local(name, id);
        }
    }

    pub(super) fn sub_pattern(&mut self, pattern: &ast::Pattern, ty: Ty, way: Way, out: &mut Bindings) -> Pattern {
        let span = pattern.span;
        let (ty, way) = match &pattern.kind {
            ast::PatternKind::Name(_) | ast::PatternKind::As(..) | ast::PatternKind::Reference(..) => (ty, way),
            _ => self.inside_constraint(ty, way),
        };
        let kind = match &pattern.kind {
            ast::PatternKind::Wild => PatternKind::Wild,
            ast::PatternKind::Name(path) => self.name_pattern(path, ty, way, out),
            ast::PatternKind::As(name, inner) => self.bind(*name, Some(inner), ty, way, out),
            ast::PatternKind::Reference(name, inner) => self.reference(*name, inner.as_deref(), ty, way, out),
            ast::PatternKind::Deref(inner) => self.deref_pattern(inner, ty, way, span, out),
            ast::PatternKind::Const(constant) => self.constant_pattern(constant, ty),
            ast::PatternKind::Tuple(fields, open) => self.tuple_pattern(fields, *open, ty, way, span, out),
            ast::PatternKind::Constructor(path, parts, open) => match self.lookup_value(path) {
                Some(Value::Constructor(id, index)) if !self.names_structure(path, ty) => {
                    self.constructor_pattern((id, index), (parts, *open), ty, way, span, out)
                }
                Some(Value::EnumConst(..)) => {
                    self.wrong_pattern(span, format!("the enumeration constant `{}` takes no arguments", path.name))
                }
                _ => match self.lookup_aggregate(path) {
                    Some(id) => {
                        let fields: Vec<FieldPattern> = parts
                            .iter()
                            .map(|part| FieldPattern { designators: ThinVec::new(), pattern: part.clone() })
                            .collect();
                        self.aggregate_pattern(id, (&[], &fields, *open), ty, way, span, out)
                    }
                    None => self.wrong_pattern(span, format!("`{}` is not a constructor or a structure", path.name)),
                },
            },
            ast::PatternKind::Struct(path, types, fields, open) => {
                self.struct_pattern(path.as_ref(), (types, fields, *open), ty, way, span, out)
            }
            ast::PatternKind::Alias(_, region, target, name) => {
                self.alias_pattern(region, target, *name, ty, way, span, out)
            }
            ast::PatternKind::Tag(name, var) => self.tag_pattern(*name, var.as_deref(), ty, span, out),
        };
        if matches!(kind, PatternKind::Wild) {
            self.bind_ignored(pattern, out);
        }
        Pattern { kind, ty, span }
    }

    /// The variables of a pattern that was wrong: so that their uses are no further errors.
    fn bind_ignored(&mut self, pattern: &ast::Pattern, out: &mut Bindings) {
        let name = match &pattern.kind {
            ast::PatternKind::Name(path) if path.qualifier.is_none() => {
                Some(ast::Ident { name: path.name, span: path.span })
            }
            ast::PatternKind::As(name, _)
            | ast::PatternKind::Reference(name, _)
            | ast::PatternKind::Alias(_, _, _, name)
            | ast::PatternKind::Tag(name, _) => Some(*name),
            _ => None,
        };
        if let Some(name) = name {
            out.is_wrong = true;
            let error = self.make(TyKind::Error);
            self.add_local(name, error, out);
        }
        match &pattern.kind {
            ast::PatternKind::As(_, inner)
            | ast::PatternKind::Reference(_, Some(inner))
            | ast::PatternKind::Deref(inner) => self.bind_ignored(inner, out),
            ast::PatternKind::Constructor(_, parts, _) => {
                out.is_wrong = true;
                parts.iter().for_each(|part| self.bind_ignored(part, out));
            }
            ast::PatternKind::Tuple(fields, _) | ast::PatternKind::Struct(_, _, fields, _) => {
                out.is_wrong = true;
                fields.iter().for_each(|field| self.bind_ignored(&field.pattern, out));
            }
            ast::PatternKind::Const(_) => out.is_wrong = true,
            _ => {}
        }
    }

    pub(super) fn wrong_pattern(&mut self, span: Span, message: String) -> PatternKind {
        self.error(Code::BadPattern, span, message);
        PatternKind::Wild
    }

    /// Whether the structure that is matched has this name: a constructor may have it, too.
    fn names_structure(&self, path: &ast::Path, ty: Ty) -> bool {
        match self.types.get(ty) {
            TyKind::Aggregate(id, _) => self.lookup_aggregate(path) == Some(*id),
            _ => false,
        }
    }

    /// The matched value has to have the type that the pattern is for.
    pub(super) fn expect_pattern_type(&mut self, found: Ty, wanted: Ty, span: Span) {
        if let Err(mismatch) = unify(&mut self.types, found, wanted) {
            let mut message =
                format!("the pattern is for type `{}`, and not for `{}`", self.show(wanted), self.show(found));
            if !mismatch.reason.is_empty() {
                message = format!("{message}: {}", mismatch.reason);
            }
            let help = self.pattern_advice(found, wanted);
            self.diagnostics.push(Diagnostic { help, ..Diagnostic::error(Code::BadPattern, span, message) });
        }
    }

    fn name_pattern(&mut self, path: &ast::Path, ty: Ty, way: Way, out: &mut Bindings) -> PatternKind {
        match self.lookup_value(path) {
            Some(Value::EnumConst(id, value)) => {
                let enumeration = self.make(TyKind::Enum(id));
                self.expect_number(ty, enumeration, path.span);
                PatternKind::Int(value)
            }
            Some(Value::Constructor(id, index)) => {
                self.constructor_pattern((id, index), (&[], false), ty, way, path.span, out)
            }
            _ if path.qualifier.is_none() => {
                let name = ast::Ident { name: path.name, span: path.span };
                self.bind(name, None, ty, way, out)
            }
            _ => self.wrong_pattern(path.span, format!("`{}` is not a constructor", path.name)),
        }
    }

    fn add_local(&mut self, name: ast::Ident, ty: Ty, out: &mut Bindings) -> LocalId {
        let repeated = self
            .body
            .as_ref()
            .is_some_and(|body| out.locals.iter().any(|local| body.locals[local.0 as usize].name == name.name));
        if repeated {
            self.error(Code::BadPattern, name.span, format!("the pattern binds `{}` twice", name.name));
        }
        let local = self.new_local(name.name, ty, Quals::default(), name.span);
        out.locals.push(local);
        local
    }

    /// `x` and `x as p`.
    fn bind(
        &mut self,
        name: ast::Ident,
        inner: Option<&ast::Pattern>,
        ty: Ty,
        way: Way,
        out: &mut Bindings,
    ) -> PatternKind {
        if let TyKind::Array(array) = self.types.get(ty).clone() {
            if way.below_owner {
                self.error(
                    Code::BadPattern,
                    name.span,
                    format!("`{}` would be a second pointer into the object of a unique pointer", name.name),
                );
            }
            let Some(region) = way.region.filter(|_| way.may_refer) else {
                return self.wrong_pattern(
                    name.span,
                    format!("`{}` would point to an array whose region is not known", name.name),
                );
            };
            let one = self.make(TyKind::Nat(1));
            let len = array.len.unwrap_or(one);
            let bound = self.make(TyKind::Thin(len));
            let quals = union(way.quals, array.quals);
            let pointer = self.pattern_pointer(array.element, quals, region, bound, array.zeroterm);
            let local = self.add_local(name, pointer, out);
            let inner = inner.map(|inner| Box::new(self.sub_pattern(inner, ty, way, out)));
            return PatternKind::Reference(local, inner);
        }
        if self.types.kind(ty) == Kind::Any || self.is_unsized(ty) {
            self.unsized_variable(name, ty);
        }
        if !way.is_unique && !way.in_datatype && ownership::is_owned(&mut self.types, &self.declarations, ty) {
            self.error(
                Code::NotUnique,
                name.span,
                format!("`{}` would take an owned pointer out of a place that can be reached in other ways", name.name),
            );
        }
        let local = self.add_local(name, ty, out);
        let inner = inner.map(|inner| Box::new(self.sub_pattern(inner, ty, way, out)));
        PatternKind::Bind(local, inner)
    }

    /// A thin pointer that is not null, as patterns bind them.
    fn pattern_pointer(&mut self, target: Ty, quals: Quals, region: Ty, bound: Ty, zeroterm: Ty) -> Ty {
        let aqual = self.make(TyKind::Aqual(Alias::Aliasable));
        let no = self.make(TyKind::False);
        self.make(TyKind::Pointer(Pointer {
            target,
            quals,
            region,
            aqual,
            nullable: no,
            bound,
            zeroterm,
            autoreleased: no,
        }))
    }

    /// A pointer into an owned object is worth nothing once that is freed.
    fn refuse_below_owner(&mut self, name: ast::Ident, way: Way) {
        if way.below_owner {
            let message = format!("`{}` would point into what a unique or counted pointer owns", name.name);
            let error = Diagnostic::error(Code::BadPattern, name.span, message);
            self.loophole(error.help("alias the owner first, and match the alias: ``let alias<`r> T *`r a = owner;``"));
        }
    }

    /// `*x` and `*x as p`.
    fn reference(
        &mut self,
        name: ast::Ident,
        inner: Option<&ast::Pattern>,
        ty: Ty,
        way: Way,
        out: &mut Bindings,
    ) -> PatternKind {
        let Some(region) = way.region.filter(|_| way.may_refer) else {
            return self.wrong_pattern(
                name.span,
                format!("`*{}` needs a pointer pattern around it, and no package or tagged union between", name.name),
            );
        };
        if !way.in_datatype && ownership::is_owned(&mut self.types, &self.declarations, ty) {
            self.error(
                Code::BadPattern,
                name.span,
                format!("`*{}` would be a second way to an owned pointer", name.name),
            );
        }
        self.refuse_below_owner(name, way);
        let one = self.make(TyKind::Nat(1));
        let bound = self.make(TyKind::Thin(one));
        let no = self.make(TyKind::False);
        let pointer = self.pattern_pointer(ty, way.quals, region, bound, way.zeroterm.unwrap_or(no));
        let local = self.add_local(name, pointer, out);
        let inner = inner.map(|inner| Box::new(self.sub_pattern(inner, ty, way, out)));
        PatternKind::Reference(local, inner)
    }

    /// `&p`.
    fn deref_pattern(&mut self, inner: &ast::Pattern, ty: Ty, way: Way, span: Span, out: &mut Bindings) -> PatternKind {
        if matches!(self.types.get(ty), TyKind::Evar(_)) {
            let pointer = Pointer {
                target: self.fresh(Kind::Any),
                quals: Quals::default(),
                region: self.fresh(Kind::Effect),
                aqual: self.fresh(Kind::Aqual),
                nullable: self.fresh(Kind::Bool),
                bound: self.fresh(Kind::Bound),
                zeroterm: self.fresh(Kind::Bool),
                autoreleased: self.fresh(Kind::Bool),
            };
            let pointer = self.make(TyKind::Pointer(pointer));
            self.expect_pattern_type(ty, pointer, span);
        }
        let TyKind::Pointer(pointer) = self.types.get(ty).clone() else {
            if !matches!(self.types.get(ty), TyKind::Error) {
                let shown = self.show(ty);
                return self.wrong_pattern(span, format!("the pattern is for a pointer, and not for `{shown}`"));
            }
            let error = self.make(TyKind::Error);
            let inner = self.sub_pattern(inner, error, way, out);
            return PatternKind::Deref(Box::new(inner));
        };
        self.access(pointer.region, span);
        let unique = ownership::is_unique_pointer(&self.types, ty);
        let owned = ownership::is_owned(&mut self.types, &self.declarations, ty);
        let below = Way {
            region: Some(pointer.region),
            may_refer: true,
            is_unique: way.is_unique && unique,
            below_owner: owned,
            quals: pointer.quals,
            zeroterm: Some(pointer.zeroterm),
            ..way
        };
        PatternKind::Deref(Box::new(self.sub_pattern(inner, pointer.target, below, out)))
    }

    /// Whether the pattern's number may be compared with what is matched: any numbers may.
    fn expect_number(&mut self, ty: Ty, of: Ty, span: Span) {
        match self.types.get(ty) {
            TyKind::Int(..) | TyKind::Bool | TyKind::Float(_) | TyKind::Enum(_) | TyKind::TagHandle(_) => {}
            _ => self.expect_pattern_type(ty, of, span),
        }
    }

    fn constant_pattern(&mut self, constant: &ast::Expr, ty: Ty) -> PatternKind {
        let span = constant.span;
        match &constant.kind {
            ast::ExprKind::Null => {
                if !matches!(self.types.get(ty), TyKind::Pointer(_) | TyKind::Error) {
                    let shown = self.show(ty);
                    return self.wrong_pattern(span, format!("NULL is for a pointer, and not for `{shown}`"));
                }
                return PatternKind::Null;
            }
            ast::ExprKind::Float(text) => {
                let double = self.make(TyKind::Float(ast::FloatSize::Double));
                self.expect_number(ty, double, span);
                return PatternKind::Float(*text);
            }
            ast::ExprKind::Unary(ast::UnOp::Minus, inner) => {
                if let ast::ExprKind::Float(text) = &inner.kind {
                    let double = self.make(TyKind::Float(ast::FloatSize::Double));
                    self.expect_number(ty, double, span);
                    return PatternKind::Float(Symbol::new(&format!("-{text}")));
                }
            }
            _ => {}
        }
        if matches!(constant.kind, ast::ExprKind::Comma(..)) {
            let message = "a comma has no meaning in a pattern";
            let report = Diagnostic::error(Code::BadPattern, span, message);
            self.diagnostics.push(report.help("a tuple is matched by `$(.., ..)`"));
            return PatternKind::Wild;
        }
        let value = self.value(constant, None);
        if matches!(value.kind, ExprKind::Error) {
            return PatternKind::Wild;
        }
        self.expect_number(ty, value.ty, span);
        match self
            .constant(&value)
            .and_then(|number| i64::try_from(number).ok().or(u64::try_from(number).ok().map(|bits| bits as i64)))
        {
            Some(number) => PatternKind::Int(number),
            None => {
                let message = "a pattern is a constant, a name, or made of patterns; a condition stands after `&&`";
                self.wrong_pattern(span, message.to_owned())
            }
        }
    }

    /// `D(p, ..)`, and a name alone.
    fn constructor_pattern(
        &mut self,
        (id, index): (DatatypeId, u32),
        (parts, open): (&[ast::Pattern], bool),
        ty: Ty,
        way: Way,
        span: Span,
        out: &mut Bindings,
    ) -> PatternKind {
        let params = self.declarations.datatype(id).params.clone();
        let args = match self.types.get(ty) {
            TyKind::Datatype(other, args) if *other == id => args.clone(),
            TyKind::Constructor(other, at, args) if (*other, *at) == (id, index) => args.clone(),
            _ => {
                let args = self.unknown_arguments(&params);
                let datatype = self.make(TyKind::Datatype(id, args.clone()));
                self.expect_pattern_type(ty, datatype, span);
                args
            }
        };
        let members = self.constructor_params(id, index, &args);
        if parts.len() > members.len() || (parts.len() < members.len() && !open) {
            let name = self.declarations.datatype(id).constructors[index as usize].name;
            self.error(
                Code::BadPattern,
                span,
                format!("`{name}` carries {} values, the pattern has {}", members.len(), parts.len()),
            );
        }
        let mut matched = ThinVec::new();
        for (at, (part, member)) in parts.iter().zip(members.iter()).enumerate() {
            let quals = union(way.quals, member.quals);
            let below = Way { in_datatype: true, is_unique: false, quals, zeroterm: None, ..way };
            matched.push((at, self.sub_pattern(part, member.ty, below, out)));
        }
        PatternKind::Constructor(id, index, matched)
    }

    /// ``alias<`r> T x``.
    #[allow(clippy::too_many_arguments, reason = "the parts of the pattern and what every pattern needs")]
    fn alias_pattern(
        &mut self,
        region: &ast::TypeVar,
        target: &ast::Type,
        name: ast::Ident,
        ty: Ty,
        way: Way,
        span: Span,
        out: &mut Bindings,
    ) -> PatternKind {
        let level = self.level();
        let var = self.types.new_var(TyVarInfo {
            name: region.name,
            kind: Kind::Effect,
            alias: Alias::Aliasable,
            level,
            span: region.span,
        });
        self.bind_tyvar(region.name, var);
        let (wanted, _) = self.read_type(target, Position::Body);
        out.tyvars.push((region.name, var));
        out.regions.push(var);
        let wanted = match (&target.kind, self.types.get(ty).clone()) {
            (ast::TypeKind::Infer(_), TyKind::Pointer(pointer)) => self.alias_of(&pointer, var),
            _ => self.in_alias_region(wanted, ty, var),
        };
        let local = self.add_local(name, wanted, out);
        if way.in_datatype {
            self.error(Code::BadPattern, span, "what a datatype's value carries cannot be aliased");
        } else if let TyKind::Pointer(pointer) = self.types.get(ty).clone()
            && matches!(self.types.get(wanted), TyKind::Pointer(_))
        {
            let alias = self.alias_of(&pointer, var);
            if !self.lent_as(var, |checker| checker.subtype(alias, wanted)) {
                out.converted = Some(alias);
            }
        } else {
            self.error(Code::BadPattern, span, "an alias is made of a pointer, as a pointer");
        }
        PatternKind::Alias(local, var)
    }

    /// The type of an alias of a pointer.
    fn alias_of(&mut self, pointer: &Pointer, var: TyVar) -> Ty {
        let region = self.make(TyKind::Var(var));
        let aqual = self.make(TyKind::Aqual(Alias::Aliasable));
        self.make(TyKind::Pointer(Pointer { region, aqual, ..pointer.clone() }))
    }

    /// An alias of which the written type has the region of the original (a typedef's default) has the alias's own all the same.
    fn in_alias_region(&mut self, wanted: Ty, original: Ty, var: TyVar) -> Ty {
        match (self.types.get(wanted).clone(), self.types.get(original)) {
            (TyKind::Pointer(pointer), TyKind::Pointer(other))
                if self.types.head(pointer.region) == self.types.head(other.region) =>
            {
                let region = self.make(TyKind::Var(var));
                self.make(TyKind::Pointer(Pointer { region, ..pointer }))
            }
            _ => wanted,
        }
    }

    /// ``x<`n>``.
    fn tag_pattern(
        &mut self,
        name: ast::Ident,
        var: Option<&ast::TypeVar>,
        ty: Ty,
        span: Span,
        out: &mut Bindings,
    ) -> PatternKind {
        let level = self.level();
        let (var_name, var_span) = match var {
            Some(var) => (var.name, var.span),
            None => (Symbol::new(&format!("`{}", name.name)), name.span),
        };
        let tyvar = self.types.new_var(TyVarInfo {
            name: var_name,
            kind: Kind::Int,
            alias: Alias::Aliasable,
            level,
            span: var_span,
        });
        if var.is_some() {
            self.bind_tyvar(var_name, tyvar);
            out.tyvars.push((var_name, tyvar));
        }
        let number = self.make(TyKind::Int(Signedness::Unsigned, ast::IntSize::Long));
        self.expect_number(ty, number, span);
        let tag = self.make(TyKind::Var(tyvar));
        let handle = self.make(TyKind::TagHandle(tag));
        let local = self.add_local(name, handle, out);
        PatternKind::Tag(local, tyvar)
    }
}
