//! Which values no clause covers, and which clauses no value reaches.
//!
//! The clauses are rows of a matrix of patterns (L. Maranget, "Warnings for pattern matching", Journal of Functional Programming
//! 17(3), 2007). [`Matrix::walk`] follows the tests that decide between the rows: it looks at the first row's first real pattern,
//! takes each constructor that occurs in that column, and what none of them is. A row that is first where nothing is left to
//! test is reached; where no row is left, the tests on the way describe a value that is not covered.
//!
//! A guard may always fail. Numbers have more values than can be listed, characters have 256; for enumerations see [`Enumerations`].

use crate::hash::{HashMap, HashSet};
use crate::tree::{Clause, Declarations, Pattern, PatternKind};
use crate::types::{DatatypeId, Ty, TyKind, Types};
use std::rc::Rc;

/// What the clauses of a `switch` do not do.
#[derive(Debug, Default)]
pub struct Gaps {
    /// A value that no clause covers, as a pattern.
    pub missing: Option<String>,
    /// The first clause that no value reaches.
    pub redundant: Option<usize>,
}

/// Which values an enumeration has.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Enumerations {
    /// Those of its underlying type, as in C.
    Open,
    /// Those that have names.
    Named,
}

/// Judges the clauses of a `switch` or `catch`.
pub fn judge(types: &Types, declarations: &Declarations, clauses: &[Clause], enumerations: Enumerations) -> Gaps {
    let rows = clauses.iter().enumerate().map(|(clause, row)| (&row.pattern, clause, row.guard.is_some()));
    let matrix = Matrix::new(types, declarations, clauses.len(), enumerations);
    judge_rows(matrix, rows)
}

/// A value that a single pattern does not match, if there is one.
pub fn missing_case(types: &Types, declarations: &Declarations, pattern: &Pattern) -> Option<String> {
    let matrix = Matrix::new(types, declarations, 1, Enumerations::Open);
    judge_rows(matrix, std::iter::once((pattern, 0, false))).missing
}

fn judge_rows<'a>(mut matrix: Matrix, clauses: impl Iterator<Item = (&'a Pattern, usize, bool)>) -> Gaps {
    let rows = clauses
        .map(|(pattern, clause, guarded)| Row { parts: vec![matrix.simple(pattern)], clause, guarded })
        .collect();
    matrix.walk(rows, &mut Vec::new());
    if matrix.steps > STEP_LIMIT {
        return Gaps::default();
    }
    let redundant = matrix.reached.iter().position(|reached| !reached);
    Gaps { missing: matrix.missing, redundant }
}

/// Patterns whose tests grow exponentially are not judged to the end; no program of people comes near.
const STEP_LIMIT: u32 = 1_000_000;

/// A pattern with only what can fail to match.
#[derive(Clone, Debug)]
enum Simple {
    Any,
    Test(Rc<Test>),
}

#[derive(Debug)]
struct Test {
    head: Head,
    /// Of what is tested.
    ty: Ty,
    /// How many heads there are; `None`: more than can be listed.
    span: Option<usize>,
    parts: Vec<Simple>,
}

/// What a test looks for.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
enum Head {
    Null,
    Pointer,
    Int(i64),
    Float(crate::symbol::Symbol),
    /// A tuple or structure: there is only one.
    Whole,
    Member(usize),
    Constructor(DatatypeId, u32),
    /// A value that is not known here; each is different.
    Value(usize),
}

#[derive(Clone, Debug)]
struct Row {
    parts: Vec<Simple>,
    clause: usize,
    guarded: bool,
}

/// A step on the way to a leaf: what is known of one tested part.
enum Known {
    /// It has this head; the next `parts` steps describe its parts. The steps stand in the order of the columns.
    Is(Rc<Test>),
    /// It has none of these heads.
    IsNot(Rc<Test>, Vec<Head>),
    /// Nothing.
    Free,
}

struct Matrix<'a> {
    types: &'a Types,
    declarations: &'a Declarations,
    enumerations: Enumerations,
    reached: Vec<bool>,
    missing: Option<String>,
    steps: u32,
}

