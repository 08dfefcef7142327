//! Reads the compiler's MIR text and keeps what the rules need: for each body its signature, where it stands, and each function that
//! it calls or uses as a value.
//!
//! The text is that of `-Zunpretty=mir -Zmir-include-spans=on -Ztrim-diagnostic-paths=no -Zmir-opt-level=0`. Below a statement the
//! compiler lists the constants in it, in the order of evaluation, so the first constant of a call whose callee is none of the body's
//! own variables is the callee. The compiler promises nothing about this text: lines that are not understood are passed
//! over, and [`probe`](crate::probe) shows for each compiler whether they were understood.

use std::io::{self, BufRead};

use crate::signature::{Signature, closing, split_at_commas};

/// A place in a source file. Lines and columns (in characters) count from 1; the end is exclusive.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Span {
    /// The file as the compiler names it, often relative to the folder in which it runs.
    pub file: String,
    /// Line and column of the first character.
    pub start: (usize, usize),
    /// Line and column after the last character.
    pub end: (usize, usize),
}

impl Span {
    /// Reads `src/a.rs:8:36: 8:38`.
    pub fn parse(text: &str) -> Option<Span> {
        let mut parts = text.trim().rsplitn(5, ':').map(str::trim);
        let mut number = || parts.next()?.parse::<usize>().ok();
        let (end_column, end_line, start_column, start_line) = (number()?, number()?, number()?, number()?);
        let file = parts.next()?.to_owned();
        Some(Span { file, start: (start_line, start_column), end: (end_line, end_column) })
    }
}

/// What a body belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// A function, a method, a closure or the inside of an `async` block.
    Function,
    /// A static, a constant, or a part of a body that is computed when the program is compiled.
    Value,
}

/// One body of code.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Body {
    /// What it belongs to.
    pub kind: Kind,
    /// Its path in the crate; closures end in `{closure#0}`.
    pub path: String,
    /// The types of its parameters; a closure's own captures come first.
    pub params: Vec<String>,
    /// Whether the first parameter is `self`.
    pub has_self: bool,
    /// Its return type, or the value's type.
    pub returns: String,
    /// Where its return type stands, or would stand; inside of the function's item in any case.
    pub at: Option<Span>,
    /// The functions that it uses, in the order of the text.
    pub uses: Vec<Use>,
}

/// How a function is used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// It is called.
    Called,
    /// It is stored, passed or turned into a pointer.
    Value,
}

/// One use of a function or of a function pointer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Use {
    /// How it is used.
    pub role: Role,
    /// What is used.
    pub signature: Signature,
    /// Where.
    pub span: Span,
}

/// What was read.
#[derive(Debug, Default)]
pub struct Mir {
    /// All bodies of a crate.
    pub bodies: Vec<Body>,
    /// The first line that looks like the beginning of a body and is not understood. What follows it is not among the bodies.
    pub not_understood: Option<String>,
}

/// Reads all bodies of a crate. Bytes that are not UTF-8 are replaced.
///
/// # Errors
/// Those of `text`.
pub fn read(mut text: impl BufRead) -> io::Result<Mir> {
    let mut reader = Reader::default();
    let mut line = Vec::new();
    while text.read_until(b'\n', &mut line)? > 0 {
        reader.line(String::from_utf8_lossy(&line).trim_end());
        line.clear();
    }
    Ok(reader.mir)
}

#[derive(Default)]
struct Reader {
    mir: Mir,
    inside: Inside,
    /// Local variables that are function pointers, by number.
    pointers: Vec<(usize, Signature)>,
    statement: Option<Statement>,
    operand: Option<Span>,
}

#[derive(Default, PartialEq)]
enum Inside {
    #[default]
    Nothing,
    /// The next body is another version of the one before it.
    Repetition,
    Skipped,
    Body,
}

struct Statement {
    callee: Option<Callee>,
    span: Option<Span>,
}

#[derive(Clone, Copy, PartialEq)]
enum Callee {
    FirstConstant,
    Local(usize),
}

impl Reader {
    fn line(&mut self, line: &str) {
        match self.inside {
            Inside::Nothing | Inside::Repetition => self.outside(line),
            _ if line == "}" => self.inside = Inside::Nothing,
            Inside::Skipped => {}
            Inside::Body => self.inside_body(line.trim_start()),
        }
    }

