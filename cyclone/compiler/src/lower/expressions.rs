//! Values.
//!
//! [`Body::raw`] writes an expression as C sees it, with the shape that [`Body::shape_of`] says; what it writes can stand after
//! a cast or before a `.` without parentheses. [`Body::value_as`] writes the conversion to the shape that is wanted around it.

use super::function::Body;
use super::shapes::{C, Shape};
use crate::ast::{BinOp, IntSize, Tested};
use crate::tree::{Asm, Coercion, Expr, ExprKind, StmtKind, UnaryOp};
use crate::types::{Alias, Signedness, Ty, TyKind};
use std::fmt::Write;

/// How a value of one shape becomes one of another.
enum Conversion {
    None,
    Cast,
    WordToInt,
    WordToBool,
    IntToWord,
    /// What has four bytes or one into a word or on the way to one: the upper half is zero.
    HalfToWord,
    Reinterpret,
}

impl<'p> Body<'_, 'p> {
    /// The shape of what [`raw`](Body::raw) writes.
    pub fn shape_of(&mut self, expr: &Expr) -> C {
        match &expr.kind {
            ExprKind::Local(id) => match self.local(*id) {
                Some(local) => self.lower.shape(local.ty),
                None => self.lower.shape(expr.ty),
            },
            ExprKind::Global(id) => {
                let ty = self.lower.program.declarations.global(*id).ty;
                self.lower.shape(ty)
            }
            ExprKind::Member(base, index) | ExprKind::TaggedMember(base, index, _) => {
                self.lower.member(base.ty, *index).0
            }
            ExprKind::Deref(pointer, _) | ExprKind::Index(pointer, _, _) => self.target_shape(pointer.ty),
            ExprKind::Assign(_, place, _) | ExprKind::Step { place, .. } => self.shape_of(place),
            ExprKind::InferredAlias { value, .. } => self.shape_of(value),
            ExprKind::Coerce(Coercion::Same, inner) if !self.gives_up_terminator(inner.ty, expr.ty) => {
                self.shape_of(inner)
            }
            ExprKind::Call(call) => self.result_shape(call),
            _ => self.lower.shape(expr.ty),
        }
    }

    /// The value in the shape of its type.
    pub fn value(&mut self, expr: &'p Expr) {
        let want = self.lower.shape(expr.ty);
        self.value_as(expr, want);
    }

    /// The value in the shape that is wanted.
    pub fn value_as(&mut self, expr: &'p Expr, want: C) {
        if let ExprKind::Null = expr.kind {
            return self.null(want);
        }
        if self.open_end(expr.ty).is_some() {
            // C would copy the structure without its elements.
            self.lower.unsupported(expr.span, "a copy of a structure that ends in an array of unknown length");
        }
        let have = self.shape_of(expr);
        self.converted(have, want, |body| body.raw(expr));
    }

    /// Writes a conversion around what `write` writes, which can stand after a cast.
    pub fn converted(&mut self, have: C, want: C, write: impl FnOnce(&mut Self)) {
        match self.conversion(have, want) {
            Conversion::None => write(self),
            Conversion::Cast => {
                let cast = self.lower.cast(want);
                put!(self.out, "((", cast, ")");
                write(self);
                self.push(")");
            }
            Conversion::WordToInt => {
                let cast = self.lower.cast(want);
                put!(self.out, "((", cast, ")(_cyc_word)");
                write(self);
                self.push(")");
            }
            Conversion::WordToBool => {
                self.push("((_Bool)((_cyc_word)");
                write(self);
                self.push(" & 1))");
            }
            Conversion::IntToWord => {
                self.push("((void *)(_cyc_word)");
                write(self);
                self.push(")");
            }
            Conversion::HalfToWord => {
                let cast = self.lower.cast(want);
                put!(self.out, "((", cast, ")(_cyc_word)(unsigned int)");
                write(self);
                self.push(")");
            }
            Conversion::Reinterpret => {
                let (from, to) = (self.lower.declarator(have, "_cyc_v"), self.lower.cast(want));
                let _ = write!(self.out, "({{ {from} = ");
                write(self);
                let _ = write!(self.out, "; *({to} *)&_cyc_v; }})");
            }
        }
    }

    fn conversion(&self, have: C, want: C) -> Conversion {
        if have == want {
            return Conversion::None;
        }
        let shapes = &self.lower.shapes;
        let is_number = |c: C| {
            matches!(
                shapes.get(c),
                Shape::Int(..) | Shape::Bool | Shape::Carried | Shape::Qualifier | Shape::Float(_) | Shape::Complex(_)
            )
        };
        let is_half = |c: C| matches!(shapes.get(c), Shape::Int(_, IntSize::Int) | Shape::Bool | Shape::Carried);
        match (shapes.get(have), shapes.get(want)) {
            (_, Shape::Void) => Conversion::Cast,
            (_, Shape::Word | Shape::Carried) if is_half(have) => Conversion::HalfToWord,
            (Shape::Word | Shape::Carried, Shape::Bool) => Conversion::WordToBool,
            (Shape::Word, _) if is_number(want) => Conversion::WordToInt,
            (_, Shape::Word) if is_number(have) => Conversion::IntToWord,
            (Shape::Word | Shape::Pointer { .. } | Shape::Array(..) | Shape::Function { .. }, _)
            | (_, Shape::Word | Shape::Pointer { .. }) => Conversion::Cast,
            _ if is_number(have) && is_number(want) => Conversion::Cast,
            _ => Conversion::Reinterpret,
        }
    }

    fn null(&mut self, want: C) {
        match self.lower.shapes.get(want) {
            Shape::Fat => self.push("_cyc_fat_null"),
            Shape::Word | Shape::Pointer { .. } => {
                let cast = self.lower.cast(want);
                put!(self.out, "((", cast, ")0)");
            }
            _ => self.push("0"),
        }
    }

    /// Something that is true or false to C.
    pub fn condition(&mut self, expr: &'p Expr) {
        match &expr.kind {
            ExprKind::Null => return self.push("0"),
            ExprKind::Unary(UnaryOp::Not, inner) => {
                self.push("!");
                return self.condition(inner);
            }
            ExprKind::Binary(op @ (BinOp::LogAnd | BinOp::LogOr), left, right) => {
                self.push("(");
                self.condition(left);
                self.push(if *op == BinOp::LogAnd { " && " } else { " || " });
                self.condition(right);
                return self.push(")");
            }
            _ => {}
        }
        self.value(expr);
        let c = self.lower.shape(expr.ty);
        if *self.lower.shapes.get(c) == Shape::Fat {
            self.push(".curr");
        }
    }

    /// An expression for its effect.
    pub fn effect(&mut self, expr: &'p Expr) {
        match &expr.kind {
            ExprKind::Comma(left, right) => {
                self.effect(left);
                self.push(", ");
                self.effect(right);
            }
            ExprKind::Coerce(Coercion::ToVoid | Coercion::Same, inner) => self.effect(inner),
            ExprKind::Throw(exception) => self.throw(exception),
            ExprKind::Step { place, up, .. } => self.step(place, *up, false),
            ExprKind::Conditional(condition, then, otherwise) => {
                self.push("(");
                self.condition(condition);
                self.push(" ? (void)(");
                self.effect(then);
                self.push(") : (void)(");
                self.effect(otherwise);
                self.push("))");
            }
            ExprKind::Assert(Tested::False, _) => self.push("_cyc_throw_assert()"),
            _ => self.raw(expr),
        }
    }

    fn throw(&mut self, exception: &'p Expr) {
        self.push("_cyc_throw(");
        let word = self.lower.shapes.make(Shape::Word);
        self.value_as(exception, word);
        self.push(")");
    }

    /// The expression in the shape that [`shape_of`](Body::shape_of) says.
    pub fn raw(&mut self, expr: &'p Expr) {
        match &expr.kind {
            ExprKind::Error => self.push("0"),
            ExprKind::Int(value) => {
                let text = self.lower.integer_literal(value.0, expr.ty);
                self.push(&text);
            }
            ExprKind::Float(text) => {
                let cast = self.lower.type_name(expr.ty);
                let _ = write!(self.out, "(({cast}){text})");
            }
            ExprKind::Str(bytes) => {
                let name = self.lower.string(bytes);
                self.push(&name);
            }
            ExprKind::WideStr(text) => {
                let literal = super::constants::wide_string_literal(text);
                self.push(&literal);
            }
            ExprKind::Null => {
                let c = self.lower.shape(expr.ty);
                self.null(c);
            }
            ExprKind::Local(id) => self.push_local(*id),
            ExprKind::Global(id) => {
                let name = self.lower.use_global(*id);
                self.push(&name);
            }
            ExprKind::Unary(op, operand) => self.unary(*op, operand),
            ExprKind::Binary(op, left, right) => self.binary(*op, left, right, expr),
            ExprKind::Assign(op, place, value) => self.assign(*op, place, value),
            ExprKind::Step { place, up, postfix } => self.step(place, *up, *postfix),
            ExprKind::Swap(left, right) => self.swap(left, right),
            ExprKind::Conditional(condition, then, otherwise) => {
                self.push("(");
                self.condition(condition);
                let c = self.lower.shape(expr.ty);
                self.push(" ? ");
                self.value_as(then, c);
                self.push(" : ");
                self.value_as(otherwise, c);
                self.push(")");
            }
            ExprKind::Comma(left, right) => {
                self.push("(");
                self.effect(left);
                self.push(", ");
                self.value(right);
                self.push(")");
            }
            ExprKind::Call(call) => self.call(call),
            ExprKind::Deref(..) | ExprKind::Index(..) | ExprKind::Member(..) => self.place(expr),
            ExprKind::TaggedMember(base, index, check) => self.tagged_member(base, *index, *check),
            ExprKind::Address(place) => self.address(place, expr.ty),
            ExprKind::TagCheck(base, index) => {
                self.push("(");
                self.raw(base);
                let _ = write!(self.out, ".tag == {})", index + 1);
            }
            ExprKind::Coerce(coercion, inner) => self.coerce(*coercion, inner, expr.ty),
            ExprKind::Instantiate(function, types) => self.instantiated(function, types, expr.ty),
            ExprKind::Aggregate(init) => self.aggregate(init, expr.ty),
            ExprKind::Construct(id, index, args) => self.construct(*id, *index, args),
            ExprKind::SizeOf(ty) => {
                let name = self.lower.type_name(*ty);
                let c = self.lower.type_name(expr.ty);
                put!(self.out, "((", c, ")sizeof(", name, "))");
            }
            ExprKind::OffsetOf(ty, path) => self.offset_of(*ty, path, expr.ty),
            ExprKind::Throw(exception) => {
                let c = self.lower.shape(expr.ty);
                self.push("({ ");
                self.throw(exception);
                if *self.lower.shapes.get(c) != Shape::Void {
                    let declaration = self.lower.declarator(c, "_cyc_v");
                    let _ = write!(self.out, "; {declaration}; _cyc_v");
                }
                self.push("; })");
            }
            ExprKind::New(allocation, init) => self.new_object(allocation, init, expr),
            ExprKind::Alloc { place, element, count, zeroed, .. } => {
                self.allocate(place, *element, count.as_deref(), *zeroed, expr);
            }
            ExprKind::Numelts(pointer) => self.numelts(pointer),
            ExprKind::TagOf(pointer) => {
                self.push("((unsigned int)(");
                self.value(pointer);
                self.push(")->tag)");
            }
            ExprKind::ValueOf(number) => {
                let text = self.number(*number, expr.span);
                let cast = self.lower.type_name(expr.ty);
                let _ = write!(self.out, "(({cast}){text})");
            }
            ExprKind::Asm(asm) => self.asm(asm),
            ExprKind::Assert(tested, condition) => {
                self.push("((");
                match tested {
                    Tested::False => self.push("0"),
                    Tested::Run | Tested::Proved => self.condition(condition),
                }
                self.push(") ? 1 : ({ _cyc_throw_assert(); 0; }))");
            }
            ExprKind::Statements(block) => self.statement_expression(block, expr),
            ExprKind::InferredAlias { value, .. } => self.raw(value),
            ExprKind::Handle(ty) => self.handle(*ty, expr),
            ExprKind::Builtin(name, operands, ty) => {
                let _ = write!(self.out, "{name}(");
                for (index, operand) in operands.iter().enumerate() {
                    if index > 0 {
                        self.push(", ");
                    }
                    self.raw(operand);
                }
                if let Some(ty) = ty {
                    let name = self.lower.type_name(*ty);
                    let _ = write!(self.out, "{}{name}", if operands.is_empty() { "" } else { ", " });
                }
                self.push(")");
            }
        }
    }

    fn unary(&mut self, op: UnaryOp, operand: &'p Expr) {
        match op {
            UnaryOp::Not => {
                self.push("(!");
                self.condition(operand);
                self.push(")");
            }
            UnaryOp::Minus | UnaryOp::Complement => {
                self.push(if op == UnaryOp::Minus { "(- " } else { "(~" });
                self.value(operand);
                self.push(")");
            }
        }
    }

    fn binary(&mut self, op: BinOp, left: &'p Expr, right: &'p Expr, expr: &'p Expr) {
        if matches!(op, BinOp::LogAnd | BinOp::LogOr) {
            return self.condition(expr);
        }
        if self.is_order_seen([left, right]) {
            let c = self.lower.shape(left.ty);
            self.push("({ ");
            let name = self.temporary(c, |body| body.value_as(left, c));
            self.operation(op, (left.ty, &|body: &mut Self| body.push(&name)), right, expr);
            return self.push("; })");
        }
        self.operation(op, (left.ty, &|body: &mut Self| body.value(left)), right, expr);
    }

    fn operation(&mut self, op: BinOp, left: (Ty, &dyn Fn(&mut Self)), right: &'p Expr, expr: &'p Expr) {
        if self.is_pointer_operation(left.0, right.ty) {
            return self.pointer_operation(op, left, right, expr);
        }
        self.push("(");
        left.1(self);
        put!(self.out, " ", operator(op), " ");
        self.value(right);
        self.push(")");
    }

    fn statement_expression(&mut self, block: &'p crate::tree::Block, expr: &'p Expr) {
        self.push("({");
        let c = self.lower.shape(expr.ty);
        match block.statements.split_last() {
            Some((last, before)) if *self.lower.shapes.get(c) != Shape::Void => {
                self.statements(before);
                match &last.kind {
                    StmtKind::Expr(value) => {
                        self.line(last.span);
                        self.value_as(value, c);
                        self.push(";");
                    }
                    // A declaration of a region or alias holds the rest of the block.
                    _ => self.nested_value(last, c),
                }
            }
            _ => self.statements(&block.statements),
        }
        self.push(" })");
    }

    /// The value of a statement expression whose last statement holds the statements after it.
    fn nested_value(&mut self, last: &'p crate::tree::Stmt, c: C) {
        match &last.kind {
            StmtKind::Alias { local, value, body, .. } => {
                self.declare_local(*local);
                self.push(" = ");
                self.value_for_local(value, *local);
                self.push(";");
                if let Some((last, before)) = body.split_last() {
                    self.statements(before);
                    match &last.kind {
                        StmtKind::Expr(value) => {
                            self.value_as(value, c);
                            self.push(";");
                        }
                        _ => self.nested_value(last, c),
                    }
                }
            }
            _ => self.lower.unsupported(last.span, "a statement expression that ends in this statement"),
        }
    }

    fn offset_of(&mut self, ty: Ty, path: &[usize], result: Ty) {
        let program = self.lower.program;
        let (cast, name) = (self.lower.type_name(result), self.lower.type_name(ty));
        let mut members = Vec::new();
        let mut at = ty;
        for &index in path {
            members.push(self.lower.member(at, index).1);
            at = match program.types.get(at) {
                TyKind::Aggregate(id, _) => match &program.declarations.aggregate(*id).body {
                    Some(body) if index < body.fields.len() => body.fields[index].ty,
                    _ => at,
                },
                TyKind::Tuple(parts) if index < parts.len() => parts[index].ty,
                _ => at,
            };
        }
        let _ = write!(self.out, "(({cast})__builtin_offsetof({name}, {}))", members.join("."));
    }

    fn handle(&mut self, ty: Ty, expr: &'p Expr) {
        let program = self.lower.program;
        match program.types.get(ty) {
            TyKind::Aqual(alias) => self.push(match alias {
                Alias::Unique => "_cyc_unique",
                Alias::Refcnt => "_cyc_refcnt",
                Alias::Aliasable | Alias::Restricted => "_cyc_aliasable",
            }),
            TyKind::Var(var) => match self.holder(*var) {
                Some(local) => self.push_local(local),
                None => self.lower.unsupported(expr.span, "the handle of a region that has none here"),
            },
            _ => self.push("((struct _cyc_region *)0)"),
        }
    }

    fn asm(&mut self, asm: &'p Asm) {
        let strings =
            |parts: &[crate::symbol::Symbol]| parts.iter().map(|part| part.as_str()).collect::<Vec<_>>().join(" ");
        self.push("({ __asm__ ");
        if asm.is_volatile {
            self.push("volatile ");
        }
        let _ = write!(self.out, "({}", strings(&asm.template));
        for (operands, is_output) in [(&asm.outputs, true), (&asm.inputs, false)] {
            if asm.outputs.is_empty() && asm.inputs.is_empty() && asm.clobbers.is_empty() {
                break;
            }
            self.push(" : ");
            for (index, (constraint, operand)) in operands.iter().enumerate() {
                let _ = write!(self.out, "{}{} (", if index > 0 { ", " } else { "" }, strings(constraint));
                if is_output {
                    self.place(operand)
                } else {
                    self.value(operand)
                }
                self.push(")");
            }
        }
        if !asm.clobbers.is_empty() {
            let list: Vec<&str> = asm.clobbers.iter().map(|clobber| clobber.as_str()).collect();
            let _ = write!(self.out, " : {}", list.join(", "));
        }
        self.push("); })");
    }
}

