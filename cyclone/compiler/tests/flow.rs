//! Flow analysis: initialisation, nullness, ownership, and which checks it removes.

#[path = "shared/checked.rs"]
mod checked;

use checked::{Messages, checked};
use ebb_cyclone::diagnostics::Severity;
use ebb_cyclone::flow;

const DECLARATIONS: &str = "extern \"C\" void drop(int *@aqual(UNIQUE)) __attribute__((consume(1)));
extern \"C\" int look(int *@aqual(UNIQUE)); extern \"C\" int see(int *`r); extern \"C\" void *stop() __attribute__((noreturn));
struct Pair { int *a; int *b; }; struct Owner { int *@aqual(UNIQUE) p; int n; };
typedef int *@aqual(UNIQUE) own_t; typedef struct Owner @@aqual(UNIQUE) owner_t;
";

/// What the analysis says about a text without other errors, and the reasons of the checks that it leaves.
#[track_caller]
fn analysed(text: &str) -> (Messages, Vec<String>) {
    let (mut program, mut found) = checked(DECLARATIONS, text);
    found.expect_no_error(text);
    found.diagnostics.clear();
    let remaining = flow::analyse(
        &mut program,
        flow::Options { warn_lost: true, ..flow::Options::default() },
        &mut found.diagnostics,
    );
    (found, remaining.into_iter().map(|check| check.reason).collect())
}

#[track_caller]
fn accepted(text: &str) {
    analysed(text).0.expect_no_error(text);
}

#[track_caller]
fn rejected(text: &str, place: &str) {
    analysed(text).0.expect_error(place, "", text);
}

/// How many checks are left, each with this in its reason. Those of allocations' sizes always are.
#[track_caller]
fn left(text: &str, count: usize, part: &str) {
    let (_, mut found) = analysed(text);
    found.retain(|reason| !reason.starts_with("size: "));
    let fits = found.len() == count && found.iter().all(|reason| reason.contains(part));
    assert!(fits, "expected {count} with {part}, found {found:#?} in\n{text}");
}

#[test]
fn pointers_need_a_value_on_every_way() {
    rejected("int f(int n) { int *p;\nif (n) p = &n;\nreturn *p; }", "3: E0301");
    accepted("int f(int n) { int *p; if (n) p = &n; else return 0; return *p; }");
    accepted("int f(int n) { int *p; switch (n) { case 1: p = &n; break; default: stop(); } return *p; }");
    accepted("int f(int n) { int *p; if (n) p = &n; else throw new Null_Exception; return *p; }");
    rejected("void f(int n, int *q) { int *p; while (n) {\n*p = 1;\np = q; } }", "2: E0301");
    accepted("int f() { int n; return n; }");
}

#[test]
fn members_get_values_one_by_one() {
    rejected(
        "int f(int *`H q) { struct Pair x; x.a = q;\nstruct Pair y = x; return see(y.a)\n+ see(y.b); }",
        "3: E0301",
    );
    accepted("int f(int *`H q) { struct Pair x; x.a = q; x.b = NULL; struct Pair y = x; return *y.a; }");
    accepted("int f(int *`H q) { struct Pair *x = malloc(sizeof(struct Pair)); x->a = q; x->b = q; return *x->b; }");
    rejected(
        "struct Pair *f(int *`H q) { struct Pair *x = malloc(sizeof(struct Pair)); x->a = q;\nreturn x; }",
        "2: E0301",
    );
}

#[test]
fn what_others_may_see_has_a_value() {
    rejected("void g(int **); void f() { int *p;\ng(&p); }", "2: E0301");
    rejected("void g(int **); void f(int **q) { int *p;\n*q = p; }", "2: E0301");
}

#[test]
fn handlers_see_every_state_of_the_body() {
    rejected(
        "void f(int *q) { int *p, *none; p = q; try { p = none; p = q; } catch {\ndefault: see(p); break; } }",
        "2: E0301",
    );
    accepted("void f(int *q) { int *p = q; try { p = NULL; p = q; } catch { default: see(p); break; } }");
}

