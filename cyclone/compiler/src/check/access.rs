//! Places: variables, members, elements, what pointers lead to, and their addresses.
//!
//! A member of a tagged union is [`ExprKind::Member`] where it is written as a whole and [`ExprKind::TaggedMember`], which is
//! checked, everywhere else. A member of an ordinary union that holds pointers may be written and not read.

use super::coerce::wrap;
use super::{Checker, Loopholes};
use crate::ast::{self, Quals};
use crate::diagnostics::{Code, Diagnostic};
use crate::flow::walk::has_effect;
use crate::ownership::owner_around;
use crate::source::Span;
use crate::symbol::Symbol;
use crate::tree::{Check, Checks, Coercion, Expr, ExprKind};
use crate::types::{AggregateId, Kind, Pointer, Ty, TyKind};

/// What is known of a place besides its type.
#[derive(Clone, Copy, Debug)]
pub struct Properties {
    /// Its qualifiers.
    pub quals: Quals,
    /// The region it lives in.
    pub region: Ty,
}

impl Checker<'_> {
    /// Whether an expression is a place.
    pub fn is_place(&self, expr: &Expr) -> bool {
        match &expr.kind {
            ExprKind::Local(_) | ExprKind::Global(_) => !matches!(self.types.get(expr.ty), TyKind::Function(_)),
            ExprKind::Deref(..) | ExprKind::Index(..) | ExprKind::Str(_) | ExprKind::WideStr(_) => true,
            ExprKind::Member(base, _) | ExprKind::TaggedMember(base, ..) => self.is_place(base),
            ExprKind::Aggregate(_) => !matches!(self.types.get(expr.ty), TyKind::Tuple(_)),
            _ => false,
        }
    }

    /// Qualifiers and region of a place; of a value, those of the block around.
    pub fn properties(&mut self, place: &Expr) -> Properties {
        let heap = self.make(TyKind::Heap);
        match &place.kind {
            ExprKind::Local(id) => match &self.body {
                Some(body) => {
                    let local = &body.locals[id.0 as usize];
                    Properties { quals: local.quals, region: local.region }
                }
                None => Properties { quals: Quals::default(), region: heap },
            },
            ExprKind::Global(id) => Properties { quals: self.declarations.global(*id).quals, region: heap },
            ExprKind::Str(_) | ExprKind::WideStr(_) => {
                Properties { quals: Quals { is_const: true, ..Quals::default() }, region: heap }
            }
            ExprKind::Deref(pointer, _) | ExprKind::Index(pointer, ..) => match self.types.get(pointer.ty) {
                TyKind::Pointer(parts) => Properties { quals: parts.quals, region: parts.region },
                _ => Properties { quals: Quals::default(), region: heap },
            },
            ExprKind::Member(base, index) | ExprKind::TaggedMember(base, index, _) => {
                let of_base = self.properties(base);
                let whole = self.base_of(base.ty);
                let own = match self.types.get(whole).clone() {
                    TyKind::Tuple(members) => members.get(*index).map_or(Quals::default(), |member| member.quals),
                    TyKind::Aggregate(..) => self.member_type(whole, *index).1,
                    _ => Quals::default(),
                };
                let quals = Quals {
                    is_const: of_base.quals.is_const || own.is_const || whole != base.ty,
                    is_volatile: of_base.quals.is_volatile || own.is_volatile,
                    is_restrict: own.is_restrict,
                };
                Properties { quals, region: of_base.region }
            }
            _ => {
                let region = match self.body.as_ref().and_then(|body| body.blocks.last()) {
                    Some(block) => self.types.make(TyKind::Var(block.region)),
                    None => heap,
                };
                Properties { quals: Quals::default(), region }
            }
        }
    }

    /// Notes that a variable's address is known to somebody.
    pub fn mark_address_taken(&mut self, place: &Expr) {
        match &place.kind {
            ExprKind::Local(id) => {
                if let Some(body) = &mut self.body {
                    body.locals[id.0 as usize].is_address_taken = true;
                }
            }
            ExprKind::Member(base, _) | ExprKind::TaggedMember(base, ..) => self.mark_address_taken(base),
            _ => {}
        }
    }

    /// The parts of a pointer value; an unknown type becomes a pointer. Reports anything else.
    fn pointer_parts(&mut self, value: &Expr, span: Span) -> Option<Pointer> {
        match self.types.get(value.ty).clone() {
            TyKind::Pointer(parts) => Some(parts),
            TyKind::Error => None,
            TyKind::Evar(_) => {
                let parts = self.unknown_pointer();
                let ty = self.pointer_type(parts.clone());
                match self.try_unify(value.ty, ty) {
                    Ok(()) => Some(parts),
                    Err(_) => {
                        self.error(Code::WrongType, span, "only pointers can be followed");
                        None
                    }
                }
            }
            _ => {
                let shown = self.show(value.ty);
                self.error(Code::WrongType, span, format!("only pointers can be followed; this is `{shown}`"));
                None
            }
        }
    }

    /// `*pointer`: the place it leads to.
    pub fn deref(&mut self, pointer: Expr, span: Span) -> Expr {
        let Some(parts) = self.pointer_parts(&pointer, span) else {
            return Expr::error(&mut self.types, span);
        };
        if matches!(self.types.get(parts.bound), TyKind::Evar(_)) {
            let one = self.thin(1);
            // An unbound variable takes any bound.
            let _ = self.try_unify(parts.bound, one);
        }
        self.access(parts.region, span);
        if matches!(self.types.get(parts.target), TyKind::Void) {
            return self.wrong(Code::WrongType, span, "what a `void *` points to cannot be used");
        }
        let mut checks = self.null_checks(&parts);
        match self.types.get(parts.bound) {
            TyKind::Fat => checks.bounds = Check::Needed,
            TyKind::Thin(count) => match self.types.get(*count) {
                TyKind::Nat(0) => {
                    return self.wrong(Code::OutOfBounds, span, "the pointer leads to no elements");
                }
                TyKind::Nat(_) => {}
                _ => checks.bounds = Check::Needed,
            },
            _ => {}
        }
        Expr { kind: ExprKind::Deref(Box::new(pointer), checks), ty: parts.target, span }
    }

    /// Fat pointers need no null check: they have no elements then.
    fn null_checks(&self, parts: &Pointer) -> Checks {
        let fat = matches!(self.types.get(parts.bound), TyKind::Fat);
        let null = if fat || self.is_false(parts.nullable) { Check::Never } else { Check::Needed };
        Checks { null, ..Checks::NONE }
    }

    /// `base[index]`, of a pointer, an array or a tuple.
    pub fn index(&mut self, base: &ast::Expr, index: &ast::Expr, span: Span) -> Expr {
        let base = self.expr(base, None);
        if let TyKind::Tuple(members) = self.types.get(base.ty).clone() {
            let index_value = self.value(index, None);
            return match self.constant(&index_value).and_then(|at| usize::try_from(at).ok()) {
                Some(at) if at < members.len() => {
                    Expr { kind: ExprKind::Member(Box::new(base), at), ty: members[at].ty, span }
                }
                Some(_) => self.wrong(
                    Code::UnknownName,
                    index.span,
                    format!("the tuple has only {} components", members.len()),
                ),
                None => self.wrong(Code::WrongType, index.span, "a component of a tuple has a constant index"),
            };
        }
        let pointer = self.indexed(base);
        let offset = self.index_value(index);
        let Some(parts) = self.pointer_parts(&pointer, span) else {
            return Expr::error(&mut self.types, span);
        };
        if matches!(self.types.get(parts.bound), TyKind::Evar(_)) {
            let fat = self.make(TyKind::Fat);
            // An unbound variable takes any bound.
            let _ = self.try_unify(parts.bound, fat);
        }
        if let Some(wrong) = self.refuse_steps(&parts, span) {
            return wrong;
        }
        if has_effect(&offset)
            && let Some(owner) = owner_around(&mut self.types, &self.declarations, &pointer)
            && !self.is_unique_path(owner)
        {
            let message = "what the index does could free what is indexed, to which other pointers may lead";
            self.loophole(Diagnostic::error(Code::NotUnique, index.span, message).help("compute the index first"));
            if self.rules.loopholes == Loopholes::Closed {
                return Expr::error(&mut self.types, span);
            }
        }
        self.access(parts.region, span);
        let mut checks = self.null_checks(&parts);
        checks.bounds = Check::Needed;
        let constant = self.constant(&offset);
        if let TyKind::Thin(count) = *self.types.get(parts.bound)
            && let TyKind::Nat(count) = *self.types.get(count)
            && let Some(at) = constant
        {
            if at >= 0 && at < i128::from(count) {
                checks.bounds = Check::Never;
            } else if !self.is_true(parts.zeroterm) {
                let there = if count == 1 { "is one element".to_owned() } else { format!("are {count} elements") };
                let message = format!("element {at} is outside: there {there}");
                let error = Diagnostic::error(Code::OutOfBounds, index.span, message);
                let error = if count == 1 { error.help(self.many_instead(&parts)) } else { error };
                self.diagnostics.push(error);
                return Expr::error(&mut self.types, span);
            }
        } else if self.leads_to_one(&parts) && !matches!(pointer.kind, ExprKind::Coerce(Coercion::Decay, _)) {
            let shown = self.show(pointer.ty);
            let message = format!("a `{shown}` leads to one element: any index but 0 throws `Array_bounds`");
            let warning = Diagnostic::warning(Code::OutOfBounds, index.span, message);
            self.diagnostics.push(warning.help(self.many_instead(&parts)));
        }
        Expr { kind: ExprKind::Index(Box::new(pointer), Box::new(offset), checks), ty: parts.target, span }
    }

    /// Whether only one element is known to be there, and nothing says where more would end.
    pub(super) fn leads_to_one(&self, parts: &Pointer) -> bool {
        let TyKind::Thin(count) = *self.types.get(parts.bound) else { return false };
        matches!(self.types.get(count), TyKind::Nat(1)) && !self.is_true(parts.zeroterm)
    }

    /// How a pointer to many elements is written.
    pub(super) fn many_instead(&self, parts: &Pointer) -> String {
        let element = self.show(parts.target);
        format!("a pointer to many is `{element} ?`, which knows its bounds, or `{element} *@numelts(n)`")
    }

    /// The pointer whose element is named at once: the array may be in a tagged union, or in an owned object.
    fn indexed(&mut self, base: Expr) -> Expr {
        if matches!(self.types.get(base.ty), TyKind::Array(_)) {
            let place = self.guard_unions(base);
            return self.decay_to_follow(place);
        }
        self.loaded(base, None)
    }

    /// The value of a pointer that is followed at once: nothing can free what it leads into before.
    pub fn followed(&mut self, pointer: &ast::Expr) -> Expr {
        let pointer = self.expr(pointer, None);
        self.indexed(pointer)
    }

    /// An index: a whole number.
    pub fn index_value(&mut self, index: &ast::Expr) -> Expr {
        let offset = self.value(index, None);
        self.settle_number(&offset);
        if self.is_integral(offset.ty) {
            return self.promote(offset);
        }
        if matches!(self.types.get(offset.ty), TyKind::Error) {
            return offset;
        }
        let shown = self.show(offset.ty);
        self.wrong(Code::NotNumeric, index.span, format!("an index is a whole number; this is `{shown}`"))
    }

    /// The way to a member, through unnamed aggregates: indices with their types and qualifiers.
    pub fn find_member(&mut self, ty: Ty, name: ast::Ident) -> Option<Vec<(usize, Ty, Quals)>> {
        let mut whole = self.base_of(ty);
        match self.types.get(whole) {
            TyKind::Aggregate(id, _) => {
                let path = self.path_to(*id, name.name, 8)?;
                let mut steps = Vec::with_capacity(path.len());
                for index in path {
                    let (ty, quals) = self.member_type(whole, index);
                    steps.push((index, ty, quals));
                    whole = ty;
                }
                Some(steps)
            }
            TyKind::Tuple(members) => {
                let index = name.name.as_str();
                let index: usize = index.strip_prefix('f').unwrap_or(index).parse().ok()?;
                let member = members.get(index)?;
                Some(vec![(index, member.ty, member.quals)])
            }
            _ => None,
        }
    }

    /// Indices of members on the way to one; unnamed aggregates are searched at most `depth` deep.
    fn path_to(&self, id: AggregateId, name: Symbol, depth: u32) -> Option<Vec<usize>> {
        let fields = &self.declarations.aggregate(id).body.as_ref()?.fields;
        if let Some(index) = fields.iter().position(|field| field.name == Some(name)) {
            return Some(vec![index]);
        }
        if depth == 0 {
            return None;
        }
        fields.iter().enumerate().filter(|(_, field)| field.name.is_none()).find_map(|(index, field)| {
            let TyKind::Aggregate(inner, _) = self.types.get(field.ty) else { return None };
            let mut rest = self.path_to(*inner, name, depth - 1)?;
            rest.insert(0, index);
            Some(rest)
        })
    }

    /// `base.name`
    pub fn member(&mut self, base: Expr, name: ast::Ident, span: Span) -> Expr {
        let base = self.guard_tagged(base);
        let Some(steps) = self.find_member(base.ty, name) else {
            return self.no_member(&base, name);
        };
        let mut whole = base;
        for (index, ty, _) in steps {
            if let TyKind::Aggregate(id, _) = self.types.get(self.base_of(whole.ty)) {
                let body = self.declarations.aggregate(*id).body.as_ref();
                let hidden = body.map_or(Vec::new(), |body| body.existentials.clone());
                if self.types.mentions_any(ty, &hidden) {
                    return self.wrong(
                        Code::WrongType,
                        name.span,
                        format!("the type of `{}` is known only where a pattern opens the structure", name.name),
                    );
                }
            }
            let holder = self.base_of(whole.ty);
            if !self.is_member_placed(holder, index) {
                let shown = self.show(holder);
                let message = format!("where `{}` lies in `{shown}` is not known here", name.name);
                return self.wrong(Code::Incomplete, name.span, message);
            }
            whole = self.guard_tagged(whole);
            whole = Expr { kind: ExprKind::Member(Box::new(whole), index), ty, span };
        }
        whole
    }

    fn no_member(&mut self, base: &Expr, name: ast::Ident) -> Expr {
        let shown = self.show(base.ty);
        match self.types.get(base.ty) {
            TyKind::Error => Expr::error(&mut self.types, name.span),
            TyKind::Aggregate(id, _) if self.declarations.aggregate(*id).body.is_none() => {
                self.wrong(Code::Incomplete, name.span, format!("the members of `{shown}` are not known here"))
            }
            TyKind::Aggregate(..) | TyKind::Tuple(_) => {
                let report =
                    Diagnostic::error(Code::UnknownName, name.span, format!("`{shown}` has no member `{}`", name.name));
                self.with_similar_member(report, base.ty, name.name);
                Expr::error(&mut self.types, name.span)
            }
            TyKind::Pointer(_) => {
                let report = Diagnostic::error(Code::WrongType, name.span, format!("`{shown}` has no members"))
                    .help("`->` follows the pointer first");
                self.diagnostics.push(report);
                Expr::error(&mut self.types, name.span)
            }
            _ => self.wrong(Code::WrongType, name.span, format!("`{shown}` has no members")),
        }
    }

    fn union_of(&self, base: &Expr) -> Option<(AggregateId, bool)> {
        match self.types.get(self.base_of(base.ty)) {
            TyKind::Aggregate(id, _) => {
                let aggregate = self.declarations.aggregate(*id);
                aggregate.is_union.then_some((*id, aggregate.is_tagged))
            }
            _ => None,
        }
    }

    /// A member of a tagged union that is not written as a whole is checked to be the one last written.
    pub(super) fn guard_tagged(&mut self, place: Expr) -> Expr {
        match place.kind {
            ExprKind::Member(base, index) if matches!(self.union_of(&base), Some((_, true))) => {
                Expr { kind: ExprKind::TaggedMember(base, index, Check::Needed), ty: place.ty, span: place.span }
            }
            kind => Expr { kind, ..place },
        }
    }

    /// What is read from a place: see the module's comment.
    pub fn guard_unions(&mut self, place: Expr) -> Expr {
        let place = self.guard_tagged(place);
        let mut at = &place;
        while let ExprKind::Member(base, index) = &at.kind {
            if let Some((id, false)) = self.union_of(base) {
                let field = self.declarations.aggregate(id).body.as_ref().map(|body| &body.fields[*index]);
                let (name, array) = field
                    .map_or((None, false), |field| (field.name, matches!(self.types.get(field.ty), TyKind::Array(_))));
                let ty = if array { at.ty } else { place.ty };
                if !self.is_bits_only(ty) {
                    let name = name.map_or(String::new(), |name| format!(" `{name}`"));
                    let message = format!("member{name} of the union holds pointers, so that it cannot be read");
                    let report = Diagnostic::error(Code::WrongType, place.span, message);
                    return self.wrong_as(report.help("a `@tagged union` knows which member was written last"));
                }
            }
            at = base;
        }
        place
    }

    /// `tagcheck(e.f)`
    pub fn tag_check(&mut self, operand: &ast::Expr, span: Span) -> Expr {
        let member = self.expr(operand, None);
        let ty = self.int();
        match member.kind {
            ExprKind::Error => member,
            ExprKind::Member(base, index) if matches!(self.union_of(&base), Some((_, true))) => {
                Expr { kind: ExprKind::TagCheck(base, index), ty, span }
            }
            _ => self.wrong(Code::WrongType, span, "`tagcheck` takes a member of a tagged union"),
        }
    }

    /// `&operand`
    pub fn address(&mut self, operand: &ast::Expr, expected: Option<Ty>, span: Span) -> Expr {
        if let ast::ExprKind::Index(base, index) = &operand.kind {
            let base = self.expr(base, None);
            if !matches!(self.types.get(base.ty), TyKind::Tuple(_)) {
                let pointer = self.loaded(base, None);
                let offset = self.index_value(index);
                return self.offset_pointer(pointer, offset, span);
            }
        }
        let target = expected.and_then(|ty| match self.types.get(ty) {
            TyKind::Pointer(parts) => Some(parts.target),
            _ => None,
        });
        let place = self.expr(operand, target);
        self.address_of(place, span)
    }

    /// No pointer leads into a member of a tagged union: when another member is written, it would lead to something else.
    pub(super) fn refuse_in_union(&mut self, place: &Expr, span: Span) -> Option<Expr> {
        let mut at = place;
        loop {
            at = match &at.kind {
                ExprKind::Member(base, _) | ExprKind::TaggedMember(base, ..)
                    if matches!(self.union_of(base), Some((_, true))) =>
                {
                    let message = match std::ptr::eq(at, place) {
                        true => "a member of a tagged union has no address",
                        false => "what is inside a member of a tagged union has no address",
                    };
                    return Some(self.wrong(Code::WrongType, span, message));
                }
                ExprKind::Member(base, _) | ExprKind::Coerce(Coercion::Same, base) => base,
                ExprKind::Index(array, ..) => match &array.kind {
                    ExprKind::Coerce(Coercion::Decay, array) => array,
                    _ => return None,
                },
                _ => return None,
            };
        }
    }

    /// A pointer to a place.
    pub fn address_of(&mut self, place: Expr, span: Span) -> Expr {
        if let TyKind::Function(_) = self.types.get(place.ty) {
            return self.decay(place);
        }
        match &place.kind {
            ExprKind::Error => return place,
            ExprKind::Member(base, index) => {
                if let TyKind::Aggregate(id, _) = self.types.get(self.base_of(base.ty)) {
                    let aggregate = self.declarations.aggregate(*id);
                    let bits = aggregate.body.as_ref().is_some_and(|body| body.fields[*index].width.is_some());
                    if bits {
                        return self.wrong(Code::WrongType, span, "a bit-field has no address");
                    }
                }
            }
            ExprKind::Construct(..) => {
                return self.wrong(
                    Code::NotAssignable,
                    span,
                    "a constructor's value has no address before it is allocated; use `new`",
                );
            }
            _ => {}
        }
        if let Some(wrong) = self.refuse_in_union(&place, span) {
            return wrong;
        }
        if !self.is_place(&place) {
            return self.wrong(Code::NotAssignable, span, "a value has no address");
        }
        self.settle_alias(place.ty);
        if self.is_owned(place.ty) {
            return self.wrong(
                Code::NotAssignable,
                span,
                "the address of a unique or counted pointer would be a second way to it",
            );
        }
        let place = self.guard_unions(place);
        let place = self.lend_around(place);
        let properties = self.properties(&place);
        self.mark_address_taken(&place);
        let mut parts = self.pointer_to(place.ty, properties.quals, properties.region);
        if let ExprKind::Deref(pointer, _) = &place.kind
            && let TyKind::Pointer(pointer) = self.types.get(pointer.ty)
        {
            parts.zeroterm = pointer.zeroterm;
        }
        let ty = self.pointer_type(parts);
        Expr { kind: ExprKind::Address(Box::new(place)), ty, span }
    }

    /// `pointer + offset`, which is fat.
    pub fn offset_pointer(&mut self, pointer: Expr, offset: Expr, span: Span) -> Expr {
        let Some(parts) = self.pointer_parts(&pointer, span) else {
            return Expr::error(&mut self.types, span);
        };
        if let Some(wrong) = self.refuse_arithmetic(&pointer, &parts) {
            return wrong;
        }
        let fat = self.make(TyKind::Fat);
        if matches!(self.types.get(parts.bound), TyKind::Evar(_)) {
            // An unbound variable takes any bound.
            let _ = self.try_unify(parts.bound, fat);
        }
        let pointer = if matches!(self.types.get(parts.bound), TyKind::Fat) {
            pointer
        } else {
            let nullable = self.truth(true);
            let ty = self.pointer_type(Pointer { bound: fat, nullable, ..parts });
            let pointer_span = pointer.span;
            self.coerce(pointer, ty, pointer_span)
        };
        let ty = pointer.ty;
        Expr { kind: ExprKind::Binary(ast::BinOp::Add, Box::new(pointer), Box::new(offset)), ty, span }
    }

    /// No arithmetic on pointers to what has no size, and none on pointers that own what they point to.
    pub fn refuse_arithmetic(&mut self, pointer: &Expr, parts: &Pointer) -> Option<Expr> {
        let span = pointer.span;
        if let Some(wrong) = self.refuse_steps(parts, span) {
            return Some(wrong);
        }
        if self.is_owned(pointer.ty) {
            return Some(self.wrong(Code::ThinArithmetic, span, "no arithmetic on a unique or counted pointer"));
        }
        None
    }

    /// Nothing lies a number of elements away where it is not known how large one is.
    fn refuse_steps(&mut self, parts: &Pointer, span: Span) -> Option<Expr> {
        let unknown_size = match self.types.get(parts.target) {
            TyKind::Void | TyKind::Function(_) => true,
            TyKind::Var(_) => self.types.kind(parts.target) == Kind::Any,
            _ => self.is_unsized(parts.target),
        };
        unknown_size.then(|| {
            let shown = self.show(parts.target);
            self.wrong(Code::Incomplete, span, format!("no arithmetic: the size of `{shown}` is not known"))
        })
    }

    /// Reports if a place may not be written to.
    pub fn check_writable(&mut self, place: &Expr, span: Span) {
        if matches!(place.kind, ExprKind::Error) {
            return;
        }
        if self.properties(place).quals.is_const {
            self.error(Code::NotAssignable, span, "it is `const`");
        } else if self.is_unsized(place.ty) {
            let shown = self.show(place.ty);
            self.error(Code::Incomplete, span, format!("the size of `{shown}` is not known here"));
        } else if self.has_const_member(place.ty, 16) {
            let shown = self.show(place.ty);
            self.error(Code::NotAssignable, span, format!("`{shown}` has members that are `const`"));
        }
    }

    fn has_const_member(&self, ty: Ty, depth: u32) -> bool {
        match self.types.get(ty) {
            TyKind::Aggregate(id, _) if depth > 0 => {
                let body = self.declarations.aggregate(*id).body.as_ref();
                body.is_some_and(|body| {
                    let mut fields = body.fields.iter();
                    fields.any(|field| field.quals.is_const || self.has_const_member(field.ty, depth - 1))
                })
            }
            TyKind::Constructor(id, index, _) => {
                let constructor = &self.declarations.datatype(*id).constructors[*index as usize];
                constructor.params.iter().any(|param| param.quals.is_const)
            }
            TyKind::Tuple(members) if depth > 0 => {
                members.iter().any(|member| member.quals.is_const || self.has_const_member(member.ty, depth - 1))
            }
            TyKind::Array(array) => array.quals.is_const || self.has_const_member(array.element, depth),
            _ => false,
        }
    }

    /// A thin pointer where only its place matters: for comparing and subtracting.
    pub fn bare(&mut self, pointer: Expr) -> Expr {
        let TyKind::Pointer(parts) = self.types.get(pointer.ty).clone() else { return pointer };
        if !matches!(self.types.get(parts.bound), TyKind::Fat) {
            return pointer;
        }
        let bound = self.thin(0);
        let nullable = self.truth(true);
        let zeroterm = self.truth(false);
        let ty = self.pointer_type(Pointer { bound, nullable, zeroterm, ..parts });
        wrap(Coercion::FatToThin(Checks::NONE), pointer, ty)
    }
}
