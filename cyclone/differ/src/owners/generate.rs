//! Random functions over owners, what they own, and what points into that.
//!
//! The types are right; whether owners are used as they may be is left to chance, with a little help ([`Scope::alive`]) so that a good part is accepted.
//! A function is a tree of statements, so that it can be made shorter.

use fastrand::Rng;
use std::collections::BTreeSet;

/// A statement.
#[derive(Clone, Debug)]
pub enum Stmt {
    /// One without statements inside.
    Line(String),
    /// One with a body: what stands before and behind it.
    Block(String, Vec<Stmt>, String),
}

/// A function: its statements, in the order of writing.
pub fn function(number: u64) -> Vec<Stmt> {
    let mut maker = Maker { random: Rng::with_seed(number), scopes: vec![Scope::default()], names: 0, loops: 0 };
    let mut body = maker.beginnings();
    for _ in 0..maker.random.usize(3..9) {
        body.push(maker.statement(3));
    }
    body.extend(maker.endings());
    body
}

/// The text of a function.
pub fn text(number: u64, body: &[Stmt]) -> String {
    let mut text = format!(
        "static int f{number}(int n) {{\n  int x = n, y = 1;\n  struct Cell here = Cell{{n, {{1, 2, 3}}}};\n  @tagged union Either e; e.number = n;\n"
    );
    write(body, 1, &mut text);
    text + "  return sink(x + y);\n}\n"
}

/// Lines of a function's text before its first statement.
pub const LINES_BEFORE: usize = 4;

/// The statements without those that begin or end on these lines of the text, counted from the first statement's on. Of a block its body stays.
pub fn without_lines(body: &[Stmt], wrong: &BTreeSet<usize>) -> Vec<Stmt> {
    fn keep(body: &[Stmt], line: &mut usize, wrong: &BTreeSet<usize>) -> Vec<Stmt> {
        let mut kept = Vec::new();
        for statement in body {
            let mut is_wrong = wrong.contains(line);
            *line += 1;
            match statement {
                Stmt::Line(_) if is_wrong => {}
                Stmt::Line(_) => kept.push(statement.clone()),
                Stmt::Block(before, inner, behind) => {
                    let inner = keep(inner, line, wrong);
                    is_wrong |= wrong.contains(line);
                    *line += 1;
                    match is_wrong {
                        true => kept.extend(inner),
                        false => kept.push(Stmt::Block(before.clone(), inner, behind.clone())),
                    }
                }
            }
        }
        kept
    }
    keep(body, &mut 0, wrong)
}

fn write(body: &[Stmt], depth: usize, text: &mut String) {
    let indent = "  ".repeat(depth);
    for statement in body {
        match statement {
            Stmt::Line(line) => *text += &format!("{indent}{line}\n"),
            Stmt::Block(before, body, behind) => {
                *text += &format!("{indent}{before}\n");
                write(body, depth + 1, text);
                *text += &format!("{indent}{behind}\n");
            }
        }
    }
}

/// What a variable is.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Sort {
    /// `own_t`
    Own,
    /// `owner_t`
    Owner,
    /// `deep_t`
    Deep,
    /// `counted_t`
    Counted,
    /// A pointer to a cell, which can be copied.
    Cell,
    /// A pointer to an owner, which can be copied.
    Shared,
    /// A pointer to a number.
    Number,
    /// A fat pointer to numbers.
    Numbers,
}

/// The variables of a block.
#[derive(Default)]
struct Scope {
    variables: Vec<(Sort, String)>,
}

struct Maker {
    random: Rng,
    scopes: Vec<Scope>,
    names: usize,
    loops: usize,
}

impl Maker {
    fn one_of(&mut self, choices: &[&str]) -> String {
        let at = self.random.usize(..choices.len());
        choices[at].to_owned()
    }

    fn chance(&mut self, percent: u32) -> bool {
        self.random.u32(..100) < percent
    }

