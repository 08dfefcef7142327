//! `new` and `malloc`: where objects are allocated, and which pointers come back.

use super::Checker;
use super::init::unwrap_aggregate;
use super::types::Position;
use crate::ast::{self, AllocWord, ExprKind as Ast, Quals};
use crate::diagnostics::Code;
use crate::source::Span;
use crate::tree::{Allocation, Coercion, Expr, ExprKind, Init};
use crate::types::{Alias, Array, Kind, Pointer, Ty, TyKind};

/// Number of elements of an allocation.
enum Count {
    One,
    Many(Expr),
}

impl Checker<'_> {
    /// The handle's region and qualifier, or what the wanted pointer asks for.
    fn allocation_place(&mut self, place: &ast::Place, wanted: Option<&Pointer>) -> Allocation {
        let (region, qualifier) = match place {
            ast::Place::Heap => (None, None),
            ast::Place::Region(handle) => (Some(&**handle), None),
            ast::Place::Qualified(qualifier, handle) => (handle.as_deref(), Some(&**qualifier)),
        };
        let mut region_ty = self.make(TyKind::Heap);
        let mut by_handle = None;
        let region = region.map(|handle| {
            let messages = self.diagnostics.len();
            let value = self.value(handle, None);
            if let Some(report) =
                self.diagnostics[messages..].first_mut().filter(|report| report.code == Code::UnknownName)
            {
                report.help.get_or_insert_with(|| {
                    "`region r;` in a block declares one; a parameter ``region_t<`r> r`` takes the caller's".to_owned()
                });
            }
            match self.types.get(value.ty) {
                TyKind::RegionHandle(of) => {
                    let of = *of;
                    (region_ty, by_handle) = self.place_of_handle(of);
                    self.access(region_ty, handle.span);
                }
                TyKind::Error => region_ty = value.ty,
                _ => {
                    let shown = self.show(value.ty);
                    self.error(Code::WrongType, handle.span, format!("this is no region's handle but `{shown}`"));
                }
            }
            Box::new(value)
        });
        let aliasable = self.make(TyKind::Aqual(Alias::Aliasable));
        let aqual = match (qualifier, by_handle) {
            (None, Some(aqual)) => aqual,
            (Some(handle), _) => {
                let value = self.value(handle, None);
                match self.types.get(value.ty) {
                    TyKind::AqualHandle(aqual) => *aqual,
                    TyKind::Error => value.ty,
                    _ => {
                        let shown = self.show(value.ty);
                        let message = format!("this is no alias qualifier's handle but `{shown}`");
                        self.error(Code::WrongType, handle.span, message);
                        aliasable
                    }
                }
            }
            (None, None) => match wanted.map(|wanted| self.types.get(wanted.aqual)) {
                Some(TyKind::Aqual(Alias::Unique)) => self.make(TyKind::Aqual(Alias::Unique)),
                _ => aliasable,
            },
        };
        Allocation { region, region_ty, aqual }
    }

    fn wanted_pointer(&self, expected: Option<Ty>) -> Option<Pointer> {
        expected.and_then(|ty| match self.types.get(ty) {
            TyKind::Pointer(pointer) => Some(pointer.clone()),
            _ => None,
        })
    }

    /// `new e`, `rnew(h) e`, `qnew(q) e`
    pub fn new_value(&mut self, place: &ast::Place, value: &ast::Expr, expected: Option<Ty>, span: Span) -> Expr {
        let wanted = self.wanted_pointer(expected);
        let allocation = self.allocation_place(place, wanted.as_ref());
        let element = wanted.as_ref().map(|pointer| pointer.target);
        match &value.kind {
            Ast::For(..) | Ast::ForType(..) => {
                let zeroterm = wanted.as_ref().is_some_and(|pointer| self.is_true(pointer.zeroterm));
                let Some((comprehension, count)) = self.comprehension(value, element, zeroterm) else {
                    return Expr::error(&mut self.types, span);
                };
                let mut pointer = self.pointer_to(comprehension.element, Quals::default(), allocation.region_ty);
                pointer.aqual = allocation.aqual;
                pointer.zeroterm = self.truth(zeroterm);
                let tag = match self.types.get(comprehension.len.ty) {
                    TyKind::TagHandle(number) => Some(*number),
                    _ => untagged(&comprehension.len).and_then(|inner| match self.types.get(inner.ty) {
                        TyKind::TagHandle(number) => Some(*number),
                        _ => None,
                    }),
                };
                pointer.bound = match (count, tag) {
                    (Some(count), _) => self.thin(count + u64::from(zeroterm)),
                    (None, Some(number)) if !zeroterm => self.make(TyKind::Thin(number)),
                    _ => {
                        pointer.nullable = self.truth(true);
                        self.make(TyKind::Fat)
                    }
                };
                let ty = self.pointer_type(pointer);
                let init = Init::Comprehension(Box::new(comprehension));
                Expr { kind: ExprKind::New(allocation, Box::new(init)), ty, span }
            }
            Ast::Init(_) => self.new_array(value, allocation, wanted.as_ref(), span),
            _ => {
                let value = match element {
                    None if matches!(value.kind, Ast::Str(..)) => {
                        let text = self.fat_text();
                        let string = self.value(value, Some(text));
                        self.coerce(string, text, value.span)
                    }
                    _ => {
                        let typed = self.value(value, element);
                        match element {
                            Some(element) if self.fills(typed.ty, element) => match self.try_coerce(typed, element) {
                                Ok(typed) => typed,
                                Err(refusal) => refusal.0,
                            },
                            _ => typed,
                        }
                    }
                };
                self.check_consumed(&value);
                if !self.require_size(value.ty, value.span) {
                    return Expr::error(&mut self.types, span);
                }
                let mut pointer = self.pointer_to(value.ty, Quals::default(), allocation.region_ty);
                pointer.aqual = allocation.aqual;
                pointer.nullable = self.fresh(Kind::Bool);
                let ty = self.pointer_type(pointer);
                let init = unwrap_aggregate(value);
                Expr { kind: ExprKind::New(allocation, Box::new(init)), ty, span }
            }
        }
    }

    /// Whether a new object of the wanted type is made from a value of another type: what is pointed to is not converted later.
    fn fills(&self, value: Ty, element: Ty) -> bool {
        match self.types.get(element) {
            TyKind::Datatype(..) => false,
            _ if self.is_arithmetic(element) => self.is_integral(value) == self.is_integral(element),
            _ => true,
        }
    }

    /// `const char ?` into the heap, which every string can become.
    fn fat_text(&mut self) -> Ty {
        let target = self.char_type();
        let heap = self.make(TyKind::Heap);
        let quals = Quals { is_const: true, ..Quals::default() };
        let plain = self.pointer_to(target, quals, heap);
        let (bound, yes) = (self.make(TyKind::Fat), self.truth(true));
        self.pointer_type(Pointer { bound, zeroterm: yes, nullable: yes, ..plain })
    }

    /// `new {a, b}`: an array.
    fn new_array(&mut self, value: &ast::Expr, allocation: Allocation, wanted: Option<&Pointer>, span: Span) -> Expr {
        let zeroterm = wanted.is_some_and(|pointer| self.is_true(pointer.zeroterm));
        let level = self.level();
        let element = match wanted {
            Some(pointer) => pointer.target,
            None => self.types.fresh_bounded(Kind::Any, level, Alias::Restricted),
        };
        let zeroterm = self.truth(zeroterm);
        let array = Array { element, quals: Quals::default(), len: None, zeroterm };
        let ty = self.make(TyKind::Array(array));
        let (init, ty) = self.initialiser(value, ty);
        let TyKind::Array(array) = self.types.get(ty).clone() else { return Expr::error(&mut self.types, span) };
        let len = array.len.unwrap_or_else(|| self.make(TyKind::Nat(0)));
        let mut pointer = self.pointer_to(array.element, Quals::default(), allocation.region_ty);
        pointer.aqual = allocation.aqual;
        pointer.zeroterm = zeroterm;
        pointer.bound = self.make(TyKind::Thin(len));
        let ty = self.pointer_type(pointer);
        Expr { kind: ExprKind::New(allocation, Box::new(init)), ty, span }
    }

    /// `malloc(sizeof(T))` and its like.
    pub fn allocation(
        &mut self,
        ast::Alloc { word, place, count, size }: &ast::Alloc,
        expected: Option<Ty>,
        span: Span,
    ) -> Expr {
        let word = *word;
        let wanted = self.wanted_pointer(expected);
        let allocation = self.allocation_place(place, wanted.as_ref());
        let (element, count) = self.allocated(word, count.as_ref(), size);
        let mut zeroed = word == AllocWord::Calloc;
        if let TyKind::Aggregate(id, _) = self.types.get(element)
            && let Some(body) = &self.declarations.aggregate(*id).body
            && !body.existentials.is_empty()
        {
            let shown = self.show(element);
            let message = format!("`{shown}` binds types, which only `new` can give it");
            return self.wrong(Code::WrongType, span, message);
        }
        if !self.is_bits_only(element) {
            let many = matches!(count, Count::Many(_));
            if many && !self.is_zeroable(element) {
                // The wanted type may know more of what is pointed to.
                if let Some(wanted) = &wanted {
                    let _ = self.try_unify(element, wanted.target);
                }
                let shown = self.show(element);
                return self.wrong(
                    Code::WrongType,
                    span,
                    format!("values of type `{shown}` must be given when they are allocated: zero is none"),
                );
            }
            zeroed = true;
        }
        let mut pointer = self.pointer_to(element, Quals::default(), allocation.region_ty);
        pointer.aqual = allocation.aqual;
        if let Some(wanted) = &wanted {
            if !self.is_false(wanted.nullable) {
                pointer.nullable = self.truth(true);
            }
            if self.is_true(wanted.zeroterm) {
                pointer.zeroterm = self.truth(true);
                zeroed = true;
            }
        }
        let count = match count {
            Count::One => None,
            Count::Many(count) => {
                pointer.bound = self.bound_of(&count, wanted.as_ref());
                if matches!(self.types.get(pointer.bound), TyKind::Fat) {
                    pointer.nullable = self.truth(true);
                }
                Some(Box::new(count))
            }
        };
        let ty = self.pointer_type(pointer);
        Expr { kind: ExprKind::Alloc { word, place: allocation, element, count, zeroed }, ty, span }
    }

    /// Many elements are behind a fat pointer, unless as many as there are are asked for.
    fn bound_of(&mut self, count: &Expr, wanted: Option<&Pointer>) -> Ty {
        let fat = self.make(TyKind::Fat);
        let Some(TyKind::Thin(number)) = wanted.map(|wanted| self.types.get(wanted.bound).clone()) else {
            return fat;
        };
        let tagged = untagged(count).unwrap_or(count);
        let have = match (self.constant(count), self.types.get(tagged.ty)) {
            (Some(constant), _) if constant >= 0 => self.make(TyKind::Nat(constant as u64)),
            (_, TyKind::TagHandle(tag)) => *tag,
            _ => return fat,
        };
        match self.try_unify(have, number) {
            Ok(()) => self.make(TyKind::Thin(number)),
            Err(_) => fat,
        }
    }

    /// What is allocated, and how many of it.
    fn allocated(&mut self, word: AllocWord, count: Option<&ast::Expr>, size: &ast::Expr) -> (Ty, Count) {
        if word != AllocWord::Bytes {
            if let Some(count) = count {
                let count = Count::Many(self.index_value(count));
                return match self.sized(size) {
                    Some(element) => (element, count),
                    None => {
                        self.error(Code::WrongType, size.span, "`calloc` takes `sizeof` of a type");
                        (self.make(TyKind::Error), count)
                    }
                };
            }
            if let Some(element) = self.sized(size) {
                return (element, Count::One);
            }
            if let Ast::Binary(ast::BinOp::Mul, left, right) = &size.kind {
                for (size, count) in [(right, left), (left, right)] {
                    if let Some(element) = self.sized(size) {
                        return (element, Count::Many(self.index_value(count)));
                    }
                }
            }
            let bytes = self.index_value(size);
            if let TyKind::TagHandle(number) = self.types.get(untagged(&bytes).unwrap_or(&bytes).ty)
                && let TyKind::SizeOf(element) = self.types.get(*number)
            {
                return (*element, Count::One);
            }
            return (self.char_type(), Count::Many(bytes));
        }
        (self.char_type(), Count::Many(self.index_value(size)))
    }

    /// The type whose size is meant.
    fn sized(&mut self, size: &ast::Expr) -> Option<Ty> {
        let ty = match &size.kind {
            Ast::SizeOfType(ty) => self.read_type(ty, Position::Body).0,
            Ast::SizeOfExpr(operand) => self.expr(operand, None).ty,
            _ => return None,
        };
        let known = self.held_size(ty, size.span).is_some() || self.require_written_size(ty, size.span);
        Some(if known { ty } else { self.make(TyKind::Error) })
    }
}

/// A number as it was before it was converted.
fn untagged(number: &Expr) -> Option<&Expr> {
    match &number.kind {
        ExprKind::Coerce(Coercion::Number, inner) => Some(inner),
        _ => None,
    }
}
