//! The parser against text of our own: constructs that must parse, errors that must be found on their line, and random input.

#[path = "shared/random.rs"]
mod random;

use ebb_cyclone::ast::{Item, StmtKind, TypeKind};
use ebb_cyclone::diagnostics::Severity;
use ebb_cyclone::driver::{Unit, parse_text};
use ebb_cyclone::source::Source;
use random::Random;
use thin_vec::ThinVec;

/// Parses on a thread with the stack that the command has too.
fn parse(text: &str) -> Unit {
    let text = text.to_owned();
    let worker = std::thread::Builder::new().stack_size(512 << 20);
    worker.spawn(move || parse_text("t.cyc", text)).unwrap().join().unwrap()
}

fn messages(unit: &Unit) -> Vec<String> {
    let line = |source: &Source, start| source.place(start).line;
    unit.diagnostics.iter().map(|d| format!("{}: {}", line(&unit.source, d.span.start), d.message)).collect()
}

fn accepts(text: &str) -> ThinVec<Item> {
    let unit = parse(text);
    assert!(unit.diagnostics.is_empty(), "{text}\n{:#?}", messages(&unit));
    unit.items
}

fn rejects(text: &str, line: u32, part: &str) {
    let unit = parse(text);
    let messages = messages(&unit);
    let expected = format!("{line}: ");
    assert!(messages.iter().any(|m| m.starts_with(&expected) && m.contains(part)), "{text}\n{messages:#?}");
}

/// Each line is a unit of its own.
const ACCEPTED: &[&str] = &[
    "int a; unsigned long long b = 3ULL, *c; char d[4] = \"abc\", e[] @nozeroterm = {1, [2] = 3};",
    "char ?`H fat; int @notzero_is_a_name; int *@notnull `r p; int *{3} q; int *@numelts(4)@nozeroterm t;",
    "struct List<`a::B, `r::E> { `a hd; struct List<`a, `r> *`r tl; }; typedef struct List<`a,`r> *`r list_t<`a, `r>;",
    "typedef struct S<`a> *`r t<`a,`r>; t<t<int,`H>,`H> nested;",
    "struct Pack { <`a::B, `e::E> : regions(`a) <= `r `a x; int (@f)(`a; `e); };",
    "@tagged union U { int i; const char ?s; double d @requires(1); };",
    "datatype T<`a> { Leaf; Node(`a, datatype T<`a> @, int); extern X(int) }; @extensible datatype exn { Mine(int) };",
    "int f(int n, tag_t<`i> m, int *{valueof(`i)} v; {`r} + regions(`a) : `r <= `s, single(`r), RESTRICTED >= `q);",
    "int g(const char *@nozeroterm f, ... inject datatype Arg a) @requires(1) @ensures(2) __attribute__((format(printf,1,2)));",
    "int h() { if (1) return 2; else for (int i = 0; i < 3; i++) { continue; } do { break; } while (0); L: goto L; }",
    "void s(int x) { switch (x) { case 1: case 'a' && x > 1: break; case -2: fallthru; case 1 << 3: fallthru(x, 1); default: return; } }",
    "void p($(int,int) x, T y) { switch $(x, y) { case $($(a, 3), &Node(b, _, ...)): a = b; case $(_, *z as &S{.f = q, ...}): break; } }",
    "void e() { try { throw new Mine(3); } catch { case &Mine(n): break; default: throw Null_Exception; } }",
    "void r() { region<`r> h; region k; region m = open(key); int *`r x = rnew(h) 3; let y = rnew(k) {for i < 10 : i * 2}; }",
    "void o() { region<`r> h { int *`r x = rnew(h) 3; } }",
    "void u() { let alias<`r> list_t<int,`r> x = l; alias<`s> int *`s y = z; a :=: b->c; let P{<`b> v, w} = t; let i, j; let k<`n> = tag; }",
    "void n() { let x = new List{1, NULL}; let y = qnew(unique_qual) 3; let z = rcnew Foo(1); $(int, char) t = $(1, 'c'); x = (struct S){1}; }",
    "void m() { int *p = malloc(sizeof(int)); p = rcalloc(h, 3, sizeof(int)); p = calloc(n, sizeof(*p)); p = qmalloc(q, h, sizeof(int)); }",
    "namespace N { using M; int x; using O::P { int y; } namespace Q { void z(); } } namespace R; int q;",
    "extern \"C\" { int region, new; void namespace(int let); } extern \"C include\" { struct S { int a; }; } cyclone_override { int f(int); } export { f, S } cyclone_hide { g }",
    "extern \"C\" int putchar(int); extern \"C include\" { int x; } export { * }",
    "int old(a, b) int a; char *b; { return a; } int main() { return old@<int, char>(1, x<>); }",
    "void i() { int k = sizeof(int) + sizeof k + offsetof(struct S, a. 1) + numelts(x) + valueof(`i); tagcheck(u.i); @assert(k); assert(k > 0); }",
    "void a() { asm volatile (\"nop\" : \"=r\"(x) : \"r\"(y), \"m\"(z) : \"memory\"); asm(\"x\" :: \"r\"(y)); }",
    "void w() { _ x = 3; _* y = &x; _::B z = x; let f = ({ int q = 1; q + 2; }); int inner(int b) { return b; } inner(1); }",
    "typedef int num; void v(num num) { num = num * 2; { num x; } } num after;",
    "unknown_t x; unknown_t<`a> *y(other_t z, other_t *); void b() { unknown_t @l = (unknown_t *)0; }",
    "int *f<`r>(int *`r x; {`r}); void g(int (@h)(int; {})<`r>); typedef aqual_t<`q\\T> qual_t; region_t<`r> k; aqual_t<UNIQUE> u;",
    "abstract struct Hidden<`a> { `a x; }; struct Wide { int a : 3, : 0; union { int x; int y; }; }; enum E { A, B = 3, C, };",
    "void y() { x = c ? throw Foo : 3; x = a, b; x <<= 1; x = !y && ~z || -w; x = (a < b) > (c >= d); *p++ = (char)c; f()[3].g->h--; }",
];

