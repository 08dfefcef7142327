//! What a jump leaves, and what must survive one.
//!
//! Handlers and lexical regions are on the run-time stack; `break`, `continue`, `goto` and `return` take off what lies between.
//! A throw comes back to a handler as from C's `setjmp`: variables declared outside of a `try` and assigned inside are
//! `volatile` in C, so that their values are there afterwards. That is not enough where they are changed by pointers: C compilers
//! leave out what is stored in a variable before a call that does not return if they think that nobody else has its address. So each
//! `try` shows the addresses of such variables to what they cannot look into.

use super::function::Body;
use crate::hash::{HashMap, HashSet};
use crate::tree::{
    Block, Call, Coercion, Expr, ExprKind, Function, Init, LabelId, LocalId, Pattern, PatternKind, RegionKind, Stmt,
    StmtKind,
};
use std::fmt::Write;

/// Something on the run-time stack.
pub enum Frame {
    /// A `try`.
    Handler,
    /// A lexical region: its C variable.
    Region(String),
}

impl Body<'_, '_> {
    /// Takes off all frames but the outermost `depth`.
    pub fn leave(&mut self, depth: usize) {
        match self.frames.len().saturating_sub(depth) {
            0 => {}
            1 => match self.frames.last() {
                Some(Frame::Region(name)) => {
                    let _ = write!(self.out, "_cyc_region_pop(&{name}); ");
                }
                _ => self.push("_cyc_pop_handler(); "),
            },
            count => {
                let _ = write!(self.out, "_cyc_unwind({count}); ");
            }
        }
    }
}

/// How many frames there are around each label.
pub fn label_depths(block: &Block) -> HashMap<LabelId, usize> {
    let mut depths = HashMap::default();
    labels_in(&block.statements, 0, &mut depths);
    depths
}

fn labels_in(statements: &[Stmt], depth: usize, depths: &mut HashMap<LabelId, usize>) {
    for statement in statements {
        label_in(statement, depth, depths);
    }
}

fn label_in(statement: &Stmt, depth: usize, depths: &mut HashMap<LabelId, usize>) {
    match &statement.kind {
        StmtKind::Labelled(label, inner) => {
            depths.insert(*label, depth);
            label_in(inner, depth, depths);
        }
        StmtKind::Block(block) => labels_in(&block.statements, depth, depths),
        StmtKind::Alias { body, .. } => labels_in(body, depth, depths),
        StmtKind::Region(region) => {
            let frame = usize::from(matches!(region.kind, RegionKind::Lexical));
            labels_in(&region.body, depth + frame, depths);
        }
        StmtKind::If(_, then, otherwise) => {
            label_in(then, depth, depths);
            if let Some(otherwise) = otherwise {
                label_in(otherwise, depth, depths);
            }
        }
        StmtKind::While(_, body) | StmtKind::DoWhile(body, _) | StmtKind::For { body, .. } => {
            label_in(body, depth, depths);
        }
        StmtKind::Switch(switch) => {
            for clause in &switch.clauses {
                labels_in(&clause.body.statements, depth, depths);
            }
        }
        StmtKind::Try(body, clauses) => {
            label_in(body, depth + 1, depths);
            for clause in clauses {
                labels_in(&clause.body.statements, depth, depths);
            }
        }
        _ => {}
    }
}

/// What handlers of a function may see changed.
#[derive(Default)]
pub struct Survivors {
    /// Variables that are assigned in a `try` inside of which they are not declared.
    pub assigned: HashSet<LocalId>,
    /// For each `try`, by the address of its body, the variables around it that may be changed by a pointer.
    pub reached: HashMap<usize, Vec<LocalId>>,
}

/// The key of a `try` in [`Survivors::reached`].
pub fn key_of_try(body: &Stmt) -> usize {
    std::ptr::from_ref(body) as usize
}

pub fn survivors(function: &Function) -> Survivors {
    let parameters = (0..function.params).map(|at| LocalId(at as u32));
    let mut walk = Changes { visible: parameters.collect(), ..Changes::default() };
    walk.block(&function.body);
    let Changes { mut survivors, addressed, .. } = walk;
    let is_static = |local: &LocalId| function.locals.get(local.0 as usize).is_none_or(|local| local.is_static);
    for reached in survivors.reached.values_mut() {
        reached.retain(|local| !is_static(local) && (addressed.contains(local) || survivors.assigned.contains(local)));
    }
    survivors
}

