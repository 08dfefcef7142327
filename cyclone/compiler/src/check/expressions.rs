//! Expressions.
//!
//! [`Checker::expr`] types an expression as it stands, a place where it is one; [`Checker::value`] gives what is read from it: arrays
//! become pointers, functions are instantiated, members of unions are guarded. The type that is wanted, where there is one, is a hint:
//! it decides what cannot be known otherwise (`NULL`, `new`, `malloc`, type arguments); whoever wants it still calls
//! [`Checker::coerce`].

use super::coerce::wrap;
use super::names::Value;
use super::types::Position;
use super::{Checker, literals};
use crate::ast::{self, ExprKind as Ast, IntSize};
use crate::diagnostics::{Code, Diagnostic};
use crate::source::Span;
use crate::symbol::Symbol;
use crate::tree::{Asm, Coercion, Expr, ExprKind, Init, InitList, Wide};
use crate::types::{Array, DatatypeId, Kind, Member, Pointer, Quals, Signedness, Ty, TyKind};
use std::rc::Rc;
use thin_vec::ThinVec;

const NOT_A_NUMBER: &str = "this is not a number, or none that fits a type: digits, then `u`, `l` and `ll`, or `f` and `l` after a fraction or an exponent";

impl Checker<'_> {
    /// An expression as it stands: arrays and functions stay what they are, and what is a place stays one.
    pub fn expr(&mut self, expr: &ast::Expr, expected: Option<Ty>) -> Expr {
        let span = expr.span;
        // What fits a constrained type is found when the value is converted.
        let expected = expected.map(|ty| self.base_of(ty));
        match &expr.kind {
            Ast::Name(path) => self.name(path, span, expected),
            Ast::Int(text) => self.integer(text.as_str(), span),
            Ast::Float(text) => match literals::float_size(text.as_str()) {
                Some(size) => {
                    let ty = self.make(TyKind::Float(size));
                    Expr { kind: ExprKind::Float(*text), ty, span }
                }
                None => self.wrong(Code::Lexical, span, NOT_A_NUMBER),
            },
            Ast::Char(text, wide) => self.character(text.as_str(), *wide, span),
            Ast::Str(parts, wide) => self.string(parts, *wide, span),
            Ast::Null => self.null(expected, span),
            Ast::Unary(operator, operand) => self.unary(*operator, operand, expected, span),
            Ast::Binary(operator, left, right) => self.binary(*operator, left, right, span),
            Ast::Assign(operator, left, right) => self.assign(*operator, left, right, span),
            Ast::Swap(left, right) => self.swap(left, right, span),
            Ast::Conditional(parts) => self.conditional(parts, expected, span),
            Ast::Comma(first, second) => {
                let first = self.value(first, None);
                let second = self.value(second, expected);
                let ty = second.ty;
                Expr { kind: ExprKind::Comma(Box::new(first), Box::new(second)), ty, span }
            }
            Ast::Call(callee, arguments) => self.call(callee, arguments, expected, span),
            Ast::Index(base, index) => self.index(base, index, span),
            Ast::Member(base, name) => {
                let base = self.expr(base, None);
                self.member(base, *name, span)
            }
            Ast::Arrow(base, name) => {
                let pointer = self.followed(base);
                let base = self.deref(pointer, span);
                self.member(base, *name, span)
            }
            Ast::Cast(ty, operand) => {
                let (ty, _) = self.read_type(ty, Position::Body);
                let operand = self.value(operand, Some(ty));
                self.cast(operand, ty, span)
            }
            Ast::Compound(ty, list) => {
                let (ty, _) = self.read_type(ty, Position::Body);
                self.braces_value(list, ty, span)
            }
            Ast::SizeOfType(ty) => {
                let (ty, _) = self.read_type(ty, Position::Body);
                self.size(ty, expected, span)
            }
            Ast::SizeOfExpr(operand) => {
                let operand = self.expr(operand, None);
                self.size(operand.ty, expected, span)
            }
            Ast::OffsetOf(ty, path) => self.offset_of(ty, path, span),
            Ast::Throw(thrown) => self.throw(thrown, expected, span),
            Ast::New(parts) => self.new_value(&parts.0, &parts.1, expected, span),
            Ast::Alloc(parts) => self.allocation(parts, expected, span),
            Ast::Numelts(operand) => self.numelts(operand, span),
            Ast::TagOf(operand) => self.tag_of(operand, span),
            Ast::TagCheck(operand) => self.tag_check(operand, span),
            Ast::ValueOf(ty) => {
                let (ty, _) = self.read_type(ty, Position::Body);
                let size = self.size_type();
                Expr { kind: ExprKind::ValueOf(ty), ty: size, span }
            }
            Ast::Asm(asm) => self.asm(asm, span),
            Ast::Assert(tested, operand) => {
                let operand = self.condition(operand);
                let ty = self.int();
                Expr { kind: ExprKind::Assert(*tested, Box::new(operand)), ty, span }
            }
            Ast::Pragma(_) => {
                let ty = self.int();
                Expr { kind: ExprKind::Int(Wide(0)), ty, span }
            }
            Ast::NoInstantiation(inner) => {
                let inner = self.expr(inner, None);
                self.decay(inner)
            }
            Ast::Instantiate(inner, arguments) => {
                let inner = self.expr(inner, None);
                let pointer = self.decay(inner);
                self.instantiate_value(pointer, arguments)
            }
            Ast::Struct(parts) => self.struct_value(parts, expected, span),
            Ast::Tuple(parts) => self.tuple(parts, expected, span),
            Ast::Init(list) => self.braces(list, expected, span),
            Ast::For(..) | Ast::ForType(..) => self.comprehension_value(expr, expected),
            Ast::Statements(block) => self.statement_expression(block, expected, span),
        }
    }

    /// The value of an expression.
    pub fn value(&mut self, expr: &ast::Expr, expected: Option<Ty>) -> Expr {
        let place = self.expr(expr, expected);
        match expr.kind {
            Ast::NoInstantiation(_) => place,
            _ => self.loaded(place, expected),
        }
    }

    /// What is read from a place: arrays become pointers, functions are instantiated, unions are guarded.
    pub fn loaded(&mut self, place: Expr, expected: Option<Ty>) -> Expr {
        if let ExprKind::Int(_) | ExprKind::Construct(..) = place.kind {
            return place;
        }
        let place = self.guard_unions(place);
        if matches!(place.kind, ExprKind::Deref(..) | ExprKind::Index(..) | ExprKind::Member(..))
            && self.is_unsized(place.ty)
        {
            let shown = self.show(place.ty);
            return self.wrong(Code::Incomplete, place.span, format!("the size of `{shown}` is not known here"));
        }
        if matches!(self.types.get(place.ty), TyKind::Array(_))
            && let Some(wrong) = self.refuse_in_union(&place, place.span)
        {
            return wrong;
        }
        let value = self.decay(place);
        let value = match expected.map(|ty| self.types.get(ty)) {
            Some(TyKind::Subset(..)) => value,
            _ => self.unconstrained(value),
        };
        self.instantiate_for(value, expected)
    }

    /// Whether the size of an object is not known here: of a datatype, whose constructor is not known; of a structure that is only declared,
    /// ends with as many elements as a tag says, or holds what only the caller knows the size of. Only pointers to it are copied.
    pub(super) fn is_unsized(&mut self, ty: Ty) -> bool {
        let id = match self.types.get(ty) {
            TyKind::Datatype(..) => return true,
            TyKind::Aggregate(id, _) => id,
            _ => return false,
        };
        let ends_open = match &self.declarations.aggregate(*id).body {
            None => true,
            Some(body) => body.fields.last().is_some_and(|last| match self.types.get(last.ty) {
                TyKind::Array(array) => array.len.is_some_and(
                    |len| matches!(self.types.get(len), TyKind::Var(var) if !body.existentials.contains(var)),
                ),
                _ => false,
            }),
        };
        ends_open || self.holds_unsized(ty)
    }

    /// A place that is written to or whose address is taken. Anything else is reported.
    pub fn place(&mut self, expr: &ast::Expr) -> Expr {
        let place = self.expr(expr, None);
        if self.is_place(&place) || matches!(place.kind, ExprKind::Error) {
            return place;
        }
        self.wrong(Code::NotAssignable, expr.span, "this is a value, not an object that could be changed")
    }

    /// An expression that is tested: a number or a pointer.
    pub fn condition(&mut self, expr: &ast::Expr) -> Expr {
        let value = self.value(expr, None);
        self.settle_number(&value);
        match self.types.get(value.ty) {
            TyKind::Pointer(_) | TyKind::Error => value,
            _ if self.is_arithmetic(value.ty) => value,
            _ => {
                let found = self.show(value.ty);
                self.wrong(
                    Code::NotNumeric,
                    expr.span,
                    format!("a condition is a number or a pointer; this is `{found}`"),
                )
            }
        }
    }

    fn name(&mut self, path: &ast::Path, span: Span, expected: Option<Ty>) -> Expr {
        match self.lookup_value(path) {
            Some(Value::Local(id)) => {
                let Some(body) = &self.body else {
                    return self.wrong(Code::UnknownName, span, format!("`{}` is not known here", path.name));
                };
                let ty = body.locals[id.0 as usize].ty;
                Expr { kind: ExprKind::Local(id), ty, span }
            }
            Some(Value::Number(value)) => {
                let ty = self.int();
                Expr { kind: ExprKind::Int(Wide(value)), ty, span }
            }
            Some(Value::Captured(id)) => self.captured(id, span),
            Some(Value::Global(id)) => {
                let global = &mut self.declarations.globals[id.0 as usize];
                global.is_used = true;
                Expr { kind: ExprKind::Global(id), ty: global.ty, span }
            }
            Some(Value::EnumConst(id, value)) => {
                let ty = self.make(TyKind::Enum(id));
                Expr { kind: ExprKind::Int(Wide(i128::from(value))), ty, span }
            }
            Some(Value::Constructor(id, index)) => self.construct(id, index, &[], expected, span),
            None => self.unknown_value(path, span),
        }
    }

    fn integer(&mut self, text: &str, span: Span) -> Expr {
        match literals::integer(text) {
            Some((value, sign, size)) => {
                let ty = self.make(TyKind::Int(sign, size));
                Expr { kind: ExprKind::Int(Wide(value)), ty, span }
            }
            None if !text.starts_with('0') && text.bytes().all(|byte| byte.is_ascii_digit()) => {
                self.wrong(Code::WrongType, span, "the number is too large for any integer type")
            }
            None => self.wrong(Code::Lexical, span, NOT_A_NUMBER),
        }
    }

    fn character(&mut self, text: &str, wide: bool, span: Span) -> Expr {
        let mut codes = Vec::new();
        literals::characters(text, wide, &mut codes);
        let value = match (&codes[..], wide) {
            (&[code], true) => i128::from(code as i32),
            (&[code], false) => i128::from(code as u8 as i8),
            _ => return self.wrong(Code::Lexical, span, "this is not one character"),
        };
        let ty = if wide { self.int() } else { self.char_type() };
        Expr { kind: ExprKind::Int(Wide(value)), ty, span }
    }

    fn string(&mut self, parts: &[Symbol], wide: bool, span: Span) -> Expr {
        let codes = string_codes(parts, wide);
        let len = self.make(TyKind::Nat(codes.len() as u64 + 1));
        let (kind, element) = if wide {
            (ExprKind::WideStr(codes.into()), self.int())
        } else {
            (ExprKind::Str(codes.into_iter().map(|code| code as u8).collect()), self.char_type())
        };
        let zeroterm = self.truth(true);
        let quals = Quals { is_const: true, ..Quals::default() };
        let ty = self.make(TyKind::Array(Array { element, quals, len: Some(len), zeroterm }));
        Expr { kind, ty, span }
    }

    fn null(&mut self, expected: Option<Ty>, span: Span) -> Expr {
        if let Some(expected) = expected
            && let TyKind::Pointer(pointer) = self.types.get(expected).clone()
        {
            let yes = self.truth(true);
            if self.try_unify(pointer.nullable, yes).is_err() {
                let wanted = self.show(expected);
                let message = format!("NULL is not a value of type `{wanted}`");
                let nullable = self.show(pointer.target);
                let report = Diagnostic::error(Code::WrongType, span, message);
                return self.wrong_as(report.help(format!("`{nullable} *` may be NULL")));
            }
            return Expr { kind: ExprKind::Null, ty: expected, span };
        }
        let mut pointer = self.unknown_pointer();
        pointer.nullable = self.truth(true);
        let ty = self.make(TyKind::Pointer(pointer));
        Expr { kind: ExprKind::Null, ty, span }
    }

    fn conditional(&mut self, [condition, yes, no]: &[ast::Expr; 3], expected: Option<Ty>, span: Span) -> Expr {
        let condition = Box::new(self.condition(condition));
        let yes = self.value(yes, expected);
        let no = self.value(no, expected);
        let (yes, no) = self.join(yes, no, expected, span);
        let ty = yes.ty;
        Expr { kind: ExprKind::Conditional(condition, Box::new(yes), Box::new(no)), ty, span }
    }

    /// Brings two values that meet to one type.
    pub fn join(&mut self, left: Expr, right: Expr, expected: Option<Ty>, span: Span) -> (Expr, Expr) {
        if self.is_arithmetic(left.ty) && self.is_arithmetic(right.ty) {
            let common = if self.types.head(left.ty) == self.types.head(right.ty) {
                left.ty
            } else {
                self.common_type(left.ty, right.ty)
            };
            return (self.number_to(left, common), self.number_to(right, common));
        }
        let (left_ty, right_ty) = (left.ty, right.ty);
        let is_pointer = |checker: &Self, ty| matches!(checker.types.get(ty), TyKind::Pointer(_));
        let targets = match (is_pointer(self, left_ty), is_pointer(self, right_ty)) {
            (true, false) => vec![left_ty],
            (false, true) => vec![right_ty],
            _ if self.is_wider(right_ty, left_ty) => vec![right_ty, left_ty],
            _ => vec![left_ty, right_ty],
        };
        let wanted = expected.filter(|&ty| matches!(self.types.get(ty), TyKind::Pointer(_)));
        let mut pair = (left, right);
        for target in wanted.into_iter().chain(targets) {
            let before = self.types.snapshot();
            let messages = self.diagnostics.len();
            let left = match self.try_coerce(pair.0, target) {
                Ok(left) => left,
                Err(refusal) => {
                    self.types.rollback(before);
                    pair.0 = refusal.0;
                    continue;
                }
            };
            match self.try_coerce(pair.1, target) {
                Ok(right) => return (left, right),
                Err(refusal) => {
                    self.types.rollback(before);
                    self.diagnostics.truncate(messages);
                    pair = (unwrapped(left, left_ty), refusal.0);
                }
            }
        }
        let (have, other) = (self.show(left_ty), self.show(right_ty));
        let wrong = self.wrong(Code::WrongType, span, format!("the two values have types `{have}` and `{other}`"));
        let ty = wrong.ty;
        (wrong, Expr { kind: ExprKind::Error, ty, span })
    }

    /// Whether a pointer type has more values: null, or fat.
    fn is_wider(&self, wide: Ty, narrow: Ty) -> bool {
        match (self.types.get(wide), self.types.get(narrow)) {
            (TyKind::Pointer(a), TyKind::Pointer(b)) => {
                let fat = |ty| matches!(self.types.get(ty), TyKind::Fat);
                fat(a.bound) && !fat(b.bound)
                    || fat(a.bound) == fat(b.bound) && self.is_true(a.nullable) && self.is_false(b.nullable)
                    || a.quals.is_const && !b.quals.is_const
            }
            _ => false,
        }
    }

    fn offset_of(&mut self, ty: &ast::Type, path: &[ast::Ident], span: Span) -> Expr {
        let (whole, _) = self.read_type(ty, Position::Body);
        let mut at = whole;
        let mut indices = ThinVec::new();
        for name in path {
            match self.find_member(at, *name) {
                Some(steps) => {
                    for (index, ty, _) in steps {
                        indices.push(index);
                        at = ty;
                    }
                }
                None => {
                    let shown = self.show(at);
                    return self.wrong(
                        Code::UnknownName,
                        name.span,
                        format!("`{shown}` has no member `{}`", name.name),
                    );
                }
            }
        }
        let ty = self.size_type();
        Expr { kind: ExprKind::OffsetOf(whole, indices), ty, span }
    }

    /// The type of what is thrown: ``datatype exn @`H``.
    pub fn exception_type(&mut self, span: Span) -> Option<Ty> {
        let path = ast::Path { qualifier: None, name: Symbol::new("exn"), span };
        let id = self.lookup_datatype(&path)?;
        let target = self.make(TyKind::Datatype(id, self.types.no_arguments()));
        let heap = self.make(TyKind::Heap);
        let pointer = self.pointer_to(target, Quals::default(), heap);
        Some(self.make(TyKind::Pointer(pointer)))
    }

    fn throw(&mut self, thrown: &ast::Expr, expected: Option<Ty>, span: Span) -> Expr {
        let Some(exception) = self.exception_type(span) else {
            return self.wrong(Code::UnknownName, span, "`datatype exn` is not declared");
        };
        let value = self.value(thrown, Some(exception));
        let value = self.coerce(value, exception, thrown.span);
        let ty = expected.unwrap_or_else(|| self.fresh(Kind::Any));
        Expr { kind: ExprKind::Throw(Box::new(value)), ty, span }
    }

    fn numelts(&mut self, operand: &ast::Expr, span: Span) -> Expr {
        let pointer = self.followed(operand);
        let ty = self.size_type();
        match self.types.get(pointer.ty).clone() {
            TyKind::Error => pointer,
            TyKind::Pointer(parts) => {
                let fat = self.make(TyKind::Fat);
                // An unknown bound is settled: asking for it means that it is kept.
                let _ = self.try_unify(parts.bound, fat);
                if matches!(self.types.get(parts.target), TyKind::Var(_)) && self.types.kind(parts.target) == Kind::Any
                {
                    let shown = self.show(parts.target);
                    let message = format!(
                        "the size of `{shown}` is not known: this counts bytes; elements are counted where it is `{shown}::B`"
                    );
                    self.warn(Code::Incomplete, span, message);
                }
                Expr { kind: ExprKind::Numelts(Box::new(pointer)), ty, span }
            }
            _ => {
                let shown = self.show(pointer.ty);
                self.wrong(Code::WrongType, span, format!("`numelts` takes a pointer, not `{shown}`"))
            }
        }
    }

    fn tag_of(&mut self, operand: &ast::Expr, span: Span) -> Expr {
        let value = self.value(operand, None);
        let ty = self.make(TyKind::Int(Signedness::Unsigned, IntSize::Int));
        if let TyKind::Pointer(parts) = self.types.get(value.ty).clone()
            && let TyKind::Datatype(id, _) | TyKind::Constructor(id, ..) = *self.types.get(parts.target)
            && !self.declarations.datatype(id).is_extensible
        {
            self.access(parts.region, span);
            let bound = self.thin(1);
            let no = self.truth(false);
            let to = self.pointer_type(Pointer { nullable: no, zeroterm: no, bound, ..parts });
            let value = self.coerce(value, to, operand.span);
            return Expr { kind: ExprKind::TagOf(Box::new(value)), ty, span };
        }
        if matches!(value.kind, ExprKind::Error) {
            return value;
        }
        let shown = self.show(value.ty);
        self.wrong(Code::WrongType, span, format!("`tagof` takes a pointer to a datatype, not `{shown}`"))
    }

    fn asm(&mut self, asm: &ast::Asm, span: Span) -> Expr {
        let outputs = asm.outputs.iter().map(|(text, operand)| (text.clone(), self.place(operand))).collect();
        let inputs = asm.inputs.iter().map(|(text, operand)| (text.clone(), self.value(operand, None))).collect();
        let asm = Asm {
            is_volatile: asm.is_volatile,
            template: asm.template.clone(),
            outputs,
            inputs,
            clobbers: asm.clobbers.clone(),
        };
        let ty = self.make(TyKind::Void);
        Expr { kind: ExprKind::Asm(Box::new(asm)), ty, span }
    }

    fn tuple(&mut self, parts: &[ast::Expr], expected: Option<Ty>, span: Span) -> Expr {
        let wanted: Option<Rc<[Member]>> = expected.and_then(|ty| match self.types.get(ty) {
            TyKind::Tuple(members) if members.len() == parts.len() => Some(members.clone()),
            _ => None,
        });
        let mut entries = ThinVec::new();
        let mut members = Vec::new();
        for (index, part) in parts.iter().enumerate() {
            let want = wanted.as_ref().map(|members| &members[index]);
            let mut value = self.value(part, want.map(|member| member.ty));
            if let Some(want) = want {
                value = match self.try_coerce(value, want.ty) {
                    Ok(value) => value,
                    Err(refusal) => refusal.0,
                };
            }
            self.check_consumed(&value);
            members.push(Member { name: None, ty: value.ty, quals: want.map_or(Quals::default(), |want| want.quals) });
            entries.push((index as u64, Init::Value(value)));
        }
        let ty = self.make(TyKind::Tuple(members.into()));
        let list = InitList { ty, existentials: ThinVec::new(), entries, span };
        Expr { kind: ExprKind::Aggregate(Box::new(Init::List(list))), ty, span }
    }

    fn statement_expression(&mut self, block: &ast::Block, expected: Option<Ty>, span: Span) -> Expr {
        let outside = self.types.fresh_bounded(Kind::Any, self.level(), crate::types::Alias::Restricted);
        let (block, ty) = self.block_with_value(block, expected);
        let Some(ty) = ty else {
            return self.wrong(Code::WrongType, span, "a statement expression ends with an expression");
        };
        if self.try_unify(outside, ty).is_err() {
            let shown = self.show(ty);
            return self.wrong(
                Code::WrongType,
                span,
                format!("the value of type `{shown}` would leave the block that its region belongs to"),
            );
        }
        Expr { kind: ExprKind::Statements(Box::new(block)), ty, span }
    }

    /// A constructor with its arguments, as a value of type `datatype T.C`.
    pub fn construct(
        &mut self,
        id: DatatypeId,
        index: u32,
        arguments: &[ast::Expr],
        expected: Option<Ty>,
        span: Span,
    ) -> Expr {
        let args = self.datatype_arguments(id);
        match expected.map(|ty| self.types.get(ty).clone()) {
            Some(TyKind::Constructor(other, _, wanted) | TyKind::Datatype(other, wanted)) if other == id => {
                for (&have, &want) in args.iter().zip(&wanted[..]) {
                    // What does not agree is found when the value is converted.
                    let _ = self.try_unify(have, want);
                }
            }
            _ => {}
        }
        let params = self.constructor_params(id, index, &args);
        if params.len() != arguments.len() {
            let name = self.declarations.datatype(id).constructors[index as usize].name;
            return self.wrong(
                Code::WrongArguments,
                span,
                format!("constructor `{name}` takes {} arguments, not {}", params.len(), arguments.len()),
            );
        }
        let values =
            arguments.iter().zip(params.iter()).map(|(argument, param)| self.argument(argument, param.ty)).collect();
        let ty = self.make(TyKind::Constructor(id, index, args));
        Expr { kind: ExprKind::Construct(id, index, values), ty, span }
    }

    /// Unknown arguments for a datatype's parameters.
    pub fn datatype_arguments(&mut self, id: DatatypeId) -> Rc<[Ty]> {
        let params = self.declarations.datatype(id).params.clone();
        self.unknown_arguments(&params)
    }

    /// A pointer type from its parts.
    pub fn pointer_type(&mut self, pointer: Pointer) -> Ty {
        self.make(TyKind::Pointer(pointer))
    }

    /// A place of array or function type becomes a pointer; everything else stays.
    pub fn decay(&mut self, place: Expr) -> Expr {
        let place = match self.types.get(place.ty) {
            TyKind::Array(_) => self.lend_around(place),
            _ => place,
        };
        self.decay_to_follow(place)
    }

    /// The same for a pointer that is followed at once: it may lead into an owned object.
    pub(super) fn decay_to_follow(&mut self, place: Expr) -> Expr {
        if !matches!(self.types.get(place.ty), TyKind::Array(_) | TyKind::Function(_)) {
            return place;
        }
        let ty = match self.types.get(place.ty).clone() {
            TyKind::Array(array) => {
                let properties = self.properties(&place);
                let len = array.len.unwrap_or_else(|| self.make(TyKind::Nat(0)));
                let quals = Quals { is_const: array.quals.is_const || properties.quals.is_const, ..array.quals };
                let mut pointer = self.pointer_to(array.element, quals, properties.region);
                pointer.bound = self.make(TyKind::Thin(len));
                pointer.zeroterm = array.zeroterm;
                self.mark_address_taken(&place);
                pointer
            }
            TyKind::Function(_) => {
                if let Some(wrong) = self.refuse_as_value(&place) {
                    return wrong;
                }
                let heap = self.make(TyKind::Heap);
                self.pointer_to(place.ty, Quals::default(), heap)
            }
            _ => return place,
        };
        let ty = self.pointer_type(ty);
        wrap(Coercion::Decay, place, ty)
    }
}

/// Takes a conversion that was tried off again.
fn unwrapped(value: Expr, ty: Ty) -> Expr {
    let mut value = value;
    loop {
        match value.kind {
            ExprKind::Coerce(_, inner) | ExprKind::Instantiate(inner, _) if value.ty != ty => value = *inner,
            kind => return Expr { kind, ty, span: value.span },
        }
    }
}

/// Whether it is a type of characters.
pub fn is_character(kind: &TyKind) -> bool {
    matches!(kind, TyKind::Int(Signedness::Plain | Signedness::Signed | Signedness::Unsigned, IntSize::Char))
}

/// The characters of adjacent strings, without the 0 at the end.
pub fn string_codes(parts: &[Symbol], wide: bool) -> Vec<u32> {
    let mut codes = Vec::new();
    for part in parts {
        literals::characters(part.as_str(), wide, &mut codes);
    }
    codes
}
