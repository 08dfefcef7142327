//! Names, types as written, declarations, constants and regions: what is accepted, with which type, and what is rejected where.

use ebb_cyclone::check::{Dialect, check};
use ebb_cyclone::diagnostics::Severity;
use ebb_cyclone::driver::parse_text;
use ebb_cyclone::types::TyKind;
use ebb_cyclone::types::print::show_all;

/// Each error as `line: code`, and the declared globals with their types.
fn checked(text: &str) -> (Vec<String>, Vec<String>) {
    let mut unit = parse_text("test.cyc", text.to_owned());
    assert!(unit.diagnostics.is_empty(), "syntax: {:?} in\n{text}", unit.diagnostics);
    let program = check(&unit.source, &unit.items, Dialect::One.into(), &mut unit.diagnostics);
    let errors = unit.diagnostics.iter().filter(|diagnostic| diagnostic.severity == Severity::Error);
    let errors =
        errors.map(|error| format!("{}: {}", unit.source.place(error.span.start).line, error.code.number())).collect();
    let globals = program.declarations.globals.iter();
    let globals = globals
        .map(|global| format!("{}: {}", global.name, show_all(&program.types, &program.declarations, global.ty)));
    (errors, globals.collect())
}

#[track_caller]
fn accepted(text: &str) {
    let (errors, _) = checked(text);
    assert!(errors.is_empty(), "{errors:?} in\n{text}");
}

#[track_caller]
fn rejected(text: &str, expected: &[&str]) {
    let (errors, _) = checked(text);
    assert_eq!(errors, expected, "in\n{text}");
}

#[track_caller]
fn has_type(declaration: &str, expected: &str) {
    let (errors, globals) = checked(declaration);
    assert!(errors.is_empty(), "{errors:?} in\n{declaration}");
    assert_eq!(globals.last().map(String::as_str), Some(expected), "in\n{declaration}");
}

#[test]
fn regions_that_are_not_written_are_parameters_of_functions_and_the_heap_elsewhere() {
    has_type("int *p;", "p: int *");
    has_type("int f(int *p, int *q);", "f: int (int *`_0, int *`_1)");
    has_type("int *f(char ?s);", "f: int * (char ?`_0)");
    has_type("int f(int *g(int *));", "f: int (int * (@)(int *`_0))");
    has_type("int f(int a[4]);", "f: int (int @{4}`_0)");
}

#[test]
fn type_arguments_that_are_not_written_are_filled_in_by_position() {
    let list = "struct L<`a,`r> { `a hd; struct L<`a,`r> *`r tl; }; typedef struct L<`a,`r> *`r list_t<`a,`r>;";
    has_type(&format!("{list} list_t<int> l;"), "l: struct L<int> *");
    has_type(&format!("{list} int len(list_t<`a> l);"), "len: int (struct L<`a,`_1> *`_1)");
    rejected(&format!("{list}\nlist_t l;"), &["2: E0200"]);
}

#[test]
fn kinds_of_type_variables_come_from_their_uses() {
    accepted("struct S<`a,`r,`q,`i> { `a x; int *@aqual(`q)`r p; tag_t<`i> n; };");
    rejected("struct S<`a> { `a x; int *`a p; };", &["1: E0207", "1: E0207"]);
    rejected("struct S<`a::M> { `a x; };", &["1: E0207"]);
    rejected("void f(`a::A x);", &["1: E0207"]);
    rejected("struct S { `a x; };", &["1: E0100"]);
    rejected("`a f<`b>(`b x);", &["1: E0100"]);
}

#[test]
fn tags_give_lengths_to_parameters_and_members() {
    has_type("int f(tag_t<`n> n, int *@numelts(n) p);", "f: int (tag_t<`n>, int *{`n}`_1)");
    has_type("int f(tag_t n, int p[n]);", "f: int (tag_t<`n>, int @{`n}`_1)");
    has_type("typedef tag_t<valueof_t(sizeof(`a::A))> size_t<`a>; int f(size_t<double> n);", "f: int (tag_t<8>)");
}

#[test]
fn the_present_namespace_wins_then_the_innermost_that_is_open() {
    let names = "namespace A { typedef int t; } namespace B { typedef double t; }";
    has_type(&format!("{names} using A {{ using B {{ t x; }} }}"), "x: double");
    has_type(&format!("{names} typedef char t; using A {{ t x; }}"), "x: char");
    has_type(&format!("{names} namespace C {{ A::t x; }}"), "C::x: int");
    rejected(&format!("{names}\nt x;"), &["2: E0100"]);
    rejected("using Nowhere { }", &["1: E0100"]);
}

#[test]
fn repeated_declarations_must_agree() {
    accepted("extern int a[]; int a[3];");
    accepted("extern int x; static int x; int f(); static int f() { return x; }");
    accepted("`b f(`a x, `b y); `b f(`a p, `b q) { return q; }");
    accepted("struct S { int x; }; struct S { int x; }; datatype D { A(int) }; datatype D { A(int) };");
    rejected("int x;\ndouble x;", &["2: E0101"]);
    rejected("struct S { int x; };\nstruct S { int y; };", &["2: E0101"]);
    rejected("struct S<`a>;\nstruct S { int x; };", &["2: E0101"]);
    rejected("int f() { return 0; }\nint f() { return 1; }", &["2: E0101"]);
    rejected("enum E { A };\nenum F { A };", &["2: E0101"]);
    rejected("datatype D { A, B };\ndatatype D { A };", &["2: E0101"]);
    rejected("typedef int t;\ntypedef double t;", &["2: E0101"]);
}