#[test]
fn functions_return_what_they_promise() {
    rejected("int *f(int n) {\nif (n) return NULL; }", "2: E0300");
    accepted("int *f(int n) { while (1) { if (n) return NULL; } }");
    accepted("int *f(int n) { switch (n) { case 0: return NULL; default: stop(); } }");
    let warnings = analysed("int f(int n) { if (n) return 1; }").0.of(Severity::Warning);
    assert!(warnings.len() == 1 && warnings[0].contains("E0300"), "{warnings:#?}");
}

#[test]
fn clauses_end_with_a_jump() {
    rejected("void f(int n) { switch (n) {\ncase 1: see(NULL);\ncase m: break; } }", "2: E0325");
    rejected("void f(int n) { try { see(NULL); } catch {\ndefault: see(NULL); } }", "2: E0325");
    rejected("void f(int n) { switch (n) { case 1: switch (n) {\ndefault: break; }\ndefault: break; } }", "2: E0325");
}

#[test]
fn jumps_do_not_enter_scopes() {
    rejected("void f(int n) {\ngoto in; int *p = &n; in: see(p); }", "2: E0326");
    rejected("void f() {\ngoto in; try { in: see(NULL); } catch { default: break; } }", "2: E0326");
    accepted("void f(int n) { again: if (n > 0) { int *p = &n; n--; goto again; } }");
}

#[test]
fn a_copied_owner_is_gone() {
    rejected("void f() { own_t p = new 1; drop(p);\ndrop(p); }", "2: E0320");
    rejected("void f(int n) { own_t p = new 1; if (n) drop(p);\nlook(p); }", "2: E0320");
    rejected("void f() { own_t p = new 1; drop(p);\n*p = 2; }", "2: E0320");
    accepted("void f() { own_t p = new 1; drop(p); p = new 2; drop(p); }");
    accepted("void f() { own_t p = new 1; look(p); look(p); drop(p); }");
    rejected("void f(int n) { own_t p = new 1; while (n) {\ndrop(p); } }", "2: E0320");
    accepted("void f(int n) { own_t p = new 1; while (n) { drop(p); p = new n; } drop(p); }");
}

#[test]
fn owners_inside_owned_objects_are_followed() {
    accepted("void f(owner_t o) __attribute__((consume(1))) { drop(o->p); o->p = new 1; }");
    rejected("void f(owner_t o) __attribute__((consume(1))) { drop(o->p);\ndrop(o->p); }", "2: E0320");
    accepted("void f(owner_t o) __attribute__((consume(1))) { own_t q = NULL; q :=: o->p; drop(q); }");
}

#[test]
fn parameters_are_kept_unless_declared_consumed() {
    rejected("void f(own_t p) {\ndrop(p); }", "2: E0321");
    rejected("void f(own_t p) {\np = new 1; }", "2: E0321");
    accepted("void f(own_t p) { own_t q = p; p = q; }");
    accepted("void f(own_t p) __attribute__((consume(1))) { drop(p); }");
    rejected("void f(owner_t o) {\ndrop(o->p); }", "2: E0321");
}

#[test]
fn patterns_give_back_what_they_took() {
    accepted("void f(own_t p) { { let q = p; look(q); } look(p); }");
    rejected("void f(own_t p) __attribute__((consume(1))) { { let q = p; drop(q); }\nlook(p); }", "2: E0320");
    accepted("void f(owner_t o) { { let &Owner{.p = q, ...} = o; look(q); } look(o->p); }");
    rejected(
        "void f(owner_t o) __attribute__((consume(1))) { { let &Owner{.p = q, ...} = o; drop(q); }\nlook(o->p); }",
        "2: E0320",
    );
    rejected("void f(owner_t o) { let &Owner{.p = q, ...} = o;\nlook(o->p); }", "2: E0320");
}

#[test]
fn aliases_last_until_their_scope_ends() {
    accepted("void f(own_t p) { { let alias<`r> int *`r q = p; see(q); see(q); } look(p); }");
    rejected("void f(own_t p) __attribute__((consume(1))) { let alias<`r> int *`r q = p;\ndrop(p); }", "2: E0320");
    rejected("void f(own_t p) __attribute__((consume(1))) {\nlet alias<`r> int *`r q = p; p = new 1; }", "2: E0322");
}