    fn name(&mut self, sort: Sort) -> String {
        self.names += 1;
        let letter = match sort {
            Sort::Own => "u",
            Sort::Owner => "o",
            Sort::Deep => "d",
            Sort::Counted => "r",
            Sort::Cell => "c",
            Sort::Shared => "s",
            Sort::Number => "p",
            Sort::Numbers => "v",
        };
        format!("{letter}{}", self.names)
    }

    fn declared(&mut self, sort: Sort, name: String) {
        if let Some(scope) = self.scopes.last_mut() {
            scope.variables.push((sort, name));
        }
    }

    /// A variable of this sort that is in scope.
    fn variable(&mut self, sort: Sort) -> Option<String> {
        let all: Vec<&String> = self
            .scopes
            .iter()
            .flat_map(|scope| &scope.variables)
            .filter(|(other, _)| *other == sort)
            .map(|(_, name)| name)
            .collect();
        let at = if all.is_empty() { return None } else { self.random.usize(..all.len()) };
        Some(all[at].clone())
    }

    /// The variables that a function begins with.
    fn beginnings(&mut self) -> Vec<Stmt> {
        let mut body = Vec::new();
        for (sort, ty, value, percent) in [
            (Sort::Own, "own_t", "fresh(n)", 90),
            (Sort::Own, "own_t", "fresh(2)", 40),
            (Sort::Owner, "owner_t", "fresh_owner(fresh(3))", 50),
            (Sort::Deep, "deep_t", "unew Deep{fresh_owner(fresh(4)), Cell{1, {2, 3, 4}}}", 25),
            (Sort::Counted, "counted_t", "fresh_counted(n)", 35),
            (Sort::Shared, "struct Owner *", "new Owner{fresh(5), 2, Cell{1, {2, 3, 4}}}", 40),
            (Sort::Cell, "struct Cell *", "NULL", 40),
            (Sort::Number, "int *", "NULL", 40),
            (Sort::Numbers, "int ?", "NULL", 20),
        ] {
            if self.chance(percent) {
                let name = self.name(sort);
                body.push(Stmt::Line(format!("{ty} {name} = {value};")));
                self.declared(sort, name);
            }
        }
        if self.chance(15) {
            let name = self.name(Sort::Own);
            body.push(Stmt::Line(format!("static own_t {name} = NULL;")));
            self.declared(Sort::Own, name);
        }
        body
    }

    /// Uses of what is left.
    fn endings(&mut self) -> Vec<Stmt> {
        let mut body = Vec::new();
        for _ in 0..2 {
            let number = self.number(1);
            body.push(Stmt::Line(format!("x += {number};")));
        }
        for (sort, call) in [(Sort::Cell, "look"), (Sort::Number, "look_at"), (Sort::Numbers, "look_fat")] {
            if let Some(name) = self.variable(sort) {
                body.push(Stmt::Line(format!("x += {call}({name});")));
            }
        }
        body
    }

    /// A pointer to a cell, of any sort.
    fn cell(&mut self, depth: u32) -> String {
        let owner = |maker: &mut Self| maker.owner_path();
        if depth > 0 && self.chance(30) {
            let (a, d) = (self.cell(depth - 1), depth - 1);
            return match self.random.u32(..9) {
                0 => format!("pass({a})"),
                1 => format!("other({a}, {})", self.cell(d)),
                2 => format!("id({a})"),
                3 => format!("({} ? {a} : {})", self.number(d), self.cell(d)),
                4 => format!("({}, {a})", self.number(d)),
                5 => format!("({{ {} {a}; }})", self.line(d)),
                6 => format!("(struct Cell *){a}"),
                7 => format!("same({})", self.own(d)),
                _ => format!("&({a})[0]"),
            };
        }
        match self.random.u32(..14) {
            0..4 => self.variable(Sort::Own).unwrap_or_else(|| "g_own".to_owned()),
            4 | 5 => self.variable(Sort::Cell).unwrap_or_else(|| "g_cell".to_owned()),
            6 => self.variable(Sort::Counted).unwrap_or_else(|| "g_counted->cell".to_owned()),
            7 | 8 => format!("{}->one", owner(self)),
            9 => format!("&{}->in", owner(self)),
            10 => match self.variable(Sort::Deep) {
                Some(deep) => format!("&{deep}->in"),
                None => "&here".to_owned(),
            },
            11 => self.one_of(&["g_own", "g_cell", "g_owner->one", "&g_owner->in", "g_shared->one", "g_counted->cell"]),
            12 => "&here".to_owned(),
            _ => self.one_of(&["e.cell", "NULL", "new Cell{3, {4, 5, 6}}", "fresh(1)"]),
        }
    }