#[test]
fn numbers_are_computed_with_the_types_of_c() {
    has_type("enum { N = 3 }; int a[N * 2 + sizeof(int)];", "a: int[10]");
    has_type("int a[(-1 < 0u) ? 1 : 2];", "a: int[2]");
    has_type("int a['b' - 'a' + (unsigned char)258];", "a: int[3]");
    has_type("struct S { char c; long l; unsigned b : 3; }; char a[sizeof(struct S)];", "a: char[24]");
    rejected("int n; int a[n];", &["1: E0208"]);
    rejected("int a[1 / 0];", &["1: E0208"]);
    rejected("int f(); int n = f();", &["1: E0208"]);
}

#[test]
fn what_has_no_size_cannot_be_a_variable_or_member() {
    rejected("struct S; struct S x;", &["1: E0206"]);
    rejected("struct S { struct S inner; int n; };", &["1: E0206"]);
    rejected("struct S { int n; struct S inner; };", &["1: E0206"]);
    rejected("struct B; struct A { int n; struct B b; };\nstruct B { int m; struct A a; }; struct B b;", &["2: E0206"]);
    rejected("struct F<`a::A> { int n; `a x; };\nstruct T { int m; struct F<struct T> f; };", &["2: E0206"]);
    accepted("struct V<`a::A> { `a *x; }; struct T { int m; struct V<struct T> v; };");
    rejected("void x;", &["1: E0206"]);
    rejected("datatype D { A }; datatype D d;", &["1: E0206"]);
    accepted("struct S; struct S *x; extern struct S y;");
}

#[test]
fn a_pointer_that_may_not_be_null_needs_a_value() {
    rejected("int @p;", &["1: E0301"]);
    rejected("struct S { int @p; }; struct S s;", &["1: E0301"]);
    accepted("int n; int @p = &n; extern int @q; int ?r;");
}

#[test]
fn attributes_stand_where_they_mean_something() {
    accepted("void f(int *@aqual(UNIQUE) p) __attribute__((consume(1), noreturn));");
    accepted("struct S { void (@f)(int) __attribute__((noreturn)); };");
    rejected("int x __attribute__((noreturn));", &["1: E0209"]);
    rejected("void f(int x) __attribute__((consume(1)));", &["1: E0209"]);
    rejected("void f(int x) __attribute__((consume(2)));", &["1: E0209"]);
    rejected("void f(int *x) __attribute__((initializes(1)));", &["1: E0209"]);
    rejected("struct S { int x; } __attribute__((cdecl));", &["1: E0209"]);
}

#[test]
fn main_has_one_of_its_forms() {
    accepted("int main(int argc, char ??argv) { return argc; }");
    accepted("void main() { }");
    rejected("int main(char *x) { return 0; }", &["1: E0200"]);
    rejected("int main(int argc, char **argv) { return 0; }", &["1: E0200"]);
}

#[test]
fn regions_are_accessed_while_they_are_live() {
    accepted("int f(int *`r p) { return *p; }");
    rejected("int f(int *`r p; {}) { return *p; }", &["1: E0400"]);
    accepted("int f(int *`r p, int *`s q; {`s} : `r <= `s) { return *p; }");
    rejected("int g(int *`r p); int f(int *`r p; {}) { return g(p); }", &["1: E0400"]);
    accepted("struct K; int f() { region r; int *`r p = rnew(r) 3; return *p; }");
    rejected("int *q; int f() { region r; q = rnew(r) 3; return 0; }", &["1: E0402"]);
    rejected("void g(int *`r p : single(`r)); void f(int *`r+`s p) { g(p); }", &["1: E0401"]);
}

#[test]
fn in_the_old_dialect_functions_consume_what_is_owned() {
    let consumed = |text: &str, dialect: Dialect| {
        let mut unit = parse_text("test.cyc", text.to_owned());
        let program = check(&unit.source, &unit.items, dialect.into(), &mut unit.diagnostics);
        assert!(unit.diagnostics.is_empty(), "{:?}", unit.diagnostics);
        match program.types.get(program.declarations.globals[0].ty) {
            TyKind::Function(function) => function.attributes.consume.clone(),
            other => panic!("no function: {other:?}"),
        }
    };
    let text = "void f(int *p, int *`U q, int *`RC r, int *`U s) __attribute__((noconsume(4)));";
    assert_eq!(consumed(text, Dialect::Paper), [1, 2]);
    assert_eq!(consumed(text, Dialect::One), Vec::<usize>::new());
    assert_eq!(consumed(&format!("__noinference__ {{ {text} }}"), Dialect::Paper), Vec::<usize>::new());
}

#[test]
fn blocks_of_c_show_what_they_export() {
    let block = "extern \"C include\" { typedef long hidden_t; hidden_t f(int); } export { f }";
    has_type(block, "f: long (int)");
    rejected(&format!("{block}\nhidden_t x;"), &["2: E0100"]);
}

#[test]
fn a_region_argument_that_owns_makes_the_pointers_of_its_parameter_unique() {
    let list = "struct L<`r> { struct L<`r> *`r tl; }; typedef struct L<`r> *`r list_t<`r>;";
    has_type(&format!("{list} list_t<`U> l;"), "l: struct L<`U> *\\U");
    rejected("int f(region_t<`U> h);", &["1: E0207"]);
}