#[test]
fn lost_objects_are_warned_of() {
    let lost = |text: &str| {
        let warnings = analysed(text).0.of(Severity::Warning);
        warnings.iter().filter(|warning| warning.contains("E0323")).count()
    };
    assert_eq!(lost("void f() { own_t p = new 1; p = new 2; drop(p); }"), 1);
    assert_eq!(lost("void f(int n) { own_t p = new 1; if (n) drop(p); }"), 1);
    assert_eq!(lost("void f() { own_t p = new 1; }"), 1);
    assert_eq!(lost("own_t make(); void f() { let p = make(); }"), 1);
    assert_eq!(lost("void f(own_t p) { let q = p; look(q); }"), 0);
    assert_eq!(lost("void f(own_t p) __attribute__((consume(1))) { look(p); }"), 1);
    assert_eq!(lost("void f() { own_t p = new 1; drop(p); p = NULL; }"), 0);
}

#[test]
fn null_checks_go_where_a_test_or_an_earlier_check_was() {
    left("int f(int *p) { return *p; }", 1, "no test on every way");
    left("int f(int *p) { if (p == NULL) return 0; return *p + *p; }", 0, "");
    left("int f(int *p) { return p && *p; }", 0, "");
    left("int f(int *p) { int n = *p; return n + *p; }", 1, "null");
    left("int f(int *p, int n) { while (n--) *p = n; return 0; }", 1, "null");
    left("int f() { int *p = new 3; return *p; }", 0, "");
    left("int f(int @p) { return *p; }", 0, "");
    left(
        "struct L { int n; struct L *next; }; int f(struct L *l) { int s = 0; for (; l; l = l->next) s += l->n; return s; }",
        0,
        "",
    );
}

#[test]
fn what_others_may_change_is_tested_each_time() {
    left("int *g; int f() { if (g == NULL) return 0; return *g; }", 1, "memory");
    left("void g(int **); int f(int *p) { g(&p); if (!p) return 0; return *p; }", 1, "address is known elsewhere");
}

#[test]
fn what_is_always_null_is_an_error() {
    rejected("int f() { int *p = NULL;\nreturn *p; }", "2: E0327");
    rejected("int f(int *p) { if (p) return 0;\nreturn *p; }", "2: E0327");
}

#[test]
fn indices_below_the_number_of_elements_are_not_tested() {
    left("int f(int ?a) { int s = 0; for (unsigned i = 0; i < numelts(a); i++) s += a[i]; return s; }", 0, "");
    left("int f(int ?a) { int s = 0; for (int i = 0; i < numelts(a); i++) s += a[i]; return s; }", 0, "");
    left(
        "int f(int n) { int ?a = calloc((unsigned long)n, sizeof(int)); for (int i = 0; i < n; i++) a[i] = i; return n; }",
        0,
        "",
    );
    left("int f(int n) { int ?a = new {for i < 9 : n}; for (int i = 8; i >= 0; i--) a[i] = i; return a[8]; }", 0, "");
    left(
        "int f(int k) { int a[10] = {for i < 10 : 0}; int s = 0; for (int i = 0; i < 10; i++) s += a[i]; return s; }",
        0,
        "",
    );
    left("int f(int ?a, int k) { return a[k] + a[k]; }", 1, "bounds");
    left("int f(int ?a, int k) { a[4] = 1; return a[4] + a[4]; }", 1, "bounds");
    left("int f(int ?a, int k) { if (k < 0 || k >= numelts(a)) return 0; return a[k]; }", 0, "");
}

#[test]
fn a_pointer_may_be_outside_of_its_elements() {
    left("int f(int ?a) { a[4] = 1; return a[2]; }", 2, "bounds");
    left("int f(int ?a) { a[-1] = 1; return a[0]; }", 2, "bounds");
    left("int f(int ?a, int k) { a[k] = 1; if (k < 5) return a[4]; return 0; }", 2, "bounds");
    left(
        "int f(int ?a, int k) { int b[5] = {for i < 5 : 0}; a[k] = 1; if (k < 5) return b[k]; return 0; }",
        2,
        "bounds",
    );
}

