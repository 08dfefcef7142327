//! Random Cyclone programs: well-typed, they end, and print what they computed.
//!
//! A program has a fixed part, which declares one of each sort of type and the exceptions, and random functions over it. Function
//! `f<n>` calls only `f<m>` with m < n, and each call uses up `fuel`, which is global: when it is gone a call returns at once. Loops
//! count to small constants. So every program ends, soon.
//!
//! What is undefined in C but not in Cyclone is generated on purpose: overflow of signed numbers, the order of evaluation of
//! operands with effects (`note(n)` changes a global hash), indices out of bounds, null pointers. Divisors are not zero, shifts are
//! less than the width: those are undefined in Cyclone too. Exceptions are caught around calls, and in `main`.

use std::fmt::Write;

/// What every program begins with.
const PRELUDE: &str = r#"#include <core.h>
#include <stdio.h>

static unsigned hash = 2166136261u;
static int fuel = 400;

static int note(int value)
{
    hash = (hash ^ (unsigned)value) * 16777619u;
    return value;
}

struct Pair {
    int first;
    unsigned second;
    short small;
};

datatype Shape {
    Point;
    Line(int);
    Box(int, unsigned);
};
typedef datatype Shape @shape_t;

@tagged union Either {
    int number;
    unsigned other;
};

