//! Every expression of a function or of a part of it, from the outside in.

use crate::tree::{Block, Clause, Expr, ExprKind, Function, Init, Pattern, PatternKind, RegionKind, Stmt, StmtKind};

/// Calls `visit` for each expression of a function's body, an outer one before those in it.
pub fn expressions<'t>(function: &'t Function, visit: &mut dyn FnMut(&'t Expr)) {
    block(&function.body, visit);
}

/// Calls `visit` for each expression of a statement.
pub fn in_statement<'t>(inner: &'t Stmt, visit: &mut dyn FnMut(&'t Expr)) {
    statement(inner, visit);
}

/// Calls `visit` for an expression and each one in it.
pub fn in_expression<'t>(inner: &'t Expr, visit: &mut dyn FnMut(&'t Expr)) {
    expression(inner, visit);
}

/// Calls `visit` for each expression of an initial value.
pub fn in_init<'t>(value: &'t Init, visit: &mut dyn FnMut(&'t Expr)) {
    init(value, visit);
}

/// Calls `visit` for each pattern of a function's body, an outer one before those in it.
pub fn patterns<'t>(function: &'t Function, visit: &mut dyn FnMut(&'t Pattern)) {
    let mut within = |statement: &'t Stmt| match &statement.kind {
        StmtKind::Let { pattern, .. } => in_pattern(pattern, visit),
        StmtKind::Switch(switch) => switch.clauses.iter().for_each(|clause| in_pattern(&clause.pattern, visit)),
        StmtKind::Try(_, clauses) => clauses.iter().for_each(|clause| in_pattern(&clause.pattern, visit)),
        _ => {}
    };
    function.body.statements.iter().for_each(|inner| statements(inner, &mut within));
}

fn in_pattern<'t>(matched: &'t Pattern, visit: &mut dyn FnMut(&'t Pattern)) {
    visit(matched);
    match &matched.kind {
        PatternKind::Bind(_, Some(inner))
        | PatternKind::Reference(_, Some(inner))
        | PatternKind::Deref(inner)
        | PatternKind::Tagged(_, inner) => in_pattern(inner, visit),
        PatternKind::Tuple(parts) | PatternKind::Struct(_, parts) | PatternKind::Constructor(_, _, parts) => {
            parts.iter().for_each(|(_, part)| in_pattern(part, visit));
        }
        _ => {}
    }
}

/// Calls `visit` for a statement and those in it; not for those in expressions.
pub fn statements<'t>(outer: &'t Stmt, visit: &mut dyn FnMut(&'t Stmt)) {
    visit(outer);
    match &outer.kind {
        StmtKind::Block(inner) => inner.statements.iter().for_each(|inner| statements(inner, visit)),
        StmtKind::Alias { body, .. } => body.iter().for_each(|inner| statements(inner, visit)),
        StmtKind::Region(region) => region.body.iter().for_each(|inner| statements(inner, visit)),
        StmtKind::If(_, then, other) => {
            statements(then, visit);
            other.iter().for_each(|inner| statements(inner, visit));
        }
        StmtKind::Switch(switch) => {
            let bodies = switch.clauses.iter().flat_map(|clause| &clause.body.statements);
            bodies.for_each(|inner| statements(inner, visit));
        }
        StmtKind::Try(body, clauses) => {
            statements(body, visit);
            let bodies = clauses.iter().flat_map(|clause| &clause.body.statements);
            bodies.for_each(|inner| statements(inner, visit));
        }
        StmtKind::While(_, body)
        | StmtKind::DoWhile(body, _)
        | StmtKind::For { body, .. }
        | StmtKind::Labelled(_, body) => {
            statements(body, visit);
        }
        _ => {}
    }
}

/// Whether evaluating an expression may change something.
pub fn has_effect(expr: &Expr) -> bool {
    let mut found = false;
    in_expression(expr, &mut |inner| {
        found |= matches!(
            inner.kind,
            ExprKind::Assign(..)
                | ExprKind::Step { .. }
                | ExprKind::Swap(..)
                | ExprKind::Call(_)
                | ExprKind::Throw(_)
                | ExprKind::New(..)
                | ExprKind::Alloc { .. }
                | ExprKind::Asm(_)
                | ExprKind::Assert(..)
                | ExprKind::Statements(_)
        );
    });
    found
}

fn block<'t>(block: &'t Block, visit: &mut dyn FnMut(&'t Expr)) {
    block.statements.iter().for_each(|inner| statement(inner, visit));
}