#[test]
fn what_changes_is_tested_again() {
    left("int f(int ?a, int k) { int s = a[k]; k++; return s + a[k]; }", 2, "bounds");
    left("int f(int ?a, int k) { int s = a[k]; a++; return s + a[k]; }", 2, "bounds");
    left("int f(int ?`r a, int ?`r b, int k) { int s = a[k]; a = b; return s + a[k]; }", 2, "bounds");
    left(
        "int f(int ?a) { int s = 0; for (int i = 0; i < numelts(a); i++) { s += a[i]; i += 2; s += a[i]; } return s; }",
        1,
        "bounds",
    );
    left(
        "int f(int n) { int ?a = calloc((unsigned long)n, sizeof(int)); n++; for (int i = 0; i < n; i++) a[i] = i; return n; }",
        1,
        "bounds",
    );
    left(
        "int f(int n) { int ?a = calloc((unsigned long)n, sizeof(int)); for (int i = 0; i <= n; i++) a[i] = i; return n; }",
        1,
        "bounds",
    );
    left("void g(int *); int f(int ?a, int k) { int s = a[k]; g(&k); return s + a[k]; }", 2, "bounds");
    left("int f(int ?a, int n) { int s = 0; for (int i = n; i < 10; i++) s += a[i]; return s; }", 1, "bounds");
    left("int f(int ?a) { for (int i = 5; i < numelts(a); i--) a[i] = 1; return 0; }", 0, "");
    left("int f(int ?a, unsigned n) { for (int i = 5; i < n; i--) a[i] = 1; return 0; }", 1, "bounds");
    left(
        "int f(int ?a, int n) { if (n > (int)numelts(a)) return 0; for (int i = 0; i != n; i++) a[i] = 1; return 0; }",
        1,
        "bounds",
    );
    left(
        "int f(int ?a, int k) { try { k = a[k] ? 0 : 5; stop(); k = 50; } catch { default: break; } return a[k]; }",
        2,
        "bounds",
    );
    left(
        "int f(int n) { int a[10] = {for i < 10 : 0}; for (int i = 0; i < 10; i++) { int k; a[k] = 1; k = 3; } return n; }",
        1,
        "bounds",
    );
}

#[test]
fn sums_that_cannot_wrap_around_stay_within() {
    let sieve = |limit: &str, step: &str| {
        format!(
            "void f(int n) {{ int ?a = calloc((unsigned long)n + 1, sizeof(int)); for (int i = 2; i <= {limit}; i++)
             for (int k = i + i; k <= {limit}; k {step}) a[k] = 1; }}"
        )
    };
    // `k + i` may wrap around: to a negative number.
    left(&sieve("n", "+= i"), 1, "bounds");
    left(
        "int f() { char a[100] @nozeroterm; for (int i = 2; i < 100; i++) for (int k = i + i; k < 100; k += i) a[k] = '0'; return 0; }",
        0,
        "",
    );
    left(
        "int f() { char a[100] @nozeroterm; for (int i = 2; i < 100; i++) for (int k = i + i; k <= 100; k += i) a[k] = '0'; return 0; }",
        1,
        "bounds",
    );
    left(
        "int f(int d) { char a[100] @nozeroterm; for (int k = 0; k < 100; k += d) a[k] = '0'; return 0; }",
        1,
        "bounds",
    );
    left(
        "int f(unsigned k) { char a[100] @nozeroterm; a[k % 100] = '0'; return a[k & 63] + a[k >> 27] + a[k / 50000000]; }",
        0,
        "",
    );
    left("int f(int k) { char a[100] @nozeroterm; a[k & 63] = '0'; return a[k % 100]; }", 1, "bounds");
    left("int f(unsigned k) { char a[100] @nozeroterm; return a[k % 101]; }", 1, "bounds");
    left(
        "int f(unsigned k, unsigned n) { char a[100] @nozeroterm; if (n > 100) return 0; return a[k % n]; }",
        1,
        "bounds",
    );
    left("int f(unsigned char c) { int a[256]; return a[c]; }", 0, "");
    left("int f(char c) { int a[256]; return a[c]; }", 1, "bounds");
    left("int f(char c) { int a[256]; return a[(unsigned char)c]; }", 0, "");
    left(
        "int f(int k) { char a[100] @nozeroterm; if (k < 0 || k > 99) return 0; unsigned char c = (unsigned char)k; return a[c]; }",
        0,
        "",
    );
    left(
        "int f(int k) { char a[100] @nozeroterm; if (k < 0 || k > 299) return 0; char c = (char)k; return a[c / 3]; }",
        1,
        "bounds",
    );
    left("int f(int ?a, int k, int n) { if (n <= numelts(a) && k + 1 < n) return a[k + 1]; return 0; }", 1, "bounds");
    left("int f(int ?a, int k) { if (k >= 0 && k + 1 < (int)numelts(a)) return a[k]; return 0; }", 1, "bounds");
    left("int f(int ?a, int k) { if (k >= 0 && k < 99 && k + 1 < (int)numelts(a)) return a[k + 1]; return 0; }", 0, "");
    left("int f(int ?a, long k) { int s = 0; if (k > 0) s = a[k]; return a[0] + s; }", 2, "bounds");
}