struct Node<`r::E> {
    int value;
    struct Node<`r> *`r next;
};

enum Colour { Red, Green, Blue };

datatype exn { Odd(int) };
datatype exn { Even };

static `a same(`a x, int noise)
{
    note(noise);
    return x;
}

static $(`b, `a) turn($(`a, `b) pair)
{
    let $(x, y) = pair;
    return $(y, x);
}

static int area(shape_t shape)
{
    switch (shape) {
    case &Point: return 1;
    case &Line(length) && length < 0: return note(-length);
    case &Line(length): return length;
    case &Box(width, height): return width * (int)height;
    }
}

static int sum(struct Node<`r> *`r list)
{
    int total = 0;
    for (; list != NULL; list = list->next)
        total += list->value;
    return total;
}

"#;

/// The program of a seed.
pub fn program(seed: u64) -> String {
    let mut generator =
        Generator { random: fastrand::Rng::with_seed(seed), text: PRELUDE.to_owned(), functions: 0, indent: 0 };
    let functions = generator.random.u32(3..7);
    for _ in 0..functions {
        generator.function();
    }
    generator.main();
    generator.text
}

/// The variables a statement can use, all of type `int` unless said otherwise.
#[derive(Clone)]
struct Scope {
    ints: Vec<String>,
    unsigneds: Vec<String>,
    /// `int ?`, possibly null.
    fats: Vec<String>,
    /// `int @{8}`.
    eights: Vec<String>,
    /// `struct Pair *`, possibly null.
    pairs: Vec<String>,
    /// `shape_t`.
    shapes: Vec<String>,
    /// Loops around, for names of counters and `break`.
    loops: u32,
    next: u32,
}

struct Generator {
    random: fastrand::Rng,
    text: String,
    functions: u32,
    indent: usize,
}

impl Generator {
    fn line(&mut self, line: &str) {
        let _ = writeln!(self.text, "{:1$}{line}", "", 4 * self.indent);
    }

    fn open(&mut self, line: &str) {
        self.line(line);
        self.indent += 1;
    }

    fn close(&mut self) {
        self.indent -= 1;
        self.line("}");
    }

    fn pick<'a>(&mut self, from: &'a [String]) -> &'a str {
        &from[self.random.usize(..from.len())]
    }

    fn function(&mut self) {
        let number = self.functions;
        self.line(&format!("static int f{number}(int a, unsigned b, int ?c, struct Pair *d)"));
        self.open("{");
        self.line("if (fuel-- <= 0)");
        self.line("    return a;");
        self.line("int @{8}e = new {for i < 8 : a + (int)i};");
        self.line("shape_t g = new Line(a);");
        let mut scope = Scope {
            ints: vec!["a".into()],
            unsigneds: vec!["b".into()],
            fats: vec!["c".into()],
            eights: vec!["e".into()],
            pairs: vec!["d".into()],
            shapes: vec!["g".into()],
            loops: 0,
            next: 0,
        };
        for _ in 0..self.random.u32(3..9) {
            self.statement(&mut scope, 3);
        }
        let result = self.int(&scope, 3);
        self.line(&format!("return {result};"));
        self.close();
        self.line("");
        self.functions += 1;
    }

    fn main(&mut self) {
        self.line("int main(void)");
        self.open("{");
        self.line("int ?numbers = new {for i < 10 : 3 * (int)i - 7};");
        for number in 0..self.functions {
            for round in 0..3 {
                let pair = match round {
                    1 => "NULL".to_owned(),
                    _ => format!("new Pair{{{round}, 5u, (short)-{number}}}"),
                };
                let numbers = ["numbers", "NULL", "numbers + 4"][round as usize];
                self.line("fuel = 400;");
                self.open("try {");
                let (a, b) = (self.random.i32(-50..50), self.random.u32(..1000));
                self.line(&format!("int result = f{number}({a}, {b}u, {numbers}, {pair});"));
                self.line(&format!("printf(\"f{number} %d %u\\n\", result, hash);"));
                self.indent -= 1;
                self.line("} catch {");
                self.catch_clauses(&format!("printf(\"f{number} "), "\\n\", hash);");
                self.line("}");
            }
        }
        self.line("printf(\"%u\\n\", hash);");
        self.line("return 0;");
        self.close();
    }

    fn catch_clauses(&mut self, before: &str, after: &str) {
        self.line(&format!("case &Odd(n): note(n); {before}odd %u{after} break;"));
        for (name, word) in
            [("Even", "even"), ("Null_Exception", "null"), ("Array_bounds", "bounds"), ("Match_Exception", "match")]
        {
            self.line(&format!("case &{name}: {before}{word} %u{after} break;"));
        }
    }

    fn statement(&mut self, scope: &mut Scope, depth: u32) {
        let name = format!("v{}", scope.next);
        scope.next += 1;
        let choice = self.random.u32(..if depth == 0 { 11 } else { 20 });
        match choice {
            0 => {
                let value = self.int(scope, 3);
                self.line(&format!("int {name} = {value};"));
                scope.ints.push(name);
            }
            1 => {
                let value = self.unsigned(scope, 3);
                self.line(&format!("unsigned {name} = {value};"));
                scope.unsigneds.push(name);
            }
            2 => {
                let value = self.int(scope, 2);
                let fat = self.fat(scope);
                self.line(&format!("int ?{name} = {fat};"));
                self.line(&format!("note({value});"));
                scope.fats.push(name);
            }
            3 => {
                let (first, second) = (self.int(scope, 2), self.unsigned(scope, 2));
                self.line(&format!("struct Pair *{name} = new Pair{{{first}, {second}, (short){first}}};"));
                scope.pairs.push(name);
            }
            4 => {
                let value = self.shape(scope);
                self.line(&format!("shape_t {name} = {value};"));
                scope.shapes.push(name);
            }
            5 => {
                let place = self.place(scope);
                let operator = *self.random.choice(["=", "+=", "-=", "*=", "^=", "|="].iter()).expect("there are six");
                let value = self.int(scope, 3);
                self.line(&format!("{place} {operator} {value};"));
            }
            6 => {
                let place = self.pick(&scope.unsigneds.clone()).to_owned();
                let operator = *self.random.choice(["=", "+=", "-=", "*=", "&=", ">>="].iter()).expect("there are six");
                let value = self.unsigned(scope, 2);
                let value = if operator == ">>=" { format!("({value}) % 32") } else { value };
                self.line(&format!("{place} {operator} {value};"));
            }
            7 => {
                let (left, right) = (self.place(scope), self.place(scope));
                self.line(&format!("{left} :=: {right};"));
            }
            8 => {
                let value = self.int(scope, 3);
                self.line(&format!("note({value});"));
            }
            9 => {
                let (x, y) = (self.int(scope, 2), self.unsigned(scope, 2));
                let (left, right) = (format!("{name}x"), format!("{name}y"));
                self.line(&format!("let $({left}, {right}) = turn($({x}, {y}));"));
                scope.unsigneds.push(left);
                scope.ints.push(right);
            }
            10 => {
                let place = self.place(scope);
                let step = *self.random.choice(["++", "--"].iter()).expect("there are two");
                self.line(&format!("note({place}{step});"));
            }
            11 => {
                let condition = self.condition(scope, 2);
                self.open(&format!("if ({condition}) {{"));
                self.body(scope, depth);
                if self.random.bool() {
                    self.indent -= 1;
                    self.line("} else {");
                    self.indent += 1;
                    self.body(scope, depth);
                }
                self.close();
            }
            12 => {
                let end = self.random.u32(1..12);
                self.open(&format!("for (int {name} = 0; {name} < {end}; {name}++) {{"));
                let mut inner = scope.clone();
                inner.ints.push(format!("same({name}, 1)"));
                inner.loops += 1;
                self.body(&inner, depth);
                self.close();
            }
            13 => {
                let scrutinee = self.int(scope, 2);
                self.open(&format!("switch (({scrutinee}) % 4) {{"));
                for case in 0..3 {
                    self.indent -= 1;
                    self.line(&format!("case {case}:"));
                    self.indent += 1;
                    self.body(scope, depth);
                    self.line(if case == 1 { "fallthru;" } else { "break;" });
                }
                self.indent -= 1;
                self.line("default:");
                self.indent += 1;
                self.body(scope, depth);
                self.line("break;");
                self.close();
            }
            14 => {
                let shape = self.pick(&scope.shapes.clone()).to_owned();
                self.open(&format!("switch ({shape}) {{"));
                self.indent -= 1;
                self.line(&format!("case &Box({name}w, {name}h):"));
                self.indent += 1;
                let mut inner = scope.clone();
                inner.ints.push(format!("{name}w"));
                inner.unsigneds.push(format!("{name}h"));
                self.body(&inner, depth);
                self.line("break;");
                self.indent -= 1;
                self.line(&format!("case &Line({name}l):"));
                self.indent += 1;
                let mut inner = scope.clone();
                inner.ints.push(format!("{name}l"));
                self.body(&inner, depth);
                self.line("break;");
                self.indent -= 1;
                self.line("default:");
                self.indent += 1;
                self.line("note(3);");
                self.line("break;");
                self.close();
            }
            15 => {
                self.open("try {");
                self.body(scope, depth);
                self.indent -= 1;
                self.line("} catch {");
                match self.random.u32(..3) {
                    0 => self.line(&format!("case &Odd({name}n): note({name}n); break;")),
                    1 => self.line("case &Array_bounds: note(11); break;"),
                    _ => self.line("default: note(12); break;"),
                }
                self.line("}");
            }
            16 => {
                let condition = self.condition(scope, 1);
                let value = self.int(scope, 2);
                let exception = if self.random.bool() { format!("new Odd({value})") } else { "new Even".to_owned() };
                self.line(&format!("if ({condition})"));
                self.line(&format!("    throw {exception};"));
            }
            17 => {
                self.open("{");
                self.line(&format!("region {name}r;"));
                let (count, value) = (self.random.u32(1..6), self.int(scope, 2));
                self.line(&format!("struct Node<`{name}r> *`{name}r {name}l = NULL;"));
                self.line(&format!("for (int {name}i = 0; {name}i < {count}; {name}i++)"));
                self.line(&format!("    {name}l = rnew({name}r) Node{{{value}, {name}l}};"));
                self.line(&format!("note(sum({name}l));"));
                self.close();
            }
            18 => {
                let value = self.int(scope, 2);
                let other = self.unsigned(scope, 2);
                self.line(&format!("union Either {name};"));
                let condition = self.condition(scope, 1);
                self.line(&format!("if ({condition})"));
                self.line(&format!("    {name}.number = {value};"));
                self.line("else");
                self.line(&format!("    {name}.other = {other};"));
                self.line(&format!("note(tagcheck({name}.number) ? {name}.number : (int){name}.other);"));
            }
            _ => {
                self.open("{");
                let (name2, value) = (format!("{name}u"), self.int(scope, 2));
                self.line(&format!("int *@aqual(UNIQUE) {name2} = unew {value};"));
                self.line(&format!("int *@aqual(UNIQUE) {name}w = unew 5;"));
                self.line(&format!("{name2} :=: {name}w;"));
                self.line(&format!("note({name2} == NULL ? 0 : *{name2});"));
                self.line(&format!("Core::ufree({name2});"));
                self.line(&format!("note({name}w == NULL ? 0 : *{name}w);"));
                self.line(&format!("Core::ufree({name}w);"));
                self.close();
            }
        }
    }

    fn body(&mut self, scope: &Scope, depth: u32) {
        let mut inner = scope.clone();
        for _ in 0..self.random.u32(1..3) {
            self.statement(&mut inner, depth - 1);
        }
    }

    /// A place of type `int`.
    fn place(&mut self, scope: &Scope) -> String {
        let variables: Vec<String> = scope.ints.iter().filter(|name| !name.contains('(')).cloned().collect();
        match self.random.u32(..5) {
            0 => {
                let (fat, index) = (self.pick(&scope.fats).to_owned(), self.int(scope, 1));
                format!("{fat}[({index}) & 15]")
            }
            1 => {
                let (eight, index) = (self.pick(&scope.eights).to_owned(), self.int(scope, 1));
                format!("{eight}[({index}) & 7]")
            }
            2 => format!("{}->first", self.pick(&scope.pairs)),
            _ => self.pick(&variables).to_owned(),
        }
    }

    fn int(&mut self, scope: &Scope, depth: u32) -> String {
        if depth == 0 {
            return match self.random.u32(..3) {
                0 => self.random.i32(-9..100).to_string(),
                _ => self.pick(&scope.ints).to_owned(),
            };
        }
        let next = depth - 1;
        match self.random.u32(..14) {
            0 | 1 => {
                let operator = *self.random.choice(["+", "-", "*", "&", "|", "^"].iter()).expect("there are six");
                format!("({} {operator} {})", self.int(scope, next), self.int(scope, next))
            }
            2 => {
                let divisor = self.random.i32(2..9);
                let operator = if self.random.bool() { "/" } else { "%" };
                format!("({} {operator} {divisor})", self.int(scope, next))
            }
            3 => format!("note({})", self.int(scope, next)),
            4 => format!("(note({}) - note({}))", self.int(scope, next), self.int(scope, next)),
            5 => self.place(scope),
            6 => format!("area({})", self.shape(scope)),
            7 => {
                let condition = self.condition(scope, next);
                format!("({condition} ? {} : {})", self.int(scope, next), self.int(scope, next))
            }
            8 => format!("(int)({})", self.unsigned(scope, next)),
            9 => format!("({} << {})", self.int(scope, next), self.random.u32(..8)),
            10 if self.functions > 0 => {
                let number = self.random.u32(..self.functions);
                let (a, b) = (self.int(scope, next), self.unsigned(scope, next));
                let (c, d) = (self.pick(&scope.fats).to_owned(), self.pick(&scope.pairs).to_owned());
                format!("f{number}({a}, {b}, {c}, {d})")
            }
            11 => format!("same({}, {})", self.int(scope, next), self.int(scope, next)),
            12 => format!("(int)numelts({})", self.pick(&scope.fats)),
            _ => format!("(int){}->small", self.pick(&scope.pairs)),
        }
    }

    fn unsigned(&mut self, scope: &Scope, depth: u32) -> String {
        if depth == 0 {
            return match self.random.u32(..3) {
                0 => format!("{}u", self.random.u32(..1 << 20)),
                _ => self.pick(&scope.unsigneds).to_owned(),
            };
        }
        let next = depth - 1;
        match self.random.u32(..6) {
            0 | 1 => {
                let operator = *self.random.choice(["+", "-", "*", "&", "|", "^"].iter()).expect("there are six");
                format!("({} {operator} {})", self.unsigned(scope, next), self.unsigned(scope, next))
            }
            2 => format!("(unsigned)({})", self.int(scope, next)),
            3 => format!("({} >> {})", self.unsigned(scope, next), self.random.u32(..20)),
            4 => format!("{}->second", self.pick(&scope.pairs)),
            _ => format!("({} % {}u)", self.unsigned(scope, next), self.random.u32(1..50)),
        }
    }

    fn condition(&mut self, scope: &Scope, depth: u32) -> String {
        match self.random.u32(..6) {
            0 => format!("same({}, 2) != NULL", self.pick(&scope.pairs)),
            1 => format!("{} < {}", self.unsigned(scope, 1), self.unsigned(scope, 1)),
            2 if depth > 0 => {
                let operator = if self.random.bool() { "&&" } else { "||" };
                format!("({} {operator} {})", self.condition(scope, depth - 1), self.condition(scope, depth - 1))
            }
            3 if depth > 0 => format!("!({})", self.condition(scope, depth - 1)),
            _ => {
                let operator = *self.random.choice(["<", "<=", "==", "!=", ">"].iter()).expect("there are five");
                format!("{} {operator} {}", self.int(scope, 1), self.int(scope, 1))
            }
        }
    }

    fn fat(&mut self, scope: &Scope) -> String {
        match self.random.u32(..4) {
            0 => {
                let (count, value) = (self.random.u32(1..9), self.int(scope, 1));
                format!("new {{for i < {count} : {value} + (int)i}}")
            }
            1 => format!("{} + {}", self.pick(&scope.fats), self.random.u32(..4)),
            2 => self.pick(&scope.eights).to_owned(),
            _ => self.pick(&scope.fats).to_owned(),
        }
    }

    fn shape(&mut self, scope: &Scope) -> String {
        match self.random.u32(..4) {
            0 => "new Point".to_owned(),
            1 => format!("new Line({})", self.int(scope, 1)),
            2 => format!("new Box({}, {})", self.int(scope, 1), self.unsigned(scope, 1)),
            _ => self.pick(&scope.shapes).to_owned(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::program;

    #[test]
    fn a_seed_gives_the_same_program_each_time_and_seeds_differ() {
        assert_eq!(program(1), program(1));
        assert_ne!(program(1), program(2));
    }
}