fn statement<'t>(statement_: &'t Stmt, visit: &mut dyn FnMut(&'t Expr)) {
    match &statement_.kind {
        StmtKind::Expr(inner) | StmtKind::Return(Some(inner)) => expression(inner, visit),
        StmtKind::Block(inner) => block(inner, visit),
        StmtKind::Declare(_, Some(value)) => init(value, visit),
        StmtKind::Let { pattern: matched, value, .. } => {
            expression(value, visit);
            pattern(matched, visit);
        }
        StmtKind::Alias { value, body, .. } => {
            expression(value, visit);
            body.iter().for_each(|inner| statement(inner, visit));
        }
        StmtKind::Region(region) => {
            if let RegionKind::Open(key) = &region.kind {
                expression(key, visit);
            }
            region.body.iter().for_each(|inner| statement(inner, visit));
        }
        StmtKind::If(test, then, other) => {
            expression(test, visit);
            statement(then, visit);
            if let Some(other) = other {
                statement(other, visit);
            }
        }
        StmtKind::Switch(switch) => {
            expression(&switch.value, visit);
            clauses(&switch.clauses, visit);
        }
        StmtKind::Try(body, handlers) => {
            statement(body, visit);
            clauses(handlers, visit);
        }
        StmtKind::While(test, body) => {
            expression(test, visit);
            statement(body, visit);
        }
        StmtKind::DoWhile(body, test) => {
            statement(body, visit);
            expression(test, visit);
        }
        StmtKind::For { init, condition, step, body } => {
            [init, condition, step].into_iter().flatten().for_each(|inner| expression(inner, visit));
            statement(body, visit);
        }
        StmtKind::Labelled(_, inner) => statement(inner, visit),
        StmtKind::Fallthru(values) => values.iter().for_each(|inner| expression(inner, visit)),
        StmtKind::Empty
        | StmtKind::Declare(_, None)
        | StmtKind::Return(None)
        | StmtKind::Goto(_)
        | StmtKind::Continue
        | StmtKind::Break => {}
    }
}

fn clauses<'t>(clauses: &'t [Clause], visit: &mut dyn FnMut(&'t Expr)) {
    for clause in clauses {
        pattern(&clause.pattern, visit);
        if let Some(guard) = &clause.guard {
            expression(guard, visit);
        }
        block(&clause.body, visit);
    }
}

fn pattern<'t>(matched: &'t Pattern, visit: &mut dyn FnMut(&'t Expr)) {
    match &matched.kind {
        PatternKind::Value(value) => expression(value, visit),
        PatternKind::Bind(_, Some(inner))
        | PatternKind::Reference(_, Some(inner))
        | PatternKind::Deref(inner)
        | PatternKind::Tagged(_, inner) => pattern(inner, visit),
        PatternKind::Tuple(parts) | PatternKind::Struct(_, parts) | PatternKind::Constructor(_, _, parts) => {
            parts.iter().for_each(|(_, part)| pattern(part, visit));
        }
        _ => {}
    }
}

fn init<'t>(value: &'t Init, visit: &mut dyn FnMut(&'t Expr)) {
    match value {
        Init::Value(value) => expression(value, visit),
        Init::List(list) => list.entries.iter().for_each(|(_, entry)| init(entry, visit)),
        Init::Comprehension(comprehension) => {
            expression(&comprehension.len, visit);
            if let Some(value) = &comprehension.value {
                expression(value, visit);
            }
        }
        Init::String(_) => {}
    }
}

fn expression<'t>(outer: &'t Expr, visit: &mut dyn FnMut(&'t Expr)) {
    visit(outer);
    match &outer.kind {
        ExprKind::Unary(_, inner)
        | ExprKind::Step { place: inner, .. }
        | ExprKind::Deref(inner, _)
        | ExprKind::Member(inner, _)
        | ExprKind::TaggedMember(inner, ..)
        | ExprKind::Address(inner)
        | ExprKind::TagCheck(inner, _)
        | ExprKind::Coerce(_, inner)
        | ExprKind::Instantiate(inner, _)
        | ExprKind::Throw(inner)
        | ExprKind::Numelts(inner)
        | ExprKind::TagOf(inner)
        | ExprKind::Assert(_, inner)
        | ExprKind::InferredAlias { value: inner, .. } => expression(inner, visit),
        ExprKind::Binary(_, left, right)
        | ExprKind::Assign(_, left, right)
        | ExprKind::Swap(left, right)
        | ExprKind::Comma(left, right)
        | ExprKind::Index(left, right, _) => {
            expression(left, visit);
            expression(right, visit);
        }
        ExprKind::Conditional(test, then, other) => {
            [test, then, other].into_iter().for_each(|inner| expression(inner, visit));
        }
        ExprKind::Call(call) => {
            expression(&call.callee, visit);
            let varargs = call.varargs.iter().flat_map(|varargs| &varargs.args);
            call.args.iter().chain(varargs).for_each(|inner| expression(inner, visit));
        }
        ExprKind::Aggregate(value) => init(value, visit),
        ExprKind::Construct(_, _, args) | ExprKind::Builtin(_, args, _) => {
            args.iter().for_each(|inner| expression(inner, visit));
        }
        ExprKind::New(place, value) => {
            place.region.iter().for_each(|inner| expression(inner, visit));
            init(value, visit);
        }
        ExprKind::Alloc { place, count, .. } => {
            place.region.iter().chain(count).for_each(|inner| expression(inner, visit));
        }
        ExprKind::Asm(asm) => {
            asm.outputs.iter().chain(&asm.inputs).for_each(|(_, inner)| expression(inner, visit));
        }
        ExprKind::Statements(inner) => block(inner, visit),
        _ => {}
    }
}