#[test]
fn every_construct_of_the_grammar_parses() {
    for text in ACCEPTED {
        accepts(text);
    }
}

#[test]
fn a_typedef_is_hidden_by_a_variable_only_in_its_block() {
    let items = accepts("typedef int t; void f(int a) { { int t = 2; t * a; } t * b; }");
    let Item::Function(function) = &items[1] else { panic!("{items:?}") };
    let StmtKind::Block(inner) = &function.body.statements[0].kind else { panic!() };
    assert!(matches!(inner.statements[1].kind, StmtKind::Expr(_)));
    assert!(matches!(function.body.statements[1].kind, StmtKind::Declaration(_)));
}

#[test]
fn keywords_are_names_where_a_program_declares_them() {
    accepts(
        "struct region { int try; struct region *new; }; int f(struct region *r) { return r->new->try + (*r).try; }",
    );
    accepts("typedef short tag_t; tag_t g(tag_t t) { return (tag_t)(t + 1); } void h(int new, char namespace[3]);");
    accepts(
        "enum catch { using, export = 3 }; int i(int let) { return let * using; } int region, throw = 1; int j = region + throw;",
    );
    accepts("struct S { int let; }; struct S s = {.let = 1}; int k = offsetof(struct S, let); struct S t = {let: 2};");
}

#[test]
fn keywords_are_keywords_again_after_the_block_that_has_them_as_names() {
    accepts(
        "void f() { { int new = 1; new = new + 1; } int *p = new 3; } int g(int try) { return try; } void h() { try ; catch { default: } }",
    );
    rejects("void f() { int new = 1;\nint *p = new 3; }", 2, "expected `;`");
    rejects("char *malloc();", 1, "expected a name to declare, found `malloc`");
}

#[test]
fn forms_of_early_versions_are_read_with_a_warning() {
    for (old, new) in [
        ("tunion T { A(int); B };", "datatype T { A(int); B };"),
        ("xtunion exn { Mine };", "@extensible datatype exn { Mine };"),
        ("xenum T; xenum T { A, B(int) };", "@extensible datatype T; @extensible datatype T { A, B(int) };"),
        ("enum T { B, A(int, char) }; enum T x;", "datatype T { B, A(int, char) }; datatype T x;"),
        ("int a[?]; int b[3][?]; int f(int[?]);", "int ?a; int ?b[3]; int f(int ?);"),
    ] {
        let unit = parse(old);
        let warned = unit.diagnostics.iter().all(|diagnostic| diagnostic.severity == Severity::Warning);
        assert!(warned && !unit.diagnostics.is_empty(), "{old}\n{:#?}", messages(&unit));
        assert_eq!(shape(&unit.items), shape(&accepts(new)), "{old}");
    }
    accepts("typedef int tunion; tunion x; int xenum, f(tunion tunion);");
}

/// The tree without the places in the text.
fn shape(items: &[Item]) -> String {
    let tree = format!("{items:?}");
    let mut parts = tree.split("span: Span {");
    let first = parts.next().unwrap_or_default().to_owned();
    parts.fold(first, |whole, part| whole + part.split_once('}').map_or("", |(_, rest)| rest))
}