#[test]
fn the_size_of_an_allocation_bounds_what_is_below_it() {
    let over = |count: &str, test: &str| {
        format!(
            "int f(int n) {{ int ?a = calloc({count}, sizeof(int)); int s = 0; for (int i = 0; i {test}; i++) s += a[i]; return s; }}"
        )
    };
    left(&over("(unsigned long)n", "< n"), 0, "");
    left(&over("(unsigned long)n", "<= n"), 1, "bounds");
    // With the greatest `n`, `i` wraps around.
    left(&over("(unsigned long)n + 1", "<= n"), 1, "bounds");
    left(&over("(unsigned long)n + 1", "<= n - 1"), 0, "");
    left(&over("(unsigned long)(n + 1)", "<= n"), 0, "");
    left(&over("(unsigned long)n + 1", "<= n + 1"), 1, "bounds");
    left(&over("(unsigned long)(unsigned char)n", "< n"), 1, "bounds");
    left(&over("(unsigned long)((unsigned)n + 1u)", "<= n"), 1, "bounds");
    left(
        "int f(unsigned long n) { int ?a = calloc(n + 1, sizeof(int)); for (unsigned long i = 0; i < n; i++) a[i] = 1; return 0; }",
        1,
        "bounds",
    );
}

#[test]
fn texts_are_tested_once() {
    let first = "the first round";
    left(
        "unsigned f(const char ?@zeroterm s) { unsigned h = 0; for (; *s; s++) h = 5 * h + (unsigned)*s; return h; }",
        1,
        first,
    );
    left(
        "unsigned f(const char ?@zeroterm s) { unsigned h = 0; while (*s != 0) h = 5 * h + (unsigned)*s++; return h; }",
        1,
        first,
    );
    left("long f(const char ?@zeroterm s) { long i; for (i = 0; s[i] != 0; i++) { } return i; }", 1, first);
    left("long f(const char ?@zeroterm s) { long i = 0; while (s[i] && s[i] == ' ') i++; return s[i]; }", 1, first);
    // In a text of more than two gigabytes the index wraps around.
    left("int f(const char ?@zeroterm s) { int i; for (i = 0; s[i] != 0; i++) { } return i; }", 1, "known");
    left("int f(const char ?@zeroterm s) { char c; int n = 0; while ((c = *s++) != 0) n += c; return n; }", 1, first);
    // Without a zero at the end, behind a zero, and over two at once.
    left("int f(char ?@nozeroterm s) { int n = 0; for (; *s; s++) n++; return n; }", 1, "known");
    left("int f(const char ?@zeroterm s) { int n = 0; for (; *s != 'x'; s++) n++; return n; }", 1, "known");
    left("int f(const char ?@zeroterm s) { int n = 0; for (; *s; s += 2) n++; return n; }", 1, "known");
    left("int f(const char ?@zeroterm s) { int n = 0; for (; *s; s--) n++; return n; }", 1, "known");
    left("int f(const char ?@zeroterm s) { int n = 0; do { n++; } while (*s++); return *s; }", 2, "bounds");
    left("int f(const char ?@zeroterm s, int i) { while (s[i]) i--; return i; }", 1, "known");
}

