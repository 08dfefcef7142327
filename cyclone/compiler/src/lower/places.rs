//! Accesses to objects, with their checks; assignment, stepping, swapping.

use super::expressions::operator;
use super::function::Body;
use super::shapes::{C, Shape};
use crate::ast::BinOp;
use crate::source::Span;
use crate::tree::{Check, Checks, Coercion, Expr, ExprKind};
use crate::types::{Pointer, Ty, TyKind};
use std::fmt::Write;

/// A pointer that is followed: `*p` is `p[0]`.
#[derive(Clone, Copy)]
struct Access<'p> {
    pointer: &'p Expr,
    index: Option<&'p Expr>,
    checks: Checks,
}

impl<'p> Access<'p> {
    fn of(place: &'p Expr) -> Option<Access<'p>> {
        match &place.kind {
            ExprKind::Deref(pointer, checks) => Some(Access { pointer, index: None, checks: *checks }),
            ExprKind::Index(pointer, index, checks) => Some(Access { pointer, index: Some(index), checks: *checks }),
            ExprKind::Coerce(Coercion::Same, inner) => Access::of(inner),
            _ => None,
        }
    }
}

impl<'p> Body<'_, 'p> {
    /// The pointer type, if it is one.
    pub fn pointer_type(&self, ty: Ty) -> Option<&'p Pointer> {
        match self.lower.program.types.get(ty) {
            TyKind::Pointer(pointer) => Some(pointer),
            _ => None,
        }
    }

    /// The shape of what a pointer type points to.
    pub fn target_shape(&mut self, ty: Ty) -> C {
        match self.pointer_type(ty) {
            Some(pointer) => self.lower.shape(pointer.target),
            None => {
                let c = self.lower.shape(ty);
                self.lower.pointee(c)
            }
        }
    }

    pub fn is_true(&self, ty: Ty) -> bool {
        matches!(self.lower.program.types.get(ty), TyKind::True)
    }

    pub fn is_fat(&self, pointer: &Pointer) -> bool {
        matches!(self.lower.program.types.get(pointer.bound), TyKind::Fat)
    }

    /// How many elements a thin pointer type promises, as C text.
    pub fn known_count(&mut self, pointer: &Pointer, span: Span) -> String {
        match self.lower.program.types.get(pointer.bound) {
            TyKind::Thin(number) => self.number(*number, span),
            _ => "1".to_owned(),
        }
    }

    /// A number of the level of types, as C text.
    pub fn number(&mut self, number: Ty, span: Span) -> String {
        match self.lower.program.types.get(number) {
            TyKind::Nat(value) => format!("{value}UL"),
            TyKind::Var(var) => match self.holder(*var) {
                Some(local) => self.captured(|body| body.push_local(local)),
                None => {
                    self.lower.unsupported(span, "a bound of which no tag is in scope");
                    "0".to_owned()
                }
            },
            _ => "1UL".to_owned(),
        }
    }

    /// A place, as a C lvalue (or a value whose member is taken).
    pub fn place(&mut self, place: &'p Expr) {
        if let Some(access) = Access::of(place) {
            return self.access(access, place.span);
        }
        match &place.kind {
            ExprKind::Member(base, index) => {
                let (_, name) = self.lower.member(base.ty, *index);
                match Access::of(base) {
                    Some(access) if self.is_plain(access) => {
                        self.value(access.pointer);
                        put!(self.out, "->", name);
                    }
                    _ => {
                        self.place_or_value(base);
                        put!(self.out, ".", name);
                    }
                }
            }
            _ => self.raw(place),
        }
    }

    fn place_or_value(&mut self, base: &'p Expr) {
        match &base.kind {
            ExprKind::Coerce(Coercion::Same, inner) => self.place_or_value(inner),
            ExprKind::TaggedMember(inner, index, check) => self.tagged_member(inner, *index, *check),
            _ => self.place(base),
        }
    }

    /// A thin pointer that is not checked and not indexed.
    fn is_plain(&self, access: Access<'p>) -> bool {
        let is_thin = self.pointer_type(access.pointer.ty).is_some_and(|pointer| !self.is_fat(pointer));
        let is_checked = [access.checks.null, access.checks.bounds].contains(&Check::Needed);
        is_thin && access.index.is_none() && !is_checked
    }

    fn access(&mut self, access: Access<'p>, span: Span) {
        let Some(pointer) = self.pointer_type(access.pointer.ty) else {
            // A function: `*f` is `f`.
            return self.raw(access.pointer);
        };
        let expr = access.pointer;
        match access.index {
            Some(index) if self.is_order_seen([expr, index]) => {
                let c = self.lower.shape(expr.ty);
                self.push("(*({ ");
                let name = self.temporary(c, |body| body.value_as(expr, c));
                self.push("&");
                self.checked_access(access, pointer, span, &|body: &mut Self| body.push(&name));
                self.push("; }))");
            }
            _ => self.checked_access(access, pointer, span, &|body: &mut Self| body.value(expr)),
        }
    }

    /// An access through a pointer that `write` writes.
    fn checked_access(&mut self, access: Access<'p>, pointer: &'p Pointer, span: Span, write: &dyn Fn(&mut Self)) {
        let Access { index, checks, .. } = access;
        let element = self.lower.shape(pointer.target);
        let cast = self.lower.shapes.pointer(element);
        let cast = self.lower.cast(cast);
        let size = self.lower.cast(element);
        let is_bounded = checks.bounds == Check::Needed;
        if matches!(self.lower.shapes.get(element), Shape::Function { .. }) {
            self.push("(*");
            self.thin(write, checks.null);
            return self.push(")");
        }
        match (self.is_fat(pointer), index) {
            (true, index) if checks.bounds != Check::Never && checks.bounds != Check::Proved => {
                match self.first_round().filter(|_| checks.bounds == Check::FirstRound) {
                    Some(flag) => put!(self.out, "(*(", cast, ")_cyc_fat_at_if(", flag, ", "),
                    None => put!(self.out, "(*(", cast, ")_cyc_fat_at("),
                }
                write(self);
                put!(self.out, ", sizeof(", size, "), ");
                self.index(index);
                self.push("))");
            }
            (true, index) => {
                put!(self.out, "(((", cast, ")");
                write(self);
                self.push(".curr)[");
                self.index(index);
                self.push("])");
            }
            (false, None) if is_bounded && !self.is_true(pointer.zeroterm) => {
                // As many elements as a number says, which may be none.
                let count = self.known_count(pointer, span);
                self.thin(write, checks.null);
                let _ = write!(self.out, "[_cyc_below(0, {count})]");
            }
            (false, None) => {
                self.push("(*");
                self.thin(write, checks.null);
                self.push(")");
            }
            (false, Some(index)) if is_bounded && self.is_true(pointer.zeroterm) => {
                let count = self.known_count(pointer, span);
                let _ = write!(self.out, "(*({cast})_cyc_zero_at(");
                write(self);
                let _ = write!(self.out, ", sizeof({size}), {count}, ");
                self.value(index);
                self.push("))");
            }
            (false, Some(index)) => {
                self.thin(write, checks.null);
                self.push("[");
                match is_bounded {
                    true => {
                        let count = self.known_count(pointer, span);
                        self.push("_cyc_below(");
                        self.value(index);
                        let _ = write!(self.out, ", {count})");
                    }
                    false => self.value(index),
                }
                self.push("]");
            }
        }
    }

    fn thin(&mut self, write: &dyn Fn(&mut Self), null: Check) {
        if null == Check::Needed {
            self.push("_cyc_nonnull(");
            write(self);
            self.push(")");
        } else {
            write(self);
        }
    }

    fn index(&mut self, index: Option<&'p Expr>) {
        match index {
            None => self.push("0"),
            Some(index) => self.value(index),
        }
    }

    /// `e.f` of a tagged union, which must be the member last written.
    pub fn tagged_member(&mut self, base: &'p Expr, index: usize, check: Check) {
        let (_, name) = self.lower.member(base.ty, index);
        if check != Check::Needed {
            self.place_or_value(base);
            let _ = write!(self.out, ".{name}");
            return;
        }
        let c = self.lower.shape(base.ty);
        if self.is_addressable(base) {
            let pointer = self.lower.shapes.pointer(c);
            self.push("(*({ ");
            let union = self.temporary(pointer, |body| body.address_of(base));
            let _ = write!(self.out, "if ({union}->tag != {}) _cyc_throw_match(); &{union}->{name}; }}))", index + 1);
        } else {
            self.push("({ ");
            let union = self.temporary(c, |body| body.value_as(base, c));
            let _ = write!(self.out, "if ({union}.tag != {}) _cyc_throw_match(); {union}.{name}; }})", index + 1);
        }
    }

    fn is_addressable(&self, place: &Expr) -> bool {
        match &place.kind {
            ExprKind::Local(_) | ExprKind::Global(_) | ExprKind::Deref(..) | ExprKind::Index(..) => true,
            ExprKind::Member(base, _) | ExprKind::TaggedMember(base, _, _) | ExprKind::Coerce(Coercion::Same, base) => {
                self.is_addressable(base)
            }
            _ => false,
        }
    }

    /// `&place`, of the shape of a pointer to the place's shape.
    pub fn address_of(&mut self, place: &'p Expr) {
        let c = self.shape_of(place);
        let is_volatile = self.is_volatile_place(place);
        if is_volatile {
            let pointer = self.lower.shapes.pointer(c);
            let cast = self.lower.cast(pointer);
            let _ = write!(self.out, "(({cast})");
        }
        match self.is_addressable(place) {
            true if let ExprKind::Member(base, _) = &place.kind
                && *self.lower.shapes.get(c) == Shape::Void =>
            {
                // Of unknown size, and so at the beginning: see `Checker::is_member_placed`.
                self.push("((void *)");
                self.address_of(base);
                self.push(")");
            }
            true => {
                self.push("(&");
                self.place_or_value(place);
                self.push(")");
            }
            // The value of something else lives as long as the block around.
            false => {
                let cast = self.lower.cast(c);
                let _ = write!(self.out, "(&({cast}[1]){{");
                self.value_as(place, c);
                self.push("}[0])");
            }
        }
        if is_volatile {
            self.push(")");
        }
    }

    fn is_volatile_place(&self, place: &Expr) -> bool {
        match &place.kind {
            ExprKind::Local(id) => self.is_volatile(*id),
            ExprKind::Member(base, _) | ExprKind::Coerce(Coercion::Same, base) => self.is_volatile_place(base),
            _ => false,
        }
    }

    pub fn address(&mut self, place: &'p Expr, ty: Ty) {
        let target = self.shape_of(place);
        let have = self.lower.shapes.pointer(target);
        let want = self.lower.shape(ty);
        self.converted(have, want, |body| match body.is_addressable(place) {
            true => body.address_of(place),
            false => {
                let name = body.kept(place, target);
                put!(body.out, "&", name, "; })");
            }
        });
    }

    /// The address of the first element of an array.
    pub fn first_element(&mut self, array: &'p Expr) {
        let mut written = array;
        while let ExprKind::Coerce(Coercion::Same, inner) = &written.kind {
            written = inner;
        }
        if !matches!(written.kind, ExprKind::Aggregate(_)) {
            return self.place(array);
        }
        let c = self.shape_of(written);
        let name = self.kept(written, c);
        put!(self.out, "&", name, "[0]; })");
    }

    /// Begins a statement expression in which a value in braces is put where a pointer to it can lead as long as the block around is
    /// live (in C such a value is gone with the innermost block, which may be one of a statement expression); gives its name.
    fn kept(&mut self, value: &'p Expr, c: C) -> String {
        let name = self.place_to_keep(c);
        self.push("({");
        match &value.kind {
            ExprKind::Aggregate(init) => self.initialise(&name, c, init),
            _ => {
                put!(self.out, " ", name, " = ");
                self.value_as(value, c);
                self.push(";");
            }
        }
        self.push(" ");
        name
    }

    /// `place = value`, `place op= value`. The value is computed first.
    pub fn assign(&mut self, op: Option<BinOp>, place: &'p Expr, value: &'p Expr) {
        let c = self.shape_of(place);
        let number = self.lower.shape(value.ty);
        if let ExprKind::Member(union, index) = &place.kind
            && op.is_none()
            && self.is_tagged_union(union.ty)
        {
            return self.assign_tagged(union, *index, value, c);
        }
        if let Some(access) = Access::of(place)
            && let Some(pointer) = self.pointer_type(access.pointer.ty)
            && self.is_true(pointer.zeroterm)
            && !access.checks.has_next
            && !(op.is_none() && value.is_zero())
        {
            let wanted = if op.is_none() { c } else { number };
            self.push("({ ");
            let new = self.early(value, wanted);
            self.store_before_terminator(access, pointer, place.span, c, &mut |body, old| match op {
                None => body.push(&new),
                Some(op) => {
                    let _ = write!(body.out, "({old} {} {new})", operator(op));
                }
            });
            return self.push("; })");
        }
        match op {
            Some(op) if self.pointer_type(place.ty).is_some() => self.add_to_pointer(place, op, value, c),
            Some(op) if *self.lower.shapes.get(c) == Shape::Word => {
                let held = self.lower.shape(place.ty);
                self.push("({ ");
                let new = self.early(value, number);
                self.update_word(place, c, |body, old| {
                    body.converted(held, c, |body| {
                        body.push("(");
                        body.converted(c, held, |body| body.push(old));
                        let _ = write!(body.out, " {} {new})", operator(op));
                    });
                });
                self.push("; })");
            }
            Some(op) => self.store(place, &format!("{}=", operator(op)), value, None),
            None => self.store(place, "=", value, Some(c)),
        }
    }

    /// The text of a value that is to be computed before what follows.
    pub fn early(&mut self, value: &'p Expr, c: C) -> String {
        match self.is_constant_value(value) {
            true => self.captured(|body| body.value_as(value, c)),
            false => self.temporary(c, |body| body.value_as(value, c)),
        }
    }

    fn store(&mut self, place: &'p Expr, how: &str, value: &'p Expr, c: Option<C>) {
        let c = match c {
            Some(c) => c,
            None => self.lower.shape(value.ty),
        };
        if matches!(self.lower.shapes.get(c), Shape::Array(..)) {
            return self.copy_array(place, value);
        }
        let is_simple_place = matches!(place.kind, ExprKind::Local(_) | ExprKind::Global(_));
        if !is_simple_place && self.is_order_seen([value, place]) {
            self.push("({ ");
            let name = self.temporary(c, |body| body.value_as(value, c));
            self.place(place);
            put!(self.out, " ", how, " ", name, "; })");
        } else {
            self.push("(");
            self.place(place);
            put!(self.out, " ", how, " ");
            self.value_as(value, c);
            self.push(")");
        }
    }

    fn copy_array(&mut self, place: &'p Expr, value: &'p Expr) {
        self.push("__builtin_memcpy(&");
        self.place(place);
        self.push(", &");
        self.place(value);
        self.push(", sizeof(");
        self.place(place);
        self.push("))");
    }

    /// Changes a number that lies in a word: `write` writes the new word from the name of the old one.
    fn update_word(&mut self, place: &'p Expr, c: C, write: impl FnOnce(&mut Self, &str)) {
        let pointer = self.lower.shapes.pointer(c);
        self.push("({ ");
        let address = self.temporary(pointer, |body| body.address_of(place));
        let _ = write!(self.out, "*{address} = ");
        write(self, &format!("(*{address})"));
        self.push("; })");
    }

    fn is_tagged_union(&self, ty: Ty) -> bool {
        match self.lower.program.types.get(ty) {
            TyKind::Aggregate(id, _) => {
                let aggregate = self.lower.program.declarations.aggregate(*id);
                aggregate.is_tagged
            }
            _ => false,
        }
    }

    fn assign_tagged(&mut self, union: &'p Expr, index: usize, value: &'p Expr, c: C) {
        let union_shape = self.lower.shape(union.ty);
        let pointer = self.lower.shapes.pointer(union_shape);
        let (_, name) = self.lower.member(union.ty, index);
        self.push("({ ");
        let new = self.temporary(c, |body| body.value_as(value, c));
        let to = self.temporary(pointer, |body| body.address_of(union));
        let _ = write!(self.out, "{to}->tag = {}; {to}->{name} = {new}; }})", index + 1);
    }

    /// A store through a zero-terminated pointer, whose terminator stays. `write` writes the new value from the old one's name.
    fn store_before_terminator(
        &mut self,
        access: Access<'p>,
        pointer: &'p Pointer,
        span: Span,
        c: C,
        write: &mut dyn FnMut(&mut Self, &str),
    ) {
        let size = self.lower.cast(c);
        let slot_shape = self.lower.shapes.pointer(c);
        self.push("({ ");
        if self.is_fat(pointer) {
            let fat = self.lower.shapes.make(Shape::Fat);
            let fat = self.temporary(fat, |body| body.value(access.pointer));
            let slot = self.temporary(slot_shape, |body| {
                body.push("&");
                body.checked_access(access, pointer, span, &|body: &mut Self| body.push(&fat));
            });
            let _ = write!(self.out, "*{slot} = _cyc_fat_keep({slot}, (");
            write(self, &format!("(*{slot})"));
            let _ = write!(self.out, "), {fat}); }})");
        } else {
            let count = self.known_count(pointer, span);
            let index = format!("_cyc_t{}", self.fresh());
            let _ = write!(self.out, "_cyc_index {index} = ");
            self.index(access.index);
            self.push("; ");
            let cast = self.lower.cast(slot_shape);
            let is_bounded = access.checks.bounds == Check::Needed;
            let slot = self.temporary(slot_shape, |body| match is_bounded {
                true => {
                    let _ = write!(body.out, "({cast})_cyc_zero_at(");
                    body.value(access.pointer);
                    let _ = write!(body.out, ", sizeof({size}), {count}, {index})");
                }
                false => {
                    let _ = write!(body.out, "({cast})(");
                    body.thin(&|body: &mut Self| body.value(access.pointer), access.checks.null);
                    let _ = write!(body.out, " + {index})");
                }
            });
            let _ = write!(self.out, "*{slot} = _cyc_zero_keep({slot}, (");
            write(self, &format!("(*{slot})"));
            let _ = write!(self.out, "), {index}, {count}); }})");
        }
    }

    /// `++place` and its like.
    pub fn step(&mut self, place: &'p Expr, up: bool, postfix: bool) {
        let c = self.shape_of(place);
        if let Some(access) = Access::of(place)
            && let Some(pointer) = self.pointer_type(access.pointer.ty)
            && self.is_true(pointer.zeroterm)
            && !access.checks.has_next
        {
            let by = if up { "+ 1" } else { "- 1" };
            let back = if up { "- 1" } else { "+ 1" };
            let cast = self.lower.cast(c);
            if postfix {
                let _ = write!(self.out, "(({cast})(");
            }
            self.store_before_terminator(access, pointer, place.span, c, &mut |body, old| {
                let _ = write!(body.out, "{old} {by}");
            });
            if postfix {
                let _ = write!(self.out, " {back}))");
            }
            return;
        }
        if self.pointer_type(place.ty).is_some() {
            return self.step_pointer(place, up, postfix, c);
        }
        if *self.lower.shapes.get(c) == Shape::Word {
            let number = self.lower.shape(place.ty);
            let pointer = self.lower.shapes.pointer(c);
            self.push("({ ");
            let address = self.temporary(pointer, |body| body.address_of(place));
            let old = self.temporary(number, |body| {
                body.converted(c, number, |body| {
                    let _ = write!(body.out, "(*{address})");
                })
            });
            let new = format!("({old} {} 1)", if up { "+" } else { "-" });
            let _ = write!(self.out, "*{address} = ");
            self.converted(number, c, |body| body.push(&new));
            // The value has the place's shape, a word.
            self.push("; ");
            self.converted(number, c, |body| body.push(if postfix { &old } else { &new }));
            return self.push("; })");
        }
        let sign = if up { "++" } else { "--" };
        self.push("(");
        if !postfix {
            self.push(sign);
        }
        self.place(place);
        if postfix {
            self.push(sign);
        }
        self.push(")");
    }

    pub fn swap(&mut self, left: &'p Expr, right: &'p Expr) {
        let (c, other) = (self.shape_of(left), self.shape_of(right));
        let word = self.lower.shapes.make(Shape::Word);
        let (pointer, other_pointer) = (self.lower.shapes.pointer(c), self.lower.shapes.pointer(other));
        // Of an integer that lies in a word, only its own bytes: the others are zero.
        let narrower = if self.lower.carried(other) == other { c } else { other };
        let size = self.lower.cast(narrower);
        self.push("({ ");
        let first = self.temporary(word, |body| body.converted(pointer, word, |body| body.address_of(left)));
        let second = self.temporary(word, |body| body.converted(other_pointer, word, |body| body.address_of(right)));
        let _ = write!(self.out, "_cyc_swap({first}, {second}, sizeof({size})); }})");
    }
}