impl<'a> Matrix<'a> {
    fn new(types: &'a Types, declarations: &'a Declarations, clauses: usize, enumerations: Enumerations) -> Matrix<'a> {
        Matrix { types, declarations, enumerations, reached: vec![false; clauses], missing: None, steps: 0 }
    }

    fn simple(&self, pattern: &Pattern) -> Simple {
        let ty = pattern.ty;
        let test = |head, span, parts| Simple::Test(Rc::new(Test { head, ty, span, parts }));
        match &pattern.kind {
            PatternKind::Wild | PatternKind::Tag(..) | PatternKind::Alias(..) => Simple::Any,
            PatternKind::Bind(_, inner) | PatternKind::Reference(_, inner) => {
                inner.as_ref().map_or(Simple::Any, |inner| self.simple(inner))
            }
            PatternKind::Int(value) => test(Head::Int(*value), self.numbers(ty), Vec::new()),
            PatternKind::Float(text) => test(Head::Float(*text), None, Vec::new()),
            PatternKind::Null => test(Head::Null, Some(2), Vec::new()),
            PatternKind::Value(value) => test(Head::Value(&raw const **value as usize), None, Vec::new()),
            PatternKind::Deref(inner) => {
                let nullable = match self.types.get(ty) {
                    TyKind::Pointer(pointer) => !matches!(self.types.get(pointer.nullable), TyKind::False),
                    _ => false,
                };
                test(Head::Pointer, Some(1 + usize::from(nullable)), vec![self.simple(inner)])
            }
            PatternKind::Tuple(parts) => {
                let len = match self.types.get(ty) {
                    TyKind::Tuple(members) => members.len(),
                    _ => parts.len(),
                };
                test(Head::Whole, Some(1), self.spread(parts, len))
            }
            PatternKind::Struct(_, parts) => {
                let len = self.members(ty);
                test(Head::Whole, Some(1), self.spread(parts, len))
            }
            PatternKind::Tagged(member, inner) => {
                test(Head::Member(*member), Some(self.members(ty)), vec![self.simple(inner)])
            }
            PatternKind::Constructor(id, index, parts) => {
                let datatype = self.declarations.datatype(*id);
                let span = match self.types.get(ty) {
                    TyKind::Constructor(..) => Some(1),
                    _ if datatype.is_extensible => None,
                    _ => Some(datatype.constructors.len()),
                };
                let len = datatype.constructors.get(*index as usize).map_or(0, |constructor| constructor.params.len());
                test(Head::Constructor(*id, *index), span, self.spread(parts, len))
            }
        }
    }

    /// How many numbers a type has, if they can be listed.
    fn numbers(&self, ty: Ty) -> Option<usize> {
        match *self.types.get(ty) {
            TyKind::Int(_, crate::ast::IntSize::Char) => Some(256),
            TyKind::Enum(id) if self.enumerations == Enumerations::Named => {
                let values = self.declarations.enumeration(id).values.as_ref()?;
                Some(values.iter().map(|(_, value)| value).collect::<HashSet<_>>().len())
            }
            _ => None,
        }
    }

    fn members(&self, ty: Ty) -> usize {
        match self.types.get(ty) {
            TyKind::Aggregate(id, _) => {
                self.declarations.aggregate(*id).body.as_ref().map_or(0, |body| body.fields.len())
            }
            _ => 0,
        }
    }

    fn spread(&self, parts: &[(usize, Pattern)], len: usize) -> Vec<Simple> {
        let mut out = vec![Simple::Any; len];
        for (index, part) in parts {
            if let Some(slot) = out.get_mut(*index) {
                *slot = self.simple(part);
            }
        }
        out
    }

    /// `known` describes the columns to the left that have been decided; all parts of a row stand to the right of them.
    fn walk(&mut self, mut rows: Vec<Row>, known: &mut Vec<Known>) {
        self.steps += 1;
        if self.steps > STEP_LIMIT {
            return;
        }
        loop {
            let Some(first) = rows.first() else {
                if self.missing.is_none() {
                    self.missing = Some(self.describe(known));
                }
                return;
            };
            if first.parts.iter().any(|part| matches!(part, Simple::Test(_))) {
                break;
            }
            self.reached[first.clause] = true;
            if !first.guarded {
                return;
            }
            rows.remove(0);
        }
        let leading_free = leading_free(&rows);
        for _ in 0..leading_free {
            known.push(Known::Free);
        }
        for row in &mut rows {
            row.parts.drain(..leading_free);
        }
        self.split(rows, known);
        known.truncate(known.len() - leading_free);
    }

    /// Tells the heads of the first column apart; at least one row has a test there.
    fn split(&mut self, rows: Vec<Row>, known: &mut Vec<Known>) {
        let mut heads: Vec<Rc<Test>> = Vec::new();
        let mut of_head: HashMap<Head, Vec<Row>> = HashMap::default();
        let mut others: Vec<Row> = Vec::new();
        for row in rows {
            match row.parts[0].clone() {
                Simple::Any => {
                    for test in &heads {
                        let free = std::iter::repeat_n(Simple::Any, test.parts.len());
                        let parts = free.chain(row.parts[1..].iter().cloned()).collect();
                        let group = of_head.get_mut(&test.head).expect("each head in the list has its rows");
                        group.push(Row { parts, ..row });
                    }
                    others.push(Row { parts: row.parts[1..].to_vec(), ..row });
                }
                Simple::Test(test) => {
                    let group = of_head.entry(test.head).or_insert_with(|| {
                        heads.push(test.clone());
                        let free = test.parts.len();
                        let widen = |row: &Row| {
                            let parts =
                                std::iter::repeat_n(Simple::Any, free).chain(row.parts.iter().cloned()).collect();
                            Row { parts, ..*row }
                        };
                        others.iter().map(widen).collect()
                    });
                    let parts = test.parts.iter().chain(&row.parts[1..]).cloned().collect();
                    group.push(Row { parts, ..row });
                }
            }
        }
        for test in &heads {
            let group = of_head.remove(&test.head).unwrap_or_default();
            known.push(Known::Is(test.clone()));
            self.walk(group, known);
            known.pop();
        }
        let complete = heads.iter().map(|test| test.span).max().flatten().is_some_and(|span| heads.len() >= span)
            && heads.iter().all(|test| test.span.is_some());
        if !complete {
            known.push(Known::IsNot(heads[0].clone(), heads.iter().map(|test| test.head).collect()));
            self.walk(others, known);
            known.pop();
        }
    }

    /// The value that the steps describe, as a pattern.
    fn describe(&self, known: &[Known]) -> String {
        let mut steps = known.iter();
        self.describe_next(&mut steps)
    }

    fn describe_next(&self, steps: &mut std::slice::Iter<'_, Known>) -> String {
        match steps.next() {
            None | Some(Known::Free) => "_".to_owned(),
            Some(Known::IsNot(test, heads)) => self.describe_other(test, heads),
            Some(Known::Is(test)) => {
                let parts: Vec<String> = test.parts.iter().map(|_| self.describe_next(steps)).collect();
                self.describe_head(test.head, test.ty, &parts)
            }
        }
    }

    fn describe_head(&self, head: Head, ty: Ty, parts: &[String]) -> String {
        let list = parts.join(", ");
        match head {
            Head::Null => "NULL".to_owned(),
            Head::Pointer => format!("&{list}"),
            Head::Int(value) => value.to_string(),
            Head::Float(text) => text.to_string(),
            Head::Value(_) => "_".to_owned(),
            Head::Whole => match self.types.get(ty) {
                TyKind::Aggregate(id, _) => {
                    let name = self.declarations.aggregate(*id).name.map_or("", |name| name.as_str());
                    format!("{name}{{{list}}}")
                }
                _ => format!("$({list})"),
            },
            Head::Member(member) => match self.types.get(ty) {
                TyKind::Aggregate(id, _) => {
                    let aggregate = self.declarations.aggregate(*id);
                    let field = aggregate.body.as_ref().and_then(|body| body.fields.get(member));
                    let field = field.and_then(|field| field.name).map_or("", |name| name.as_str());
                    format!("{}{{.{field} = {list}}}", aggregate.name.map_or("", |name| name.as_str()))
                }
                _ => "_".to_owned(),
            },
            Head::Constructor(id, index) => {
                let constructor = &self.declarations.datatype(id).constructors[index as usize];
                if parts.is_empty() { constructor.name.to_string() } else { format!("{}({list})", constructor.name) }
            }
        }
    }

    /// A value with none of these heads.
    fn describe_other(&self, test: &Test, heads: &[Head]) -> String {
        let free = |len: usize| vec!["_".to_owned(); len.min(1)];
        let other = match test.head {
            Head::Null | Head::Pointer => [Head::Null, Head::Pointer].into_iter().find(|head| !heads.contains(head)),
            Head::Int(_) => (0..=i64::MAX).map(Head::Int).find(|head| !heads.contains(head)),
            Head::Member(_) => (0..self.members(test.ty)).map(Head::Member).find(|head| !heads.contains(head)),
            Head::Constructor(id, _) if !self.declarations.datatype(id).is_extensible => {
                let count = self.declarations.datatype(id).constructors.len() as u32;
                (0..count).map(|index| Head::Constructor(id, index)).find(|head| !heads.contains(head))
            }
            _ => None,
        };
        match other {
            Some(head @ Head::Constructor(id, index)) => {
                let constructor = &self.declarations.datatype(id).constructors[index as usize];
                let parts = if constructor.params.is_empty() { Vec::new() } else { vec!["...".to_owned()] };
                self.describe_head(head, test.ty, &parts)
            }
            Some(head @ (Head::Null | Head::Int(_))) => self.describe_head(head, test.ty, &[]),
            Some(head) => self.describe_head(head, test.ty, &free(1)),
            None => "_".to_owned(),
        }
    }
}

/// How many columns at the left no row tests.
fn leading_free(rows: &[Row]) -> usize {
    let first_test = |row: &Row| row.parts.iter().position(|part| matches!(part, Simple::Test(_)));
    rows.iter().filter_map(first_test).min().unwrap_or(0)
}