    /// A pointer to an owner, of any sort.
    fn owner_path(&mut self) -> String {
        let found = match self.random.u32(..8) {
            0..3 => self.variable(Sort::Owner),
            3 | 4 => self.variable(Sort::Shared),
            5 => self.variable(Sort::Deep).map(|deep| format!("{deep}->owner")),
            _ => None,
        };
        found.unwrap_or_else(|| self.one_of(&["g_shared", "g_shared", "g_owner"]))
    }

    /// An owner of a cell, to be consumed.
    fn own(&mut self, depth: u32) -> String {
        if depth > 0 && self.chance(25) {
            return match self.random.u32(..4) {
                0 => format!("same({})", self.own(depth - 1)),
                1 => format!("({} ? {} : {})", self.number(depth - 1), self.own(depth - 1), self.own(depth - 1)),
                2 => format!("id({})", self.own(depth - 1)),
                _ => format!("({}, {})", self.number(depth - 1), self.own(depth - 1)),
            };
        }
        match self.random.u32(..10) {
            0..5 => self.variable(Sort::Own).unwrap_or_else(|| "fresh(1)".to_owned()),
            5 => format!("{}->one", self.owner_path()),
            6 | 7 => "fresh(2)".to_owned(),
            8 => "unew Cell{1, {2, 3, 4}}".to_owned(),
            _ => "NULL".to_owned(),
        }
    }

    /// A place of an owner of a cell.
    fn own_place(&mut self) -> String {
        match self.random.u32(..6) {
            0..3 => self.variable(Sort::Own).unwrap_or_else(|| "g_own".to_owned()),
            3 | 4 => format!("{}->one", self.owner_path()),
            _ => "g_own".to_owned(),
        }
    }

    /// A pointer to a number.
    fn pointer(&mut self, depth: u32) -> String {
        let d = depth.saturating_sub(1);
        match self.random.u32(..10) {
            0 | 1 => format!("&{}->value", self.followed(d)),
            2 => format!("&{}->numbers[{}]", self.followed(d), self.number(d)),
            3 => format!("{}->numbers", self.followed(d)),
            4 => format!("inner({})", self.cell(d)),
            5 | 6 => self.variable(Sort::Number).unwrap_or_else(|| "g_int".to_owned()),
            7 => self.one_of(&["&x", "&y", "&here.value", "here.numbers", "g_int", "&e.whole.value"]),
            8 if depth > 0 => format!("({} ? {} : {})", self.number(d), self.pointer(d), self.pointer(d)),
            _ => match depth {
                0 => "g_int".to_owned(),
                _ => format!("&*{}", self.pointer(d)),
            },
        }
    }

    /// What can stand before `->` .
    fn followed(&mut self, depth: u32) -> String {
        let cell = self.cell(depth);
        if cell.chars().all(|c| c.is_ascii_alphanumeric() || "_->".contains(c)) { cell } else { format!("({cell})") }
    }