    fn outside(&mut self, line: &str) {
        if line.starts_with("// MIR FOR CTFE") {
            self.inside = Inside::Repetition;
            return;
        }
        if line.is_empty() || line.starts_with(' ') || line.starts_with("//") || !line.ends_with('{') {
            return;
        }
        let is_body = self.inside != Inside::Repetition && !line.starts_with("alloc") && !line.starts_with("/*");
        let header = if is_body { header(line) } else { None };
        if is_body && header.is_none() {
            self.mir.not_understood.get_or_insert_with(|| line.to_owned());
        }
        self.inside = if header.is_some() { Inside::Body } else { Inside::Skipped };
        self.mir.bodies.extend(header);
        self.pointers.clear();
        self.statement = None;
        self.operand = None;
    }

    fn inside_body(&mut self, line: &str) {
        let Some(body) = self.mir.bodies.last_mut() else { return };
        if let Some(comment) = line.strip_prefix("// ") {
            if comment == "mir::ConstOperand" {
                self.operand = None;
            } else if let Some(span) = comment.strip_prefix("+ span: ") {
                self.operand = Span::parse(span);
            } else if let Some(constant) = comment.strip_prefix("+ const_: Const { ty: ") {
                let role = match &mut self.statement {
                    Some(statement) if statement.callee == Some(Callee::FirstConstant) => {
                        statement.callee = None;
                        Role::Called
                    }
                    _ => Role::Value,
                };
                let ty = constant.rfind(", val: ").map_or(constant, |end| &constant[..end]);
                let Some(signature) = Signature::parse(ty) else { return };
                // A constant function pointer that is not called is of no interest.
                if signature.path.is_none() && role == Role::Value {
                    return;
                }
                let place = self.operand.take().or_else(|| self.statement.as_ref().and_then(|s| s.span.clone()));
                body.uses.extend(place.map(|span| Use { role, signature, span }));
            }
        } else if let Some(variable) = line.strip_prefix("let ") {
            self.variable(variable);
        } else if line.starts_with("debug self => _1;") {
            body.has_self = true;
        } else if !line.is_empty() {
            self.statement(line);
        }
    }

    /// `mut _3: for<'a> fn(&'a mut Cx); // in scope 0 at a.rs:14:45: 14:59`
    fn variable(&mut self, line: &str) {
        let line = line.strip_prefix("mut ").unwrap_or(line);
        let Some((name, rest)) = line.split_once(": ") else { return };
        let (ty, comment) = rest.rfind(" // ").map_or((rest, ""), |end| rest.split_at(end));
        let ty = ty.trim_end().trim_end_matches(';');
        let Some(number) = name.strip_prefix('_').and_then(|number| number.parse().ok()) else { return };
        if let Some((_, place)) = comment.split_once("return place in scope 0 at ")
            && let Some(body) = self.mir.bodies.last_mut()
        {
            body.at = Span::parse(place);
        }
        if ty.contains("fn(") {
            self.pointers.extend(Signature::parse(ty).map(|signature| (number, signature)));
        }
    }

    /// `_3 = f(move _4) -> [return: bb1, unwind continue]; // scope 0 at a.rs:1:2: 3:4`
    fn statement(&mut self, line: &str) {
        let (text, span) = match line.rfind("// scope ") {
            Some(at) => (line[..at].trim_end(), line[at..].split_once(" at ").and_then(|(_, span)| Span::parse(span))),
            None => (line, None),
        };
        let callee = callee(text);
        if let Some(Callee::Local(number)) = callee
            && let Some(body) = self.mir.bodies.last_mut()
        {
            let parameter = number.checked_sub(1).and_then(|index| body.params.get(index));
            let signature = match parameter {
                Some(ty) => Signature::parse(ty),
                None => self.pointers.iter().find(|(n, _)| *n == number).map(|(_, signature)| signature.clone()),
            };
            // A variable that is a function without a pointer was reported where it got its value.
            if let (Some(signature), Some(span)) = (signature, &span) {
                body.uses.push(Use { role: Role::Called, signature, span: span.clone() });
            }
        }
        self.statement = Some(Statement { callee, span });
    }
}

