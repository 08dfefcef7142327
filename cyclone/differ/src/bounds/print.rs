//! A function as Cyclone text. Every expression stands in parentheses.

use super::memory::array;
use super::syntax::{
    Binary, Bound, Catch, Clause, Element, Expr, Function, Int, Place, Pointer, Stmt, Storage, Type, Unary, VarId,
};
use std::fmt::Write;

/// The definition of a function of this name.
pub fn function(function: &Function, name: &str) -> String {
    let helpers = function.helpers.iter().enumerate();
    let helpers: String = helpers.map(|(number, helper)| self::function(helper, &helper_name(name, number))).collect();
    let mut printer = Printer { function, name, text: helpers, indent: 1 };
    let parameters: Vec<String> =
        function.parameters.iter().map(|parameter| printer.declared(*parameter, &variable(*parameter))).collect();
    let parameters = if parameters.is_empty() { "void".to_owned() } else { parameters.join(", ") };
    let _ = writeln!(printer.text, "static long {name}({parameters})\n{{");
    printer.statements(&function.body);
    printer.text.push_str("}\n\n");
    printer.text
}

fn helper_name(name: &str, number: usize) -> String {
    format!("{name}_{number}")
}

struct Printer<'a> {
    function: &'a Function,
    name: &'a str,
    text: String,
    indent: usize,
}

fn variable(variable: VarId) -> String {
    format!("v{}", variable.0)
}

pub fn int(int: Int) -> &'static str {
    match (int.bits, int.is_signed) {
        (8, true) => "signed char",
        (8, false) => "unsigned char",
        (16, true) => "short",
        (16, false) => "unsigned short",
        (32, true) => "int",
        (32, false) => "unsigned",
        (_, true) => "long",
        (_, false) => "unsigned long",
    }
}

pub fn element(element: Element) -> &'static str {
    match element {
        Element::Int(of) => int(of),
        Element::Three => "struct Three",
    }
}

pub fn pointer(pointer: Pointer) -> String {
    let bound = match pointer.bound {
        Bound::Fat => "?".to_owned(),
        Bound::Thin(count) if pointer.is_nullable => format!("*{{{count}}}"),
        Bound::Thin(count) => format!("@{{{count}}}"),
        Bound::Tag(tag) if pointer.is_nullable => format!("*{{valueof(`t{})}}", tag.0),
        Bound::Tag(tag) => format!("@{{valueof(`t{})}}", tag.0),
    };
    format!("{} {bound} {} @region(`H) ", element(pointer.element), terminated(pointer.is_zeroterm))
}

fn terminated(is_zeroterm: bool) -> &'static str {
    if is_zeroterm { "@zeroterm" } else { "@nozeroterm" }
}

fn type_text(ty: Type) -> String {
    match ty {
        Type::Int(of) => format!("{} ", int(of)),
        Type::Pointer(of) => pointer(of),
        Type::Array(of, ..) => format!("{} ", element(of)),
        Type::Record(true) => "struct Record ".to_owned(),
        Type::Record(false) => "struct Record *@region(`H) ".to_owned(),
        Type::Row => "struct Row @@region(`H) ".to_owned(),
    }
}

fn operator(of: Binary) -> &'static str {
    match of {
        Binary::Add => "+",
        Binary::Sub => "-",
        Binary::Mul => "*",
        Binary::Div => "/",
        Binary::Rem => "%",
        Binary::And => "&",
        Binary::Or => "|",
        Binary::Xor => "^",
        Binary::Shl => "<<",
        Binary::Shr => ">>",
        Binary::Lt => "<",
        Binary::Le => "<=",
        Binary::Gt => ">",
        Binary::Ge => ">=",
        Binary::Eq => "==",
        Binary::Ne => "!=",
        Binary::LogAnd => "&&",
        Binary::LogOr => "||",
    }
}

pub fn number(number: i128, of: Int) -> String {
    let suffix = match (of.bits, of.is_signed) {
        (64, true) => "l",
        (64, false) => "ul",
        (_, true) => "",
        (_, false) => "u",
    };
    match number {
        _ if number == of.least() && of.is_signed => format!("({}{suffix} - 1{suffix})", number + 1),
        ..0 => format!("({number}{suffix})"),
        _ => format!("{number}{suffix}"),
    }
}