    /// A number.
    fn number(&mut self, depth: u32) -> String {
        if depth == 0 {
            return match self.random.u32(..7) {
                0 | 1 => self.one_of(&["x", "y", "n", "n + 1"]),
                2 => self.one_of(&["0", "1", "2"]),
                3 => format!("look({})", self.cell(0)),
                4 => format!("{}->value", self.followed(0)),
                5 => self.one_of(&["clear_own()", "clear_owner()", "clear_shared()", "clear_counted()", "e.number"]),
                _ => format!("look_at({})", self.pointer(0)),
            };
        }
        let d = depth - 1;
        match self.random.u32(..20) {
            0 | 1 => format!("look({})", self.cell(d)),
            2 => format!("look_two({}, {})", self.cell(d), self.cell(d)),
            3 | 4 => format!("look_after({}, {})", self.cell(d), self.number(d)),
            5 => format!("look_at({})", self.pointer(d)),
            6 => format!("look_const({})", self.owner_path()),
            7 => format!("look_fat({})", self.numbers(d)),
            8 => format!("{}->value", self.followed(d)),
            9 => format!("{}->numbers[{}]", self.followed(d), self.number(d)),
            10 => format!("*{}", self.pointer(d)),
            11 => format!("clear({})", self.owner_path()),
            12 => match self.variable(Sort::Deep) {
                Some(deep) => format!("clear_deep({deep})"),
                None => "clear_shared()".to_owned(),
            },
            13 => format!("put({}, {})", self.owner_path(), self.own(d)),
            14 => format!("consumes({}, {})", self.cell(d), self.own(d)),
            15 => format!("swaps({}, {})", self.owner_path(), self.owner_path()),
            16 => format!("may_throw({})", self.number(d)),
            17 => format!("with(look, {})", self.cell(d)),
            18 => format!("({{ {} {}; }})", self.line(d), self.number(d)),
            _ => format!("({} + {})", self.number(d), self.number(d)),
        }
    }

    /// A fat pointer.
    fn numbers(&mut self, depth: u32) -> String {
        match self.random.u32(..4) {
            0 => self.variable(Sort::Numbers).unwrap_or_else(|| "here.numbers".to_owned()),
            1 | 2 => format!("{}->numbers", self.followed(depth)),
            _ => format!("(int ?){}", self.pointer(depth)),
        }
    }

    /// A statement in one line.
    fn line(&mut self, depth: u32) -> String {
        let d = depth.min(2);
        match self.random.u32(..40) {
            0 => format!("x = {};", self.number(d)),
            1 => format!("sink({});", self.number(d)),
            2 | 24..28 => self.use_of_pointer(),
            28 | 29 => match self.variable(Sort::Own) {
                Some(own) => {
                    self.one_of(&["ufree({});", "eat({});", "g_own :=: {};", "put(g_shared, {});"]).replace("{}", &own)
                }
                None => "clear_own();".to_owned(),
            },
            30 | 31 => self.one_of(&["clear_own();", "clear_owner();", "clear_shared();", "clear_counted();"]),
            32 => format!("clear({});", self.owner_path()),
            3 | 33 | 34 => match self.variable(Sort::Cell) {
                Some(cell) => format!("{cell} = {};", self.cell(d)),
                None => format!("g_cell = {};", self.cell(d)),
            },
            4 | 35 | 36 => match self.variable(Sort::Number) {
                Some(number) => format!("{number} = {};", self.pointer(d)),
                None => format!("g_int = {};", self.pointer(d)),
            },
            5 | 37 => match self.variable(Sort::Numbers) {
                Some(numbers) => format!("{numbers} = {};", self.numbers(d)),
                None => format!("keep_int({});", self.pointer(d)),
            },
            6 => format!("keep({});", self.cell(d)),
            7 | 8 => format!("{} :=: {};", self.own_place(), self.own_place()),
            9 => format!("ufree({});", self.own(d)),
            10 => format!("eat({});", self.own(d)),
            11 => match self.variable(Sort::Own) {
                Some(own) => format!("{own} = {};", self.own(d)),
                None => format!("put(g_shared, {});", self.own(d)),
            },
            12 => format!("{} = {};", self.own_place(), self.own(d)),
            13 => match self.variable(Sort::Owner) {
                Some(owner) => format!("ufree({owner});"),
                None => "clear_owner();".to_owned(),
            },
            14 => match self.variable(Sort::Counted) {
                Some(counted) => self
                    .one_of(&["drop_refptr({});", "{} = fresh_counted(1);", "g_counted->cell :=: {};"])
                    .replace("{}", &counted),
                None => "clear_counted();".to_owned(),
            },
            15 => match (self.variable(Sort::Deep), self.variable(Sort::Owner)) {
                (Some(deep), Some(owner)) => format!("{deep}->owner :=: {owner};"),
                (Some(deep), None) => format!("ufree({deep});"),
                _ => "g_owner :=: g_owner;".to_owned(),
            },
            16 => format!("e.cell = {};", self.cell(d)),
            17 => self.one_of(&["e.number = n;", "e.whole = here;", "e.number = 77;"]),
            18 => format!("{}->value = {};", self.followed(d), self.number(d)),
            19 => format!("here = *{};", self.followed(d)),
            20 => format!("g_shape = new Boxed(n, {});", self.cell(d)),
            21 => format!("*{} = {};", self.pointer(d), self.number(d)),
            22 => format!("{};", self.number(d)),
            _ => format!("throw new Odd({});", self.number(0)),
        }
    }