/// C's spelling.
pub fn operator(op: BinOp) -> &'static str {
    match op {
        BinOp::Mul => "*",
        BinOp::Div => "/",
        BinOp::Rem => "%",
        BinOp::Add => "+",
        BinOp::Sub => "-",
        BinOp::Shl => "<<",
        BinOp::Shr => ">>",
        BinOp::Lt => "<",
        BinOp::Gt => ">",
        BinOp::Le => "<=",
        BinOp::Ge => ">=",
        BinOp::Eq => "==",
        BinOp::Ne => "!=",
        BinOp::And => "&",
        BinOp::Xor => "^",
        BinOp::Or => "|",
        BinOp::LogAnd => "&&",
        BinOp::LogOr => "||",
    }
}

impl super::Lower<'_> {
    /// A C type's name, as in a cast.
    pub fn type_name(&mut self, ty: Ty) -> std::rc::Rc<str> {
        let c = self.shape(ty);
        self.cast(c)
    }

    /// An integer constant of this type.
    pub fn integer_literal(&self, value: i128, ty: Ty) -> String {
        let suffix = match self.program.types.get(ty) {
            TyKind::Int(Signedness::Unsigned, IntSize::Int) => "U",
            TyKind::Int(Signedness::Unsigned, IntSize::Long) | TyKind::TagHandle(_) => "UL",
            TyKind::Int(Signedness::Unsigned, IntSize::LongLong) => "ULL",
            TyKind::Int(_, IntSize::Long) => "L",
            TyKind::Int(_, IntSize::LongLong) => "LL",
            _ => "",
        };
        match value {
            0.. => match u64::try_from(value) {
                Ok(value) => text!(value, suffix),
                Err(_) => format!("{value}{suffix}"),
            },
            // The literal is the negated one, which for the least number is too large for its type.
            _ => format!("(-{}{suffix} - 1)", -(value + 1)),
        }
    }
}
