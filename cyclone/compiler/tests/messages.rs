//! What messages say besides where: advice for what C programmers write first, and no names that only the compiler knows.

use ebb_cyclone::check::{Dialect, check};
use ebb_cyclone::diagnostics::{Diagnostic, Severity};
use ebb_cyclone::driver::parse_text;

fn messages(text: &str) -> Vec<Diagnostic> {
    let mut unit = parse_text("test.cyc", text.to_owned());
    assert!(unit.diagnostics.is_empty(), "syntax: {:?} in\n{text}", unit.diagnostics);
    check(&unit.source, &unit.items, Dialect::One.into(), &mut unit.diagnostics);
    unit.diagnostics
}

/// One message of this severity with this text, whose advice has this in it.
#[track_caller]
fn says(text: &str, severity: Severity, message: &str, advice: &str) {
    let found = messages(text);
    let fits = |report: &Diagnostic| {
        let help = report.help.as_deref().unwrap_or_default();
        report.severity == severity && report.message.contains(message) && help.contains(advice)
    };
    assert!(found.len() == 1 && fits(&found[0]), "expected {message}; {advice}: found {found:#?} in\n{text}");
}

#[test]
fn an_index_into_a_thin_pointer_is_warned_of_with_what_to_write() {
    let one = "a `int *` leads to one element";
    says("void f(int *p, int i) { p[i] = 0; }", Severity::Warning, one, "`int ?`");
    says("void f(int *p) { p[2] = 0; }", Severity::Error, "element 2 is outside: there is one element", "`int ?`");
    says("void f(int @{3} p) { p[3] = 0; }", Severity::Error, "there are 3 elements", "");
    for fine in ["int ?", "int @{3}", "char *", "int *@zeroterm"] {
        assert!(messages(&format!("void f({fine} p, int i) {{ p[i] = 0; }}")).is_empty(), "{fine}");
    }
    assert!(messages("int f(int *p) { return p[0]; } int g(int i) { int a[1] = {3}; return a[i]; }").is_empty());
}

#[test]
fn elements_that_are_allocated_and_lost_are_warned_of() {
    for size in ["10 * sizeof(int)", "n * sizeof(int)", "sizeof(int) * n"] {
        let text = format!("void f(int n) {{ int *p = malloc({size}); }}");
        says(&text, Severity::Warning, "only the first of those allocated here", "`int *@numelts(n)`");
    }
    says("int *f(int n) { return calloc(n, sizeof(int)); }", Severity::Warning, "only the first", "`int ?`");
    for fine in [
        "int *p = malloc(sizeof(int))",
        "int @p = calloc(1, sizeof(int))",
        "int ?p = malloc(10 * sizeof(int))",
        "int *@numelts(3) p = malloc(3 * sizeof(int))",
    ] {
        assert!(messages(&format!("void f() {{ {fine}; }}")).is_empty(), "{fine}");
    }
}

#[test]
fn what_is_refused_comes_with_advice() {
    let buffer = "void fill(char *s); void f() { char name[20]; fill(name); }";
    says(buffer, Severity::Error, "nothing says that it is zero-terminated", "`char name[20] @zeroterm`");
    says("char *f() { return \"text\"; }", Severity::Error, "`const` would be lost", "write `const char *`");
    let texts = "int last(...`a); int f() { return last(\"two\", \"a\"); }";
    says(texts, Severity::Error, "there may not be so many elements", "(const char ?)");
    says("int last(...`a); int f() { return last(1, \"a\"); }", Severity::Warning, "becomes a number", "datatype");
}