/// Reads the first line of a body: `fn a::f(_1: &mut Cx) -> u8 {`, `static a::S: u8 = {`, `a::C::{constant#0}: u8 = {`.
fn header(line: &str) -> Option<Body> {
    let line = line.strip_suffix('{')?.trim_end();
    if let Some(function) = line.strip_prefix("fn ") {
        let open = function.find("(_1: ").or_else(|| function.find("() -> "))?;
        let close = closing(function, open)?;
        let params = split_at_commas(function.get(open + 1..close)?)
            .into_iter()
            .filter_map(|param| param.split_once(": ").map(|(_, ty)| ty.to_owned()))
            .collect();
        let returns = function.get(close + 1..)?.trim().strip_prefix("-> ").unwrap_or("()").to_owned();
        let path = function[..open].to_owned();
        return Some(Body { kind: Kind::Function, path, params, has_self: false, returns, at: None, uses: Vec::new() });
    }
    let value = line.strip_suffix(" =")?;
    let value = ["static mut ", "static ", "const "].iter().find_map(|word| value.strip_prefix(word)).unwrap_or(value);
    // Inside of `<impl at a.rs:1:2: 3:4>` there is a colon with a space as well.
    let mut at = 0;
    let colon = loop {
        match value.as_bytes().get(at)? {
            b'<' | b'{' | b'[' => at = closing(value, at)?,
            b':' if value.as_bytes().get(at + 1) == Some(&b' ') => break at,
            _ => {}
        }
        at += 1;
    };
    let (path, returns) = (value[..colon].to_owned(), value[colon + 2..].to_owned());
    Some(Body { kind: Kind::Value, path, params: Vec::new(), has_self: false, returns, at: None, uses: Vec::new() })
}

/// What a statement calls, if it is a call. Other terminators have no ` = ` or no `) -> ` before their targets.
fn callee(statement: &str) -> Option<Callee> {
    let statement = statement.strip_suffix(';')?;
    let arrow = statement.rfind(") -> ")?;
    let targets = &statement[arrow + 5..];
    let is_targets = ["[return: bb", "unwind ", "bb"].iter().any(|start| targets.starts_with(start));
    if !is_targets || targets.contains('"') {
        return None;
    }
    let (_, function) = statement[..arrow].split_once(" = ")?;
    match function.strip_prefix("move _").or_else(|| function.strip_prefix("copy _")) {
        Some(local) => {
            let end = local.find(|c: char| !c.is_ascii_digit()).unwrap_or(local.len());
            local[..end].parse().ok().map(Callee::Local)
        }
        None => Some(Callee::FirstConstant),
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    const TEXT: &str = r#"// WARNING: for humans
fn f_async(_1: &S<'_, X>, _2: &mut refs::Cx) -> Result<(), (u8, [u8; 3])> {
    debug self => _1;                    // in scope 0 at a.rs:9:42: 9:51
    let mut _0: std::result::Result<(), (u8, [u8; 3])>;    // return place in scope 0 at a.rs:9:69: 9:94
    let _11: for<'a> fn(&'a mut Cx);     // in scope 0 at a.rs:14:106: 14:107

    bb0: {
        _4 = &(*_2);                     // scope 0 at a.rs:9:1: 9:2
        _3 = run::<for<'a> fn(&'a mut Cx) {leaf_async}>(move _7, leaf_async) -> [return: bb2, unwind continue]; // scope 0 at a.rs:14:61: 14:75
                                         // mir::ConstOperand
                                         // + span: a.rs:14:61: 14:68
                                         // + const_: Const { ty: fn(u8) {run::<for<'a> fn(&'a mut Cx) {leaf_async}>}, val: Value(run) }
                                         // mir::ConstOperand
                                         // + span: a.rs:14:73: 14:74
                                         // + const_: Const { ty: for<'a> fn(&'a mut Cx) {leaf_async}, val: Value(leaf_async) }
        _12 = move _11(move _14) -> [return: bb4, unwind continue]; // scope 1 at a.rs:15:1: 15:2
        _13 = const "x(y) -> [return: bb1, z]"; // scope 1 at a.rs:16:1: 16:2
                                         // mir::ConstOperand
                                         // + span: a.rs:16:1: 16:2
                                         // + const_: Const { ty: &str, val: Value("x(y) -> [return: bb1, z]") }
        assert(copy _34, "no {}", const 3_usize, copy _31) -> [success: bb12, unwind unreachable]; // scope 2 at a.rs:17:1: 17:2
        _0 = g_async(move _1) -> unwind continue; // scope 0 at a.rs:23:39: 23:52
                                         // mir::ConstOperand
                                         // + span: a.rs:23:39: 23:48
                                         // + const_: Const { ty: for<'a> fn(&'a mut Cx) -> ! {g_async}, val: Value(g_async) }
    }
}

