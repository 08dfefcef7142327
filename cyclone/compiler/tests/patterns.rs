//! Patterns: what they may match and bind, and what a `switch` has to cover.

#[path = "shared/checked.rs"]
mod checked;

use checked::checked;
use ebb_cyclone::diagnostics::Severity;

const DECLARATIONS: &str = "datatype Shape { Point; Circle(int); Box(int, int); };
typedef datatype Shape @shape_t;
struct Pair { int a; int b; };
struct Owner { int *@aqual(UNIQUE) p; };
enum Colour { Red, Green };
@tagged union Number { int whole; double real; };
struct Package { <`t> : regions(`t) <= `H
  `t value; int (@use)(`t); };
struct Secret { <`t> `t value; int (@use)(`t); };
";

#[track_caller]
fn accepted(text: &str) {
    checked(DECLARATIONS, text).1.expect_no_error(text);
}

/// Exactly one error, which begins with `line: code` and has this in its message.
#[track_caller]
fn rejected(text: &str, place: &str, part: &str) {
    checked(DECLARATIONS, text).1.expect_error(place, part, text);
}

#[test]
fn each_form_of_pattern_matches_values_of_its_type() {
    accepted(
        "int f(shape_t s) { switch (s) { case &Point: return 0; case &Circle(r): return r; case &Box(w, _): return w; } }",
    );
    accepted("int f($(int, char) t) { let $(n, c) = t; return n + c; }");
    accepted("int f(struct Pair p) { let Pair(x, y) = p; let Pair{.b = z, ...} = p; return x + y + z; }");
    accepted("int f(union Number n) { switch (n) { case {.whole = w}: return w; case {.real = _}: return 0; } }");
    accepted("int f(int *p) { switch (p) { case NULL: return 0; case &n: return n; } }");
    accepted("int f(enum Colour c) { switch (c) { case Red: return 1; case Green: return 2; default: return 3; } }");
    accepted("void f(struct Pair @p) { let &Pair(*x, _) = p; *x = 5; }");
    accepted("int f(double d) { switch (d) { case 1.5: return 1; case -2.0: return 2; default: return 0; } }");
    accepted("int f(int n) { switch (n) { case 2 + 3: return 1; case x as 7: return x; default: return 0; } }");
}

#[test]
fn an_opened_package_is_used_with_its_own_type() {
    accepted("int f(struct Package @p) { let &Package{<`u> .value = v, .use = u} = p; return u(v); }");
    accepted("int f(struct Package @p) { let &Package(v, u) = p; return u(v); }");
    rejected("int f(struct Secret @p) { let &Secret(v, u) = p;\nreturn u(v); }", "2: E0400", "not known to be live");
}

#[test]
fn patterns_of_another_type_are_rejected() {
    rejected("int f(int n) { let $(a, b) = n; return a; }", "1: E0310", "for a tuple, and not for `int`");
    rejected("int f(int n) { let &x = n; return x; }", "1: E0310", "for a pointer");
    rejected(
        "int f(shape_t s) { let &Circle(a, b) = s; return a; }",
        "1: E0310",
        "carries 1 values, the pattern has 2",
    );
    rejected("int f($(int, int) t) { let $(a, b, c) = t; return a; }", "1: E0310", "has 2 components, the pattern 3");
    rejected("int f(struct Pair p) { let Pair{.a = x} = p; return x; }", "1: E0310", "says nothing of member `b`");
    rejected("int f(int n) { let Square(x) = n; return x; }", "1: E0310", "`Square` is not a constructor");
    rejected("int f($(int, int) t) { let $(x, x) = t; return x; }", "1: E0310", "binds `x` twice");
}

#[test]
fn references_need_a_place_that_stays_as_it_is() {
    rejected("void f(struct Pair p) { let Pair(*x, _) = p; }", "1: E0310", "needs a pointer pattern around it");
    rejected(
        "void f(union Number @n) { switch (n) { case &{.whole = *w}: break; default: break; } }",
        "1: E0310",
        "needs a pointer pattern around it",
    );
    rejected("void f(struct Owner @o) { let &Owner(*x) = o; }", "1: E0310", "second way to an owned pointer");
}