#[test]
fn types_that_nobody_declared_do_not_make_errors_of_syntax() {
    accepts("Long Long x = 3; void f() { N::list<N::list<int>> z = 0; x = c ? (text_t)\"a\" : b; }");
    accepts("void f() { int a, b; a < b; if (a < b) a = (b); }");
}

#[test]
fn declarators_fold_from_the_name_outwards() {
    let items = accepts("int *(*x[3])(char);");
    let Item::Declaration(declaration) = &items[0] else { panic!() };
    let TypeKind::Array(array) = &declaration.declarators[0].ty.kind else { panic!() };
    let TypeKind::Pointer(pointer) = &array.element.kind else { panic!() };
    let TypeKind::Function(function) = &pointer.target.kind else { panic!() };
    assert!(matches!(function.result.as_ref().unwrap().kind, TypeKind::Pointer(_)));
}

#[test]
fn syntax_errors_are_found_on_their_line() {
    rejects("int x\nint y;", 2, "expected `;`");
    rejects("void f() {\n  return 1 +;\n}", 2, "expected an expression");
    rejects("void f() {\n  switch (1) {\n  x = 2;\n  }\n}", 3, "expected `case`");
    rejects("int a;\n}\nint b;", 2, "closes nothing");
    rejects("int *`r\\Q p;", 1, "alias qualifiers");
    rejects("void f() { region h = shut(k); }", 1, "`open`");
    rejects("char *s = \"abc\nint y;", 1, "does not end");
}

#[test]
fn parsing_goes_on_after_an_error() {
    let unit = parse("void f() {\n a + b c;\n x = ;\n y = 1;\n}\nint ;;\nint 3;\nint z;");
    let lines: Vec<String> = messages(&unit).iter().map(|m| m.split(':').next().unwrap().to_owned()).collect();
    assert_eq!(lines, ["2", "3", "7"], "{:?}", messages(&unit));
    assert!(matches!(unit.items.last(), Some(Item::Declaration(d)) if d.declarators[0].name.name.as_str() == "z"));
}

#[test]
fn deep_nesting_and_long_chains_are_errors_not_crashes() {
    for deep in [
        "(".repeat(100_000),
        "int x = ".to_owned() + &"-".repeat(100_000),
        "void f() ".to_owned() + &"{".repeat(100_000),
        "int ".to_owned() + &"*".repeat(100_000) + "x;",
        "int x".to_owned() + &"[1]".repeat(100_000) + ";",
        "namespace A { ".repeat(100_000),
        "using A; ".repeat(100_000),
        "int x = 1".to_owned() + &" + 1".repeat(100_000) + ";",
        "int x = y".to_owned() + &".a".repeat(100_000) + ";",
        "void f() { ".to_owned() + &"if (1) ".repeat(100_000) + "; }",
        "t<".repeat(100_000) + " x;",
        "int f".to_owned() + &"(int x".repeat(100_000),
        "void f() { switch (x) { case ".to_owned() + &"&".repeat(100_000) + "x: } }",
        "struct { ".repeat(100_000),
        "$(".repeat(100_000),
        "new ".repeat(100_000),
    ] {
        assert!(!parse(&deep).diagnostics.is_empty(), "{}", &deep[..40]);
    }
}

#[test]
fn damaged_programs_never_make_the_parser_panic() {
    let mut random = Random::new(1);
    for _ in 0..3_000 {
        let mut bytes = random.one_of(ACCEPTED).as_bytes().to_vec();
        for _ in 0..=random.below(4) {
            let at = random.below(bytes.len());
            match random.below(3) {
                0 => bytes[at] = random.below(256) as u8,
                1 => {
                    bytes.remove(at);
                }
                _ => {
                    let end = (at + random.below(20)).min(bytes.len());
                    let copied = bytes[at..end].to_vec();
                    let to = random.below(bytes.len());
                    bytes.splice(to..to, copied);
                }
            }
            if bytes.is_empty() {
                bytes.push(b' ');
            }
        }
        parse_in_place(&String::from_utf8_lossy(&bytes));
    }
}

/// Short texts need no large stack. Every span in every message must be a range of the text.
fn parse_in_place(text: &str) {
    let unit = parse_text("fuzz", text.to_owned());
    for diagnostic in &unit.diagnostics {
        for form in [ebb_cyclone::diagnostics::Form::Plain, ebb_cyclone::diagnostics::Form::Source { colour: false }] {
            assert!(
                !ebb_cyclone::diagnostics::render(
                    diagnostic,
                    &unit.source,
                    &mut ebb_cyclone::original::Originals::default(),
                    form
                )
                .is_empty()
            );
        }
    }
}