    /// Something that a dangling pointer would be used for.
    fn use_of_pointer(&mut self) -> String {
        match self.random.u32(..3) {
            0 => match self.variable(Sort::Cell) {
                Some(cell) => format!("x += look({cell});"),
                None => "x += look(g_cell);".to_owned(),
            },
            1 => match self.variable(Sort::Number) {
                Some(number) => format!("x += look_at({number});"),
                None => "x += look_at(g_int);".to_owned(),
            },
            _ => match self.variable(Sort::Numbers) {
                Some(numbers) => format!("x += look_fat({numbers});"),
                None => "x += e.cell->value;".to_owned(),
            },
        }
    }

    fn body(&mut self, depth: u32) -> Vec<Stmt> {
        self.scopes.push(Scope::default());
        let count = self.random.usize(1..4);
        let body = (0..count).map(|_| self.statement(depth)).collect();
        self.scopes.pop();
        body
    }

    /// A body in whose beginning a variable is declared.
    fn body_with(&mut self, sort: Sort, name: &str, depth: u32) -> Vec<Stmt> {
        self.scopes.push(Scope { variables: vec![(sort, name.to_owned())] });
        let count = self.random.usize(1..4);
        let body = (0..count).map(|_| self.statement(depth)).collect();
        self.scopes.pop();
        body
    }

    /// The body of a clause: it does not fall through.
    fn clause(&mut self, body: Vec<Stmt>) -> Vec<Stmt> {
        let mut body = body;
        body.push(Stmt::Line(self.one_of(&["break;", "break;", "break;", "return x;"])));
        body
    }

