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