impl Printer<'_> {
    fn line(&mut self, line: &str) {
        let _ = writeln!(self.text, "{:1$}{line}", "", 2 * self.indent);
    }

    /// A declaration of a variable, without its value.
    fn declared(&self, id: VarId, name: &str) -> String {
        let variable = &self.function.variables[id.0];
        match (variable.storage, variable.ty) {
            (Storage::Tag, _) => format!("tag_t<`t{}> {name}", id.0),
            (Storage::Reference(_), ty) => format!("{}@{name}", type_text(ty)),
            (_, Type::Array(of, count, is_zeroterm)) => {
                format!("{} {name}[{count}] {}", element(of), terminated(is_zeroterm))
            }
            (_, ty) => format!("{}{name}", type_text(ty)),
        }
    }

    fn used(&self, id: VarId) -> String {
        match self.function.variables[id.0].storage {
            Storage::Global(name) => name.to_owned(),
            Storage::Reference(_) => format!("(*{})", variable(id)),
            _ => variable(id),
        }
    }

    fn place(&mut self, place: &Place) -> String {
        match place {
            Place::Variable(id) => self.used(*id),
            Place::Member(record, field) => match self.function.type_of_variable(*record) {
                Type::Record(true) => format!("{}.{}", self.used(*record), field.name()),
                _ => format!("{}->{}", self.used(*record), field.name()),
            },
            Place::Index(pointer, index) => {
                let text = format!("{}[{}]", self.expr(pointer), self.expr(index));
                self.read(pointer, text)
            }
            Place::Deref(pointer) => {
                let text = format!("(*{})", self.expr(pointer));
                self.read(pointer, text)
            }
        }
    }

    fn read(&self, pointer: &Expr, text: String) -> String {
        match self.function.type_of(pointer).pointer().element {
            Element::Int(_) => text,
            Element::Three => format!("{text}.v"),
        }
    }

    fn expr(&mut self, expr: &Expr) -> String {
        match expr {
            Expr::Number(value, of) => number(*value, *of),
            Expr::Null(_) => "NULL".to_owned(),
            Expr::Place(place) => self.place(place),
            Expr::Count(pointer) => format!("numelts({})", self.expr(pointer)),
            Expr::Unary(op, inner) => {
                let sign = match op {
                    Unary::Negate => '-',
                    Unary::Complement => '~',
                    Unary::Not => '!',
                };
                format!("({sign}{})", self.expr(inner))
            }
            Expr::Binary(op, left, right) => {
                format!("({} {} {})", self.expr(left), operator(*op), self.expr(right))
            }
            Expr::Conditional(parts) => {
                let [test, then, other] = &**parts;
                format!("({} ? {} : {})", self.expr(test), self.expr(then), self.expr(other))
            }
            Expr::Cast(ty, inner) => format!("(({}){})", type_text(*ty).trim_end(), self.expr(inner)),
            Expr::Assign(op, place, value) => {
                let sign = op.map_or("", operator);
                let value = self.expr(value);
                format!("({} {sign}= {value})", self.place(place))
            }
            Expr::Step { place, up, is_postfix } => {
                let sign = if *up { "++" } else { "--" };
                let place = self.place(place);
                if *is_postfix { format!("({place}{sign})") } else { format!("({sign}{place})") }
            }
            Expr::Comma(first, last) => format!("({}, {})", self.expr(first), self.expr(last)),
            Expr::Alloc(pointer, count) => {
                format!("calloc({}, sizeof({}))", self.expr(count), element(pointer.element))
            }
            Expr::Build { pointer, index, count, value } => {
                let value = self.expr(value);
                let value = match pointer.element {
                    Element::Int(of) => format!("({}){value}", int(of)),
                    Element::Three => format!("Three{{(int){value}, 1, 2}}"),
                };
                format!("(new {{for {} < {} : {value}}})", variable(*index), self.expr(count))
            }
            Expr::Note(inner) => format!("note((long){})", self.expr(inner)),
            Expr::Change(inner, record) => {
                let record = match self.function.type_of_variable(*record) {
                    Type::Record(true) => "NULL".to_owned(),
                    _ => self.used(*record),
                };
                format!("change((int){}, {record})", self.expr(inner))
            }
            Expr::Inside(number) => format!("inside{number}()"),
            Expr::Call(number, arguments) => {
                let arguments: Vec<String> = arguments.iter().map(|argument| self.expr(argument)).collect();
                format!("{}({})", helper_name(self.name, *number), arguments.join(", "))
            }
            Expr::Statements(statements, last) => {
                let mut inner =
                    Printer { function: self.function, name: self.name, text: String::new(), indent: self.indent + 1 };
                inner.statements(statements);
                let last = inner.expr(last);
                format!("({{\n{}{:2$}{last}; }})", inner.text, "", 2 * self.indent + 2)
            }
        }
    }

    fn statements(&mut self, statements: &[Stmt]) {
        statements.iter().for_each(|statement| self.statement(statement));
    }

    fn block(&mut self, head: &str, statements: &[Stmt], tail: &str) {
        self.line(&format!("{head}{{"));
        self.body(statements, tail);
    }

    fn body(&mut self, statements: &[Stmt], tail: &str) {
        self.indent += 1;
        self.statements(statements);
        self.indent -= 1;
        self.line(&format!("}}{tail}"));
    }

    fn looped(&mut self, head: &str, statements: &[Stmt], tail: &str) {
        self.line(&format!("{head}{{"));
        self.line("  tick();");
        self.body(statements, tail);
    }

    fn declaration(&mut self, id: VarId, value: Option<&Expr>) -> String {
        let declared = self.declared(id, &variable(id));
        if let Storage::Reference(target) = self.function.variables[id.0].storage {
            return format!("{declared} = &{};", self.used(target));
        }
        match (self.function.type_of_variable(id), value) {
            (Type::Array(_, count, is_zeroterm), _) => {
                let values: Vec<String> = array(count, is_zeroterm).iter().map(ToString::to_string).collect();
                format!("{declared} = {{{}}};", values.join(", "))
            }
            (Type::Record(true), _) => format!("{declared} = {{1, 2u, NULL, NULL}};"),
            (_, Some(value)) => format!("{declared} = {};", self.expr(value)),
            (_, None) => format!("{declared};"),
        }
    }

    fn statement(&mut self, statement: &Stmt) {
        match statement {
            Stmt::Declare(id, value) => {
                let text = self.declaration(*id, value.as_ref());
                self.line(&text);
            }
            Stmt::Let(id, value) => {
                let text = format!("let {} = {};", variable(*id), self.expr(value));
                self.line(&text);
            }
            Stmt::Expr(expr) => {
                let text = format!("{};", self.expr(expr));
                self.line(&text);
            }
            Stmt::Swap(left, right) => {
                let text = format!("{} :=: {};", self.place(left), self.place(right));
                self.line(&text);
            }
            Stmt::If(test, then, other) => {
                let test = self.expr(test);
                match other {
                    Some(other) => {
                        self.block(&format!("if ({test}) "), then, " else {");
                        self.body(other, "");
                    }
                    None => self.block(&format!("if ({test}) "), then, ""),
                }
            }
            Stmt::While(test, body) => {
                let test = self.expr(test);
                self.looped(&format!("while ({test}) "), body, "");
            }
            Stmt::DoWhile(body, test) => {
                let test = self.expr(test);
                self.looped("do ", body, &format!(" while ({test});"));
            }
            Stmt::For { first, condition, step, body } => {
                let first = match first.as_deref() {
                    Some(Stmt::Declare(id, value)) => self.declaration(*id, value.as_ref()),
                    Some(Stmt::Expr(expr)) => format!("{};", self.expr(expr)),
                    _ => ";".to_owned(),
                };
                let mut part = |part: &Option<Expr>| part.as_ref().map_or(String::new(), |part| self.expr(part));
                let (condition, step) = (part(condition), part(step));
                self.looped(&format!("for ({first} {condition}; {step}) "), body, "");
            }
            Stmt::Switch(value, clauses) => {
                let value = self.expr(value);
                self.line(&format!("switch ({value}) {{"));
                clauses.iter().for_each(|clause| self.clause(clause));
                self.line("}");
            }
            Stmt::Try(body, catch, handler) => {
                self.block("try ", body, " catch {");
                self.line(match catch {
                    Catch::Bounds => "case &Array_bounds:",
                    Catch::Null => "case &Null_Exception:",
                    Catch::Any => "default:",
                });
                self.indent += 1;
                self.statements(handler);
                self.line("break;");
                self.indent -= 1;
                self.line("}");
            }
            Stmt::Block(body) => self.block("", body, ""),
            Stmt::Break => self.line("break;"),
            Stmt::Continue => self.line("continue;"),
            Stmt::Return(value) => {
                let text = format!("return (long){};", self.expr(value));
                self.line(&text);
            }
            Stmt::Throw => self.line("throw new Odd;"),
            Stmt::Open { row, tag, pointer, body } => {
                self.line("{");
                let pattern = format!("&Row{{<`t{}> {}, {}}}", tag.0, variable(*tag), variable(*pointer));
                self.line(&format!("  let {pattern} = {};", self.used(*row)));
                self.body(body, "");
            }
            Stmt::Repack(row, other) => {
                let text = format!("*{} = *{};", self.used(*row), self.used(*other));
                self.line(&text);
            }
            Stmt::Inside(number, body) => {
                self.line(&format!("int inside{number}() {{"));
                self.indent += 1;
                self.statements(body);
                self.line("return 0;");
                self.indent -= 1;
                self.line("}");
            }
        }
    }

    fn clause(&mut self, clause: &Clause) {
        let guard = clause.guard.as_ref().map_or(String::new(), |guard| format!(" && {}", self.expr(guard)));
        match clause.value {
            Some(value) => self.line(&format!("case {value}{guard}:")),
            None => self.line("default:"),
        }
        self.indent += 1;
        self.statements(&clause.body);
        self.line(if clause.falls_through { "fallthru;" } else { "break;" });
        self.indent -= 1;
    }
}