#[test]
fn owned_pointers_are_taken_from_unique_paths_only() {
    rejected("void f(struct Owner @o) { let &Owner(x) = o; }", "1: E0212", "can be reached in other ways");
    accepted("void f(struct Owner @@aqual(UNIQUE) o) { let &Owner(x) = o; }");
}

#[test]
fn a_switch_covers_all_values() {
    rejected(
        "int f(shape_t s) { switch (s) { case &Point: return 0; case &Circle(_): return 1; } }",
        "1: E0302",
        "`&Box(...)`",
    );
    rejected("int f(int n) { switch (n) { case 0: return 0; case 1: return 1; } }", "1: E0302", "`2`");
    rejected("int f(int *p) { switch (p) { case &n: return n; } }", "1: E0302", "`NULL`");
    rejected(
        "int f(enum Colour c) { switch (c) { case Red: return 1; case Green: return 2; } }",
        "1: E0302",
        "no case covers",
    );
    rejected(
        "int f(shape_t s, int n) { switch ($(s, n)) { case $(&Point, _): return 0; case $(_, 3): return 1; } }",
        "1: E0302",
        "$(&Circle(...), 0)",
    );
    rejected("int f(int n) { switch (n) { case x && x > 0: return x; } }", "1: E0302", "`_`");
}

#[test]
fn nested_patterns_cover_together() {
    accepted(
        "int f(shape_t s, shape_t t) { switch ($(s, t)) {
           case $(&Point, _): return 0; case $(_, &Point): return 1;
           case $(&Circle(_), &Circle(_)): return 2; case $(&Box(_, _), &Circle(_)): return 3;
           case $(_, &Box(w, h)): return w + h; } }",
    );
    accepted("int f(int n) { switch (n) { case x && x > 0: return x; case 5: return 1; default: return 0; } }");
}

#[test]
fn a_clause_that_nothing_reaches_is_rejected() {
    rejected(
        "int f(int n) { switch (n) { case 1: return 1;\ncase 1: return 2;\ndefault: return 0; } }",
        "2: E0312",
        "no value",
    );
    rejected("int f(int n) { switch (n) { default: return 0;\ncase 1: return 2; } }", "2: E0312", "no value");
    rejected(
        "int f(shape_t s) { switch (s) { case &Point: return 0; case &_: return 1;\ncase &Box(_, _): return 2; } }",
        "2: E0312",
        "no value",
    );
    rejected(
        "int f(shape_t s) { switch (s) { case &Point: return 0;\ncase &Circl: return 1; } }",
        "2: E0310",
        "unknown size",
    );
    rejected(
        "int f(int a, int b) { switch ($(a, b)) { case $(1, _): return 1; case $(_, 2): return 2;\ncase $(1, 2): return 3;
         default: return 0; } }",
        "2: E0312",
        "no value",
    );
}

#[test]
fn fallthru_gives_values_to_the_next_clause() {
    accepted("int f(int n) { switch (n) { case 0: fallthru(7); case x: return x; } }");
    accepted("int f(int n) { switch (n) { case 0: case 1: return 1; default: return 0; } }");
    rejected("int f(int n) { switch (n) { case 0: fallthru; case x: return x; } }", "1: E0202", "binds 1 variables");
    rejected("int f(int n) { switch (n) { case 0: return 1; default: fallthru; } }", "1: E0303", "no clause");
}

#[test]
fn a_let_that_may_fail_is_a_warning() {
    let text = "int f(shape_t s) { let &Circle(r) = s; return r; }";
    let found = checked(DECLARATIONS, text).1.of(Severity::Warning);
    assert!(found.len() == 1 && found[0].contains("does not match `&Point`"), "{found:#?}");
}

#[test]
fn conditions_of_clauses_change_nothing() {
    rejected(
        "int f(int n) { switch (n) { case x && x++ > 0: return x; default: return 0; } }",
        "1: E0310",
        "may not change",
    );
}