#[test]
fn what_c_programmers_write_first_is_answered_with_what_to_write() {
    let cases: &[(&str, &str, &str)] = &[
        (
            "void fill(char *s); struct P { char name[8]; }; void f(struct P @p) { fill(p->name); }",
            "zero-terminated",
            "`char name[8] @zeroterm`",
        ),
        ("char *f(int i) { return i ? \"one\" : \"two\"; }", "`const` would be lost", "write `const char *`"),
        (
            "void g(char *s); void f(const char *s) { g(s); }",
            "`const` would be lost",
            "if nothing is changed through it",
        ),
        ("void f() { throw \"oops\"; }", "expected a value of type `datatype exn @`", "`throw new Core::Failure"),
        ("union U { int i; char *s; }; char *f(union U u) { return u.s; }", "holds pointers", "`@tagged union`"),
        ("int *f() { return (int *)4096; }", "cannot cast `int` to `int *`", "no number becomes a pointer"),
        (
            "struct A { int x; }; struct B { int *p; }; struct B *`r f(struct A *`r a) { return (struct B *`r)a; }",
            "cannot cast",
            "`datatype` or a `@tagged union`",
        ),
        ("int f(const void *p) { return *(int *)p; }", "cannot cast `const void *`", "``f(`a *p)``"),
        ("int *f() { int x = 3; return &x; }", "may end too early", "`new ..` in the heap"),
        (
            "struct N { struct N *next; }; void f(struct N @n, struct N *l) { n->next = l; }",
            "may end too early",
            "``struct N *`H l``",
        ),
        (
            "struct T<`r> { int *`r p; }; void f(struct T<`r> @t, int *p) { t->p = p; }",
            "may end too early",
            "``int *`r p``",
        ),
        ("int f(int x) { switch (x) { case 1: return 1; } return 0; }", "no case covers `0`", "`default: ..`"),
        (
            "int main(int argc, char **argv) { return 0; }",
            "the second argument of `main`",
            "`int main(int argc, char ??argv)`",
        ),
        ("void f() { printf(\"x\"); }", "`printf` is not declared", "`#include <stdio.h>`"),
        ("int f() { uint8_t b = 1; return b; }", "no type of the name `uint8_t`", "`#include <stdint.h>`"),
        ("struct Point { int x; }; int f(Point @p) { return 0; }", "no type of the name `Point`", "`struct Point`"),
        (
            "struct Point { int x; }; int f() { struct Pont p; return 0; }",
            "size of `struct Pont` is not known",
            "`Point` is declared",
        ),
        ("int f(char ?s) { return s[0] == \"x\"; }", "cannot be compared", "single quotes"),
        ("void f() { char s[4]; s = \"abc\"; }", "an array cannot be assigned", "`strcpy(.., ..)`"),
        ("void f() { int *p = malloc(8); }", "expected a value of type `int *`", "`malloc(sizeof(int))`"),
        ("datatype T { A(int); B; }; int f(datatype T t) { return 0; }", "size of `datatype T`", "`datatype T @`"),
        (
            "datatype T { A(int); B; }; datatype T @f() { return A(3); }",
            "expected a value of type `datatype T @`",
            "`new` before it",
        ),
        (
            "datatype T { A(int); B; }; int f(datatype T @t) { switch (t) { case A(n): return n; default: return 0; } }",
            "the pattern is for",
            "`&` before it",
        ),
        ("void f() { $(int, int) t = (1, 2); }", "expected a value of type `$(int, int)`", "`$(.., ..)`"),
        ("int f($(int, int) t) { let (a, b) = t; return 0; }", "a comma has no meaning", "`$(.., ..)`"),
        (
            "struct Box<`a> { `a v; }; void f() { struct Box b = {3}; }",
            "depends on type arguments",
            "in the place of each `_`",
        ),
        ("`a id(`a x); void f(char ?s) { id(s); }", "does not fit a register", "`char *`"),
        ("int *f() { return rnew(r) 3; }", "`r` is not declared", "`region r;`"),
        ("struct S { int *`r p; };", "type variable ``r` is not bound", "``struct S<`r>``"),
        ("void f(int n) { int a[n]; }", "must be known at compile time", "`new {for i < n : 0}`"),
        (
            "int f(int @p) { return 0; } int g() { return f(NULL); }",
            "NULL is not a value of type `int @`",
            "`int *` may be NULL",
        ),
    ];
    for (text, message, advice) in cases {
        says(text, Severity::Error, message, advice);
    }
    says(
        "int f(int ?p) { return sizeof(p) / sizeof(p[0]); }",
        Severity::Warning,
        "divides the size of a pointer",
        "`numelts(..)`",
    );
    assert!(messages("int f() { int a[3]; return sizeof(a) / sizeof(a[0]); }").is_empty());
}

#[test]
fn what_is_no_cyclone_at_all_is_answered_once() {
    let cases = [
        ("struct N { int v; }; struct N *f() { return new struct N{3}; }", "found `struct`", "`N{..}`"),
        ("void g(); void f() { try { g(); } catch { g(); } g(); }", "expected `case`", "`default: ..`"),
        ("int *f() { return new int; }", "found `int`", "`new 0`"),
    ];
    for (text, message, advice) in cases {
        let unit = parse_text("test.cyc", text.to_owned());
        let [report] = &unit.diagnostics[..] else { panic!("{:#?} in {text}", unit.diagnostics) };
        assert!(report.message.contains(message), "{report:?}");
        assert!(report.help.as_ref().is_some_and(|help| help.contains(advice)), "{report:?}");
    }
}

#[test]
fn regions_that_nobody_named_are_not_named_in_messages() {
    for text in [
        "int *kept; void f(int *p) { kept = p; }",
        "void g(char ?s); void f(int *p) { g(p); }",
        "struct S<`r> { int *`r p; }; void g(struct S @s); void f(struct S<`H> @s, struct S @t) { t = s; g(3); }",
        "void g(int @@p); void f(int **p) { g(p); }",
    ] {
        let found = messages(text);
        assert!(found.iter().any(|report| report.severity == Severity::Error), "{found:#?} in\n{text}");
        for report in &found {
            let related: String = report.related.iter().map(|(_, what)| what.as_str()).collect();
            let all = format!("{} {:?} {related}", report.message, report.help);
            let names =
                all.match_indices("`_").filter(|(at, _)| all[at + 2..].starts_with(|c: char| c.is_ascii_digit()));
            assert_eq!(names.count(), 0, "{all}");
        }
    }
}

/// What a message of the compiler's own words has: numbers of parameters that nobody named, places where nothing is known.
fn is_internal(text: &str) -> bool {
    let numbered = text.match_indices("`_").any(|(at, _)| text[at + 2..].starts_with(|c: char| c.is_ascii_digit()));
    numbered || ["<error>", "Evar", "TyVar", "Some(", "#line"].iter().any(|word| text.contains(word))
}

#[test]
fn no_message_of_a_rejected_program_has_a_name_that_only_the_compiler_knows() {
    let programs = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../tests/programs");
    let mut count = 0;
    for directory in std::fs::read_dir(programs).expect("the programs are there") {
        let directory = directory.expect("it can be read").path();
        let Ok(files) = std::fs::read_dir(&directory) else { continue };
        let paths = files.map(|file| file.expect("it can be read").path());
        let rejected = paths.filter(|path| path.to_string_lossy().ends_with("_rejected.cyc"));
        let files: Vec<_> = rejected.collect();
        if files.is_empty() {
            continue;
        }
        let output = std::process::Command::new(env!("CARGO_BIN_EXE_cyc"))
            .args(["check", "--json"])
            .args(&files)
            .output()
            .expect("the compiler runs");
        for line in String::from_utf8_lossy(&output.stderr).lines() {
            assert!(!is_internal(line), "{line}");
            count += 1;
        }
    }
    assert!(count > 200, "{count} messages");
}