    fn statement(&mut self, depth: u32) -> Stmt {
        if depth == 0 || self.chance(50) {
            return Stmt::Line(self.line(2));
        }
        let d = depth - 1;
        match self.random.u32(..24) {
            17.. => self.attack(),
            0 | 1 => {
                let test = self.number(1);
                Stmt::Block(format!("if ({test}) {{"), self.body(d), "}".to_owned())
            }
            2 => {
                self.loops += 1;
                let index = format!("i{}", self.loops);
                Stmt::Block(format!("for (int {index} = 0; {index} < 3; {index}++) {{"), self.body(d), "}".to_owned())
            }
            3 | 4 => {
                let name = self.name(Sort::Cell);
                let (region, value) = (format!("`{name}"), self.own_like());
                let before = format!("{{ let alias <{region}> struct Cell *{region} {name} = {value};");
                Stmt::Block(before, self.body_with(Sort::Cell, &name, d), "}".to_owned())
            }
            5 => {
                let name = self.name(Sort::Shared);
                let (region, value) = (format!("`{name}"), self.owner_path());
                let before = format!("{{ let alias <{region}> struct Owner *{region} {name} = {value};");
                Stmt::Block(before, self.body_with(Sort::Shared, &name, d), "}".to_owned())
            }
            6 => {
                let name = self.name(Sort::Cell);
                let value = self.cell(1);
                Stmt::Block(format!("{{ let {name} = {value};"), self.body_with(Sort::Cell, &name, d), "}".to_owned())
            }
            7 => {
                let name = self.name(Sort::Number);
                let value = self.pointer(1);
                Stmt::Block(format!("{{ let {name} = {value};"), self.body_with(Sort::Number, &name, d), "}".to_owned())
            }
            8 => {
                let (first, name) = (self.names, self.name(Sort::Number));
                let value = self.cell(1);
                let body = self.body_with(Sort::Number, &name, d);
                Stmt::Block(format!("{{ let &Cell{{*{name}, w{first}}} = {value};"), body, "}".to_owned())
            }
            9 => {
                let name = self.name(Sort::Own);
                let value = self.owner_path();
                let body = self.body_with(Sort::Own, &name, d);
                Stmt::Block(format!("{{ let &Owner{{{name}, ...}} = {value};"), body, "}".to_owned())
            }
            10 => {
                let name = self.name(Sort::Number);
                let value = self.cell(1);
                let some = self.body_with(Sort::Number, &name, d);
                let (none, some) = (self.body(d), self.clause(some));
                let none = self.clause(none);
                Stmt::Block(
                    format!("switch ({value}) {{ case NULL:"),
                    [none, vec![Stmt::Block(format!("case &Cell{{*{name}, ...}}:"), some, String::new())]].concat(),
                    "}".to_owned(),
                )
            }
            11 => {
                let (body, handler) = (self.body(d), self.body(d));
                let handler = self.clause(handler);
                let catch = Stmt::Block("} catch { case &Odd(_):".to_owned(), handler, String::new());
                let rest = Stmt::Line("default: break;".to_owned());
                Stmt::Block("try {".to_owned(), [body, vec![catch, rest]].concat(), "}".to_owned())
            }
            12 => {
                let name = self.name(Sort::Cell);
                let body = self.body_with(Sort::Cell, &name, d);
                let before = format!("{{ region r{name}; let {name} = rnew(r{name}) Cell{{7, {{8, 9, 1}}}};");
                Stmt::Block(before, body, "}".to_owned())
            }
            13 => {
                let name = self.name(Sort::Own);
                let value = self.own(1);
                Stmt::Block(format!("{{ own_t {name} = {value};"), self.body_with(Sort::Own, &name, d), "}".to_owned())
            }
            14 => {
                let name = self.name(Sort::Cell);
                let some = self.body_with(Sort::Cell, &name, d);
                let (some, none) = (self.clause(some), self.body(d));
                let none = Stmt::Block("default:".to_owned(), self.clause(none), String::new());
                Stmt::Block(
                    format!("switch (*g_shape) {{ case Boxed(_, {name}):"),
                    [some, vec![none]].concat(),
                    "}".to_owned(),
                )
            }
            15 => {
                let name = self.name(Sort::Counted);
                let value = self
                    .variable(Sort::Counted)
                    .map_or("fresh_counted(3)".to_owned(), |counted| format!("Core::alias_refptr({counted})"));
                let body = self.body_with(Sort::Counted, &name, d);
                Stmt::Block(format!("{{ counted_t {name} = {value};"), body, format!("drop_refptr({name}); }}"))
            }
            _ => {
                let name = self.name(Sort::Cell);
                let some = self.body_with(Sort::Cell, &name, d);
                let (some, none) = (self.clause(some), self.body(d));
                let none = Stmt::Block("default:".to_owned(), self.clause(none), String::new());
                Stmt::Block(
                    format!("switch (e) {{ case Either{{.cell = {name}}}:"),
                    [some, vec![none]].concat(),
                    "}".to_owned(),
                )
            }
        }
    }