#[test]
fn a_round_may_prove_what_the_next_ones_do() {
    left("int f(int ?a) { int s = 0; for (int i = 0; i < 9; i++) s += a[4]; return s; }", 1, "the first round");
    left("int f(int ?a, int k) { int s = 0; do { s += a[k]; } while (s < 5); return s; }", 1, "the first round");
    left(
        "int f(int ?a, int k) { int s = 0; do { s += a[k]; if (s == 3) k = s; } while (s < 5); return s; }",
        1,
        "known",
    );
    left(
        "int f(int ?a, int k) { int s = 0; while (s < 5) { if (s == 3) { s++; continue; } s += a[k]; } return s; }",
        1,
        "known",
    );
    left("void g(int ?*); int f(int ?a) { int s = 0; while (s < 5) { s += a[4]; g(&a); } return s; }", 1, "known");
}

#[test]
fn copies_of_pointers_have_as_many_elements() {
    left("int f() { int x[5] = {1, 2, 3, 4, 5}; int ?a = x; int ?b = a; return a[4] + b[4]; }", 0, "");
    left("int f() { int x[5] = {1, 2, 3, 4, 5}; int ?a = x; int ?b = a + 2; return b[2]; }", 0, "");
    left("int f() { int x[5] = {1, 2, 3, 4, 5}; int ?a = x; int ?b = a + 2; return b[3]; }", 1, "bounds");
    left("int f() { int x[5] = {1, 2, 3, 4, 5}; int ?a = x; a++; a += 2; return a[1]; }", 0, "");
    left("int f() { int x[5] = {1, 2, 3, 4, 5}; int ?a = x; a++; a += 2; return a[2]; }", 1, "bounds");
    left("int f() { int x[5] = {1, 2, 3, 4, 5}; int ?a = x; a--; return a[1]; }", 1, "bounds");
    // NULL has none.
    left("int f(int *{5} x) { int ?a = x; return a[4]; }", 1, "bounds");
    left("int f(int @{5} x) { int ?a = x; return a[4]; }", 0, "");
    // The terminator is not given away.
    left("int f() { const char ?s = \"abc\"; return s[3]; }", 0, "");
    left(
        "void f(char ?@zeroterm `r s) { if (numelts(s) != 4) return; char ?@nozeroterm t = s; t[3] = 'x'; }",
        1,
        "bounds",
    );
}

#[test]
fn what_all_calls_say_holds_where_a_function_begins() {
    let with = |calls: &str| {
        format!(
            "static int get(int ?`r a, int k) {{ return a[k]; }}
             int f(int n, int ?b) {{ int x[5] = {{1, 2, 3, 4, 5}}; int k = 4; {calls} }}"
        )
    };
    left(&with("return get(x, 0) + get(x, k);"), 0, "");
    left(&with("return get(x, 0) + get(x, 5);"), 1, "bounds");
    left(&with("return get(x, 0) + get(x, -1);"), 1, "bounds");
    left(&with("return get(x, 0) + get(x, n);"), 1, "bounds");
    left(&with("return get(x, 0) + get(b, 4);"), 1, "bounds");
    left(&with("return n >= 0 && n < (int)numelts(b) ? get(b, n) : 0;"), 0, "");
    left(&with("return n < (int)numelts(b) ? get(b, n) : 0;"), 1, "bounds");
    left(&with("while (k >= 0 && k < 5) k += get(x, k); return k;"), 0, "");
    left(&with("while (k >= 0 && k < 9) k += get(x, k); return k;"), 1, "bounds");
    // What is said of no call that is reached.
    left(&with("return 0; return get(x, 9);"), 1, "bounds");
    // Calls that are not known.
    left(&with("int (@p)(int ?, int) = get; return get(x, 0) + p(b, 9);"), 1, "bounds");
    left(&with("again: if (get(x, k++) < 3) goto again; return k;"), 1, "bounds");
    left("int get(int ?a, int k) { return a[k]; } int f() { return get(new {1, 2, 3, 4, 5}, 4); }", 1, "bounds");
    left(
        "static int get(int ?a, int k) { int v = a[k]; return v > 3 ? v : get(a, k + 1); }
         int f() { return get(new {1, 2, 3, 4, 5}, 0); }",
        1,
        "bounds",
    );
}