#[derive(Default)]
struct Changes {
    survivors: Survivors,
    /// Variables whose address is taken, or that are arrays and become pointers.
    addressed: HashSet<LocalId>,
    /// Variables in scope.
    visible: Vec<LocalId>,
    /// For each `try` around, the variables declared in it so far.
    declared: Vec<HashSet<LocalId>>,
}

impl Changes {
    fn declare(&mut self, local: LocalId) {
        self.visible.push(local);
        for declared in &mut self.declared {
            declared.insert(local);
        }
    }

    fn address(&mut self, place: &Expr) {
        match &place.kind {
            ExprKind::Local(local) => drop(self.addressed.insert(*local)),
            ExprKind::Member(inner, _)
            | ExprKind::TaggedMember(inner, _, _)
            | ExprKind::Coerce(Coercion::Same | Coercion::Decay, inner) => self.address(inner),
            ExprKind::Index(inner, _, _) => self.address(inner),
            _ => {}
        }
    }

    fn assign(&mut self, place: &Expr) {
        match &place.kind {
            ExprKind::Local(local) if self.declared.iter().any(|declared| !declared.contains(local)) => {
                self.survivors.assigned.insert(*local);
            }
            ExprKind::Member(inner, _)
            | ExprKind::TaggedMember(inner, _, _)
            | ExprKind::Deref(inner, _)
            | ExprKind::Index(inner, _, _) => self.assign(inner),
            ExprKind::Coerce(Coercion::Decay, inner) => self.assign(inner),
            _ => {}
        }
    }

    fn block(&mut self, block: &Block) {
        self.statements(&block.statements);
    }

    fn statements(&mut self, statements: &[Stmt]) {
        let around = self.visible.len();
        for statement in statements {
            self.statement(statement);
        }
        self.visible.truncate(around);
    }

    fn statement(&mut self, statement: &Stmt) {
        match &statement.kind {
            StmtKind::Expr(expr) => self.expr(expr),
            StmtKind::Block(block) => self.block(block),
            StmtKind::Declare(local, init) => {
                self.declare(*local);
                if let Some(init) = init {
                    self.init(init);
                }
            }
            StmtKind::Let { pattern, value, .. } => {
                self.pattern(pattern);
                self.expr(value);
            }
            StmtKind::Alias { local, value, body, .. } => {
                self.declare(*local);
                self.expr(value);
                self.statements(body);
                self.visible.pop();
            }
            StmtKind::Region(region) => {
                self.declare(region.handle);
                if let RegionKind::Open(key) = &region.kind {
                    self.expr(key);
                }
                self.statements(&region.body);
                self.visible.pop();
            }
            StmtKind::If(condition, then, otherwise) => {
                self.expr(condition);
                self.statement(then);
                if let Some(otherwise) = otherwise {
                    self.statement(otherwise);
                }
            }
            StmtKind::Switch(switch) => {
                self.expr(&switch.value);
                self.clauses(&switch.clauses);
            }
            StmtKind::Try(body, clauses) => {
                self.survivors.reached.insert(key_of_try(body), self.visible.clone());
                self.declared.push(HashSet::default());
                self.statement(body);
                self.declared.pop();
                self.clauses(clauses);
            }
            StmtKind::While(condition, body) | StmtKind::DoWhile(body, condition) => {
                self.expr(condition);
                self.statement(body);
            }
            StmtKind::For { init, condition, step, body } => {
                for part in [init, condition, step].into_iter().flatten() {
                    self.expr(part);
                }
                self.statement(body);
            }
            StmtKind::Labelled(_, inner) => self.statement(inner),
            StmtKind::Return(Some(value)) => self.expr(value),
            StmtKind::Fallthru(values) => values.iter().for_each(|value| self.expr(value)),
            StmtKind::Empty | StmtKind::Goto(_) | StmtKind::Continue | StmtKind::Break | StmtKind::Return(None) => {}
        }
    }

    fn clauses(&mut self, clauses: &[crate::tree::Clause]) {
        for clause in clauses {
            let around = self.visible.len();
            self.pattern(&clause.pattern);
            if let Some(guard) = &clause.guard {
                self.expr(guard);
            }
            self.block(&clause.body);
            self.visible.truncate(around);
        }
    }