    /// A pointer is taken to or into what an owner owns, the owner frees it, the pointer is used.
    fn attack(&mut self) -> Stmt {
        let (owner, kill) = self.owner_and_kill();
        let name = self.name(Sort::Cell);
        let (take, used) = match self.random.u32(..13) {
            0 => (format!("let {name} = {owner};"), format!("look({name})")),
            1 => (format!("let {name} = &{owner}->value;"), format!("*{name}")),
            2 => (format!("let {name} = {owner}->numbers;"), format!("{name}[1]")),
            3 => (format!("let {name} = inner({owner});"), format!("look_at({name})")),
            4 => (format!("let &Cell{{*{name}, ...}} = {owner};"), format!("*{name}")),
            5 => (format!("keep({owner});"), "look(g_cell)".to_owned()),
            6 => (format!("g_int = &{owner}->numbers[1];"), "look_at(g_int)".to_owned()),
            7 => (format!("e.cell = {owner};"), "look(e.cell)".to_owned()),
            8 => (format!("g_shape = new Boxed(1, {owner});"), "look(g_cell)".to_owned()),
            9 => (format!("struct Box<struct Cell *> {name} = Box{{{owner}, 1}};"), format!("look({name}.content)")),
            10 => (format!("let alias <`{name}> struct Cell *`{name} {name} = {owner};"), format!("look({name})")),
            11 => (format!("let {name} = (int ?)&{owner}->numbers[0];"), format!("look_fat({name})")),
            _ => (format!("let {name} = new $({owner}, 1);"), format!("look((*{name})[0])")),
        };
        let (noise, depth) = (self.line(1), self.random.u32(..2));
        let use_it = match self.random.u32(..5) {
            0 => format!("x += ({{ {kill} {used}; }});"),
            1 => format!("x += look_after({owner}, ({{ {kill} 1; }}));"),
            2 => format!("x += {used} + ({{ {kill} {}; }}) + {used};", self.number(depth)),
            3 => format!("sink({used}); {kill} x += {used};"),
            _ => format!("{kill} {noise} x += {used};"),
        };
        let mut body = vec![Stmt::Line(take)];
        if self.chance(30) {
            body.push(self.statement(1));
        }
        body.push(Stmt::Line(use_it));
        Stmt::Block("{".to_owned(), body, "}".to_owned())
    }

    /// An owner of a cell, and a statement that frees that.
    fn owner_and_kill(&mut self) -> (String, String) {
        let path = self.owner_path();
        match self.random.u32(..10) {
            0..4 => {
                let own = self.variable(Sort::Own).unwrap_or_else(|| "g_own".to_owned());
                let kill = self.one_of(&[
                    "ufree({});",
                    "eat({});",
                    "{} :=: g_own; clear_own();",
                    "put(g_shared, {}); clear_shared();",
                    "{} = same({}); ufree({});",
                    "own_t z = {}; ufree(z);",
                    "own_t z = NULL; z :=: {}; ufree(z);",
                    "try { eat({}); throw new Odd(1); } catch { default: break; }",
                    "g_shared->one :=: {}; clear(g_shared);",
                    "if (may_throw(n)) ufree({});",
                    "let z = {}; consumes(NULL, z);",
                ]);
                (own.clone(), kill.replace("{}", &own))
            }
            4..6 => (format!("{path}->one"), format!("clear({path});")),
            6 => (format!("{path}->one"), format!("{path}->one :=: g_own; clear_own();")),
            7 => ("g_own".to_owned(), "clear_own();".to_owned()),
            8 => match self.variable(Sort::Counted) {
                Some(counted) => (counted.clone(), format!("drop_refptr({counted});")),
                None => ("g_counted->cell".to_owned(), "clear_counted();".to_owned()),
            },
            _ => ("(&g_owner->in)".to_owned(), "clear_owner();".to_owned()),
        }
    }

    /// Something that can be aliased.
    fn own_like(&mut self) -> String {
        match self.random.u32(..4) {
            0 | 1 => self.variable(Sort::Own).unwrap_or_else(|| "g_own".to_owned()),
            2 => self.variable(Sort::Counted).unwrap_or_else(|| "g_own".to_owned()),
            _ => format!("{}->one", self.owner_path()),
        }
    }
}