#[test]
fn arguments_are_what_they_were_when_they_were_computed() {
    let with = |call: &str| {
        format!(
            "static int get(int ?`r a, int k, int n) {{ return a[k] + n; }}
             int f() {{ int x[5] = {{1, 2, 3, 4, 5}}; int k = 5; int ?p = x; return {call}; }}"
        )
    };
    left(&with("get(x, k - 1, 0)"), 0, "");
    left(&with("get(x, k, k -= 1)"), 1, "bounds");
    left(&with("get(p++, 4, 0)"), 1, "bounds");
    left(&with("get(p, 4, *++p)"), 1, "bounds");
    left(&with("get(p + 1, 3, 0)"), 1, "bounds");
}

#[test]
fn parameters_that_change_are_tested_again() {
    let with = |body: &str| {
        format!(
            "void g(int ?*);
             static int get(int ?a, int k) {{ {body} return a[k]; }}
             int f() {{ int ?x = new {{for i < 5 : 0}}; return get(x, 4); }}"
        )
    };
    left(&with(""), 0, "");
    left(&with("k--;"), 0, "");
    left(&with("k++;"), 1, "bounds");
    left(&with("a++;"), 1, "bounds");
    left(&with("g(&a);"), 1, "bounds");
    left(&with("if (a[0] > 3) k = 5;"), 1, "bounds");
}

#[test]
fn copies_of_indices_have_the_same_elements() {
    let sift = |step: &str| {
        format!(
            "void f(int ?a, int root, int last) {{
               int value = a[root];
               while (last-- > 0) {{ int child = 2 * root + 1; if (a[child] < value) break; a[root] = a[child]; {step} }}
             }}"
        )
    };
    left(&sift("root = child;"), 2, "bounds");
    left(&sift("root = child + 1;"), 3, "bounds");
    left(&sift("child++; root = child;"), 3, "bounds");
}

#[test]
fn an_index_from_the_first_element_on_is_not_negative() {
    let with = |body: &str| format!("int f(int k) {{ int ?a = new {{for i < 9 : 0}}; {body} }}");
    left(&with("int s = a[k]; if (k >= 4) s += a[k - 4]; return s;"), 1, "bounds");
    left(&with("int s = a[k]; return s + a[k - 1];"), 2, "bounds");
    left(&with("a++; int s = a[k]; if (k >= 4) s += a[k - 4]; return s + a[0];"), 2, "bounds");
    // Before its first element there may be others.
    left("int f(int ?a, int k) { int s = a[k]; return k <= 4 ? a[0] + s : 0; }", 2, "bounds");
    left("int f(int k) { int ?a = new {for i < 9 : 0}; int s = a[k]; return a[0] + s; }", 1, "bounds");
}

#[test]
fn what_changes_together_is_followed_together() {
    let copy = |room: usize, step: &str| {
        format!(
            "static void copy(int ?to, int count) {{ while (count > 0) {{ *to++ = count; {step} }} }}
             void f(int n) {{ if (n > 8) return; copy(new {{for i < {room} : 0}}, n); }}"
        )
    };
    left(&copy(8, "count--;"), 0, "");
    left(&copy(7, "count--;"), 1, "bounds");
    left(&copy(8, "if (count != 3) count--;"), 1, "bounds");
    left(&copy(8, "count--; to++;"), 1, "bounds");
}