    fn pattern(&mut self, pattern: &Pattern) {
        match &pattern.kind {
            PatternKind::Bind(local, inner) | PatternKind::Reference(local, inner) => {
                self.declare(*local);
                if let Some(inner) = inner {
                    self.pattern(inner);
                }
            }
            PatternKind::Deref(inner) | PatternKind::Tagged(_, inner) => self.pattern(inner),
            PatternKind::Tuple(parts) | PatternKind::Struct(_, parts) | PatternKind::Constructor(_, _, parts) => {
                parts.iter().for_each(|(_, part)| self.pattern(part));
            }
            PatternKind::Tag(local, _) | PatternKind::Alias(local, _) => self.declare(*local),
            PatternKind::Wild
            | PatternKind::Int(_)
            | PatternKind::Float(_)
            | PatternKind::Null
            | PatternKind::Value(_) => {}
        }
    }

    fn init(&mut self, init: &Init) {
        match init {
            Init::Value(value) => self.expr(value),
            Init::List(list) => list.entries.iter().for_each(|(_, entry)| self.init(entry)),
            Init::Comprehension(comprehension) => {
                self.declare(comprehension.index);
                self.expr(&comprehension.len);
                if let Some(value) = &comprehension.value {
                    self.expr(value);
                }
                self.visible.pop();
            }
            Init::String(_) => {}
        }
    }

    fn expr(&mut self, expr: &Expr) {
        match &expr.kind {
            ExprKind::Assign(_, place, _) | ExprKind::Step { place, .. } => self.assign(place),
            ExprKind::Swap(left, right) => {
                self.assign(left);
                self.assign(right);
            }
            ExprKind::Statements(block) => return self.block(block),
            ExprKind::Address(place) | ExprKind::Coerce(Coercion::Decay, place) => self.address(place),
            _ => {}
        }
        match &expr.kind {
            ExprKind::New(_, init) | ExprKind::Aggregate(init) => self.init(init),
            ExprKind::Asm(asm) => asm.outputs.iter().for_each(|(_, place)| self.assign(place)),
            _ => {}
        }
        for_each_operand(expr, &mut |operand| self.expr(operand));
    }
}

/// The expressions just below an expression, from left to right; not those in initial values and statements.
pub fn for_each_operand<'e>(expr: &'e Expr, visit: &mut dyn FnMut(&'e Expr)) {
    match &expr.kind {
        ExprKind::Unary(_, a)
        | ExprKind::Deref(a, _)
        | ExprKind::Member(a, _)
        | ExprKind::TaggedMember(a, _, _)
        | ExprKind::Address(a)
        | ExprKind::TagCheck(a, _)
        | ExprKind::Coerce(_, a)
        | ExprKind::Instantiate(a, _)
        | ExprKind::Throw(a)
        | ExprKind::Numelts(a)
        | ExprKind::TagOf(a)
        | ExprKind::Assert(_, a)
        | ExprKind::InferredAlias { value: a, .. }
        | ExprKind::Step { place: a, .. } => visit(a),
        ExprKind::Binary(_, a, b)
        | ExprKind::Assign(_, a, b)
        | ExprKind::Swap(a, b)
        | ExprKind::Comma(a, b)
        | ExprKind::Index(a, b, _) => {
            visit(a);
            visit(b);
        }
        ExprKind::Conditional(a, b, c) => {
            visit(a);
            visit(b);
            visit(c);
        }
        ExprKind::Call(call) => {
            let Call { callee, args, varargs, .. } = &**call;
            visit(callee);
            args.iter().for_each(&mut *visit);
            varargs.iter().flat_map(|varargs| &varargs.args).for_each(&mut *visit);
        }
        ExprKind::Construct(_, _, args) | ExprKind::Builtin(_, args, _) => args.iter().for_each(visit),
        ExprKind::Alloc { place, count, .. } => {
            place.region.iter().for_each(|region| visit(region));
            count.iter().for_each(|count| visit(count));
        }
        ExprKind::New(place, _) => place.region.iter().for_each(|region| visit(region)),
        ExprKind::Asm(asm) => {
            asm.outputs.iter().for_each(|(_, place)| visit(place));
            asm.inputs.iter().for_each(|(_, value)| visit(value));
        }
        ExprKind::Error
        | ExprKind::Int(_)
        | ExprKind::Float(_)
        | ExprKind::Str(_)
        | ExprKind::WideStr(_)
        | ExprKind::Null
        | ExprKind::Local(_)
        | ExprKind::Global(_)
        | ExprKind::Aggregate(_)
        | ExprKind::SizeOf(_)
        | ExprKind::OffsetOf(..)
        | ExprKind::ValueOf(_)
        | ExprKind::Statements(_)
        | ExprKind::Handle(_) => {}
    }
}