alloc32 (size: 27, align: 1) {
    0x00 | 61 79 0a 7d 20 2d 3e 20 5b 72 65 74 75 72 6e 3a | fn x_async() -> () {
}

// MIR FOR CTFE
fn twice(_1: u8) -> u8 {
}

a::<impl at a.rs:3:95: 3:107>::{constant#0}: [fn(u8); 1] = {
    bb0: {
        _1 = l_async as fn(u8) (PointerCoercion(ReifyFnPointer(Safe), Implicit)); // scope 0 at a.rs:11:35: 11:36
                                         // mir::ConstOperand
                                         // + span: a.rs:11:35: 11:36
                                         // + const_: Const { ty: fn(u8) {l_async}, val: Value(l_async) }
    }
}
const K: usize = const 3_usize;
"#;

    fn roles(body: &Body) -> Vec<(Role, Option<&str>, (usize, usize))> {
        body.uses.iter().map(|u| (u.role, u.signature.path.as_deref(), u.span.start)).collect()
    }

    #[test]
    fn bodies_calls_and_values_are_found() {
        let Mir { bodies, not_understood } = read(TEXT.as_bytes()).unwrap();
        assert_eq!(not_understood, None);
        assert_eq!(bodies.len(), 2, "{bodies:#?}");
        let f = &bodies[0];
        assert_eq!((f.path.as_str(), f.has_self, f.params.len()), ("f_async", true, 2));
        assert_eq!(f.returns, "Result<(), (u8, [u8; 3])>");
        assert_eq!(f.at, Span::parse("a.rs:9:69: 9:94"));
        let run = "run::<for<'a> fn(&'a mut Cx) {leaf_async}>";
        assert_eq!(
            roles(f),
            [
                (Role::Called, Some(run), (14, 61)),
                (Role::Value, Some("leaf_async"), (14, 73)),
                (Role::Called, None, (15, 1)),
                (Role::Called, Some("g_async"), (23, 39)),
            ]
        );
        assert_eq!((bodies[1].kind, bodies[1].returns.as_str()), (Kind::Value, "[fn(u8); 1]"));
        assert_eq!(roles(&bodies[1]), [(Role::Value, Some("l_async"), (11, 35))]);
    }

    #[test]
    fn the_beginning_of_a_body_that_is_not_understood_is_kept() {
        let mir = read(&b"fn first(_1: u8) -> u8 {\n}\nfunction second(u8) {\n}\n"[..]).unwrap();
        assert_eq!((mir.bodies.len(), mir.not_understood.as_deref()), (1, Some("function second(u8) {")));
    }

    #[test]
    fn spans_are_read_from_their_end() {
        let span = Span::parse("C:/a b/c.rs:8:36: 9:2").unwrap();
        assert_eq!((span.file.as_str(), span.start, span.end), ("C:/a b/c.rs", (8, 36), (9, 2)));
        assert_eq!(Span::parse("no-location"), None);
        assert_eq!(Span::parse("a:b:1:2: 3"), None);
    }

    /// A small generator (xorshift), so that a failure can be repeated.
    struct Random(u64);

    impl Random {
        fn below(&mut self, limit: usize) -> usize {
            self.0 ^= self.0 << 13;
            self.0 ^= self.0 >> 7;
            self.0 ^= self.0 << 17;
            (self.0 % limit.max(1) as u64) as usize
        }
    }

    /// What is read from thousands of damaged texts.
    pub(crate) fn read_from_damaged_texts() -> impl Iterator<Item = Vec<Body>> {
        let mut random = Random(0x9e37_79b9_7f4a_7c15);
        let pieces: [&[u8]; 12] = [
            b"{",
            b"}",
            b"(",
            b")",
            b"<",
            b">",
            b"\n",
            b" -> ",
            b"\"",
            b"\xff\xc3",
            "é".as_bytes(),
            b"// + const_: Const { ty: fn(",
        ];
        (0..4000).map(move |_| {
            let mut text = TEXT.as_bytes().to_vec();
            for _ in 0..=random.below(6) {
                let from = random.below(text.len());
                let to = (from + random.below(40)).min(text.len());
                let piece = pieces[random.below(pieces.len())];
                match random.below(4) {
                    0 => text.truncate(from),
                    1 => drop(text.drain(from..to)),
                    2 => drop(text.splice(from..from, piece.iter().copied())),
                    _ => drop(text.splice(from..to, piece.iter().copied())),
                }
            }
            read(text.as_slice()).unwrap().bodies
        })
    }

    #[test]
    fn damaged_text_never_panics() {
        let read_some = read_from_damaged_texts().filter(|bodies| !bodies.is_empty()).count();
        assert!(read_some > 1000, "the damage leaves something to read: {read_some}");
    }
}
