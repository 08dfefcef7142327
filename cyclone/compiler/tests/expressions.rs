//! Expressions, conversions, calls, initialisers, statements: what the checker accepts, and what it rejects on which line.

#[path = "shared/checked.rs"]
mod checked;

use checked::checked;
use ebb_cyclone::diagnostics::Severity;

#[track_caller]
fn accepted(text: &str) {
    checked("", text).1.expect_no_error(text);
}

/// Exactly one error, on this line with this code.
#[track_caller]
fn rejected(text: &str, line: u32, code: &str) {
    checked("", text).1.expect_error(&format!("{line}: {code}: "), "", text);
}

#[test]
fn arithmetic_of_c_is_accepted() {
    accepted(
        "enum colour { Red, Green = 5, Blue };
         int f(int a, unsigned long b, char c, double d) {
           int x = a + c * 2, y = -a;
           x += d; y <<= 3; x++; --y;
           long z = b % 7 | a & ~1;
           z = a < b && !d || c == 'x' ? 1 : 0L;
           enum colour k = Green;
           return x + (int)d + k + sizeof(int) + sizeof x;
         }",
    );
}

#[test]
fn operators_want_numbers() {
    rejected("struct s { int a; };\nint f(struct s v) { return v + 1; }", 2, "E0201");
    rejected("int f(double d) { return d % 2; }", 1, "E0201");
    rejected("struct s { int a; };\nint f(struct s v) { if (v) return 1; return 0; }", 2, "E0201");
}

#[test]
fn fat_pointers_move_and_thin_ones_do_not() {
    accepted(
        "int sum(int ?p, int n) { int s = 0; int i; for (i = 0; i < n; i++) { s += p[i]; s += *p; } p++; p += 2; p = p + 1;
           return s + (p - 1)[0]; }",
    );
    rejected("int f(int *p) { p++; return *p; }", 1, "E0204");
    rejected("void f(int *p) {\n p = p + 1 ? p : p;\n p -= 1; }", 3, "E0204");
}

#[test]
fn pointers_lose_nothing_silently() {
    accepted("void g(int *p); void f(int @p) { g(p); g(NULL); g(0); int @q = p; q = (int @)q; }");
    rejected("void f(int @p) { p = NULL; }", 1, "E0200");
    rejected("void f(const int *p) { int *q = p; }", 1, "E0200");
    rejected("void f(int x) { int *q = (int *)x; }", 1, "E0205");
    rejected("void f(int *p) { *(const int *)p = 1; }", 1, "E0203");
}

#[test]
fn bounds_follow_the_elements() {
    accepted("int f() { int a[4]; int *{4} p = a; int *{2} q = p; int ?r = a; return a[3] + p[0] + r[2]; }");
    rejected("int f() { int a[4];\n return a[4]; }", 2, "E0210");
    rejected("void f(int *{2} p) { int *{3} q = p; }", 1, "E0200");
}

#[test]
fn strings_are_constant_and_fill_arrays() {
    accepted(
        "void f() { const char ?s = \"ab\"; char a[] = \"xyz\"; char b[8] = \"q\"; const char *p = \"z\"; a[0] = 'c'; }",
    );
    rejected("void f() { char a[2] = \"abc\"; }", 1, "E0200");
    rejected("void f() { char ?s = \"ab\"; }", 1, "E0200");
}

#[test]
fn initialisers_fill_structures_and_arrays() {
    accepted(
        "struct in { int x; int y; }; struct out { struct in a; int b[3]; char *c; };
         struct out g = { { 1, 2 }, { 3, 4, 5 }, NULL };
         void f() { struct out o = { .b = { [1] = 7 }, .a.y = 3 }; struct in i[] = { 1, 2, 3, 4 }; i[1].x = o.b[0]; }",
    );
    rejected("struct s { int x; };\nvoid f() { struct s v = { .z = 1 }; }", 2, "E0100");
    rejected("struct s { int @p; int n; };\nvoid f() { struct s v = { .n = 1 }; }", 2, "E0200");
    rejected("int a[2] = { 1, 2, 3 };", 1, "E0200");
}

#[test]
fn polymorphic_functions_are_instantiated() {
    accepted(
        "struct cell<`a> { `a hd; struct cell<`a> *tl; };
         `a first(struct cell<`a> @l) { return l->hd; }
         struct cell<`a> *cons(`a x, struct cell<`a> *`H l) { return new cell(x, l); }
         int f() { let_me(); return first(new cell(3, NULL)); }
         void let_me();
         int apply(int g(int), int x) { return g(x); }
         `b id(`b x) { return x; }
         int h() { return apply(id, 3) + id(4); }"
            .replace("let_me(); return", "return")
            .replace("void let_me();", "")
            .as_str(),
    );
    rejected("`a id(`a x) { return x; }\nvoid f(double d) { id(d); }", 2, "E0207");
}

#[test]
fn calls_take_as_many_arguments_as_there_are_parameters() {
    rejected("int g(int a, int b); int f() { return g(1); }", 1, "E0202");
    rejected("int g(int a); int f() { return g(1, 2); }", 1, "E0202");
    rejected("int f(int x) { return x(1); }", 1, "E0200");
    rejected("int f() { return nothing(1); }", 1, "E0100");
}

#[test]
fn locals_do_not_outlive_their_block() {
    accepted("void f() { int x; int *p = &x; *p = 1; }");
    rejected("int *f() { int x;\n return &x; }", 2, "E0402");
    rejected("void f() { int *p;\n { int x; p = &x; } }", 2, "E0402");
}

#[test]
fn unions_give_back_no_pointers_that_were_not_put_in() {
    accepted("union u { int i; char c[4]; }; int f(union u v) { v.i = 3; return v.c[0] + v.i; }");
    rejected("union u { int i; int *p; };\nint f(union u v) { v.i = 3; return *v.p; }", 2, "E0200");
    accepted(
        "@tagged union u { int i; int *p; }; int f(union u v) { v.i = 3; if (tagcheck(v.i)) return v.i; return *v.p; }",
    );
}

#[test]
fn tuples_have_components_by_number() {
    accepted("int f($(int, char *) t) { $(int, int) u = $(t[0], 2); u[1] = 3; return u[0]; }");
    rejected("int f($(int, int) t) { return t[2]; }", 1, "E0100");
}

#[test]
fn allocation_gives_what_its_size_says() {
    accepted(
        "struct s { int x; struct s *next; };
         void f(int n) {
           struct s *p = malloc(sizeof(struct s)); int ?a = malloc(n * sizeof(int)); int ?b = calloc(n, sizeof(int));
           int @{3} c = new { 1, 2, 3 }; struct s @d = new s(1, p); int ?e = new { for i < n : i }; a[0] = b[0] + c[2] + e[0];
         }",
    );
    rejected("struct s { int @p; };\nvoid f(int n) { struct s ?p = malloc(n * sizeof(struct s)); }", 2, "E0200");
}

#[test]
fn statements_stand_where_they_have_a_meaning() {
    rejected("void f() { break; }", 1, "E0303");
    rejected("void f() { while (1) { } continue; }", 1, "E0303");
    rejected("void f() { return 1; }", 1, "E0200");
    rejected("int *f() { return; }", 1, "E0200");
    rejected("void f() { goto out; }", 1, "E0100");
    accepted(
        "int f(int n) { again: if (n > 3) { n--; goto again; } do { n++; } while (n < 2); for (int i = 0; i < 3; i++) n += i; return ({ int k = n; k + 1; }); }",
    );
}

#[test]
fn only_objects_are_assigned_to() {
    rejected("void f(int a) { a + 1 = 2; }", 1, "E0203");
    rejected("void f(const int a) { a = 2; }", 1, "E0203");
    rejected("struct s { const int c; };\nvoid f(struct s a, struct s b) { a = b; }", 2, "E0203");
    rejected("void f() { int a[2], b[2]; a = b; }", 1, "E0203");
}

#[test]
fn swap_exchanges_pointers_of_one_type() {
    accepted("void f(int *\\U`H @a, int *\\U`H b) { *a :=: b; }");
    rejected("struct s { int x; int y; };\nvoid f(struct s a, struct s b) { a :=: b; }", 2, "E0200");
    rejected("void f(int *a, char *b) { a :=: b; }", 1, "E0200");
}

#[test]
fn unique_pointers_are_copied_from_unique_paths_only() {
    accepted("int *\\U f(int *\\U`H p) { int *\\U q = p; return q; }");
    rejected("struct s { int *\\U p; };\nint *\\U f(struct s *`H v) { return v->p; }", 2, "E0212");
    rejected("void f(int *\\U p) { int *\\U *q = &p; }", 1, "E0203");
}

#[test]
fn formats_are_checked() {
    let head = "extern \"C\" int printf(const char @fmt, ...) __attribute__((format(printf, 1, 2)));\n";
    accepted(&format!("{head}void f(const char ?s, char @t) {{ printf(\"%d %ld %s %c %g%%\", 1, 2L, t, 'c', 1.5); }}"));
    rejected(&format!("{head}void f() {{ printf(\"%d\"); }}"), 2, "E0211");
    rejected(&format!("{head}void f() {{ printf(\"%s\", 1); }}"), 2, "E0200");
    rejected(&format!("{head}void f() {{ printf(\"%y\", 1); }}"), 2, "E0211");
}

#[test]
fn a_unique_pointer_is_lent_to_a_call_that_gives_it_back() {
    let head = "int length(int *`r p);\nint *`r same(int *`r p);\nint *`H kept;\n";
    accepted(&format!("{head}int f(int *\\U`H p) {{ return length(p) + length(p); }}"));
    accepted(&format!("{head}int f(int *@aqual(RESTRICTED)`H p) {{ return length(p); }}"));
}

#[test]
fn structures_with_constant_members_are_covariant() {
    let head = "struct tree<`r> { const struct tree<`r> *`r left; const int *`r key; };\n";
    accepted(&format!(
        "{head}const struct tree<`r+`s> *`r+`s wide(const struct tree<`r> *`r t, region_t<`s> s) {{ return t; }}"
    ));
    rejected(
        "struct cell<`r> { int *`r key; };\nstruct cell<`r+`s> *`r wide(struct cell<`r> *`r t, region_t<`s> s) { return t; }",
        2,
        "E0200",
    );
}

#[test]
fn the_tag_of_a_datatype_is_a_number() {
    accepted("datatype d { One, Two(int) }; int f(datatype d @v, datatype d @w) { return tagof(v) == tagof(w); }");
    rejected("int f(int *p) { return tagof(p); }", 1, "E0200");
}

#[test]
fn type_arguments_may_be_given_in_part() {
    accepted(
        "`b pick<`a,`b>(`a x, `b y) { return y; }
         int f(`b g<`b>(int, `b)) { return g(1, 2); }
         int h() { return f(pick@<int><>) + pick@<int, int>(1, 2); }",
    );
    rejected("`a id(`a x) { return x; }\nint f() { return id@<int, int>(1); }", 2, "E0202");
}

#[test]
fn what_is_static_has_a_constant_value() {
    rejected("int g();\nint x = g();", 2, "E0208");
    rejected("int g();\nvoid f() { static int x = g(); }", 2, "E0208");
}

#[test]
fn structures_whose_size_is_not_known_stay_where_they_are() {
    rejected("struct s;\nvoid f(struct s *p) { *p; }", 2, "E0206");
    rejected("struct s;\nint f() { return sizeof(struct s); }", 2, "E0206");
    accepted("struct s; struct s *f(struct s *`H p) { return p; }");
}

#[test]
fn outside_of_functions_a_comprehension_repeats_a_constant() {
    accepted(
        "int zeros[100] = { for i < 100 : 0 }; int ones[] = { for i < 3 : 1 }; int f() { return zeros[99] + ones[2]; }",
    );
    rejected("int indices[8] = { for i < 8 : i };", 1, "E0100");
    rejected("int a[4] = { for i < 3 : 1 };", 1, "E0200");
}

#[test]
fn what_depends_on_a_size_that_nobody_knows_is_a_warning() {
    let warnings = |text: &str| checked("", text).1.of(Severity::Warning).len();
    assert_eq!(warnings("unsigned long f(`a::A ? x) { return numelts(x); }"), 1);
    assert_eq!(warnings("unsigned long f(`a::B ? x) { return numelts(x); }"), 0);
    assert_eq!(warnings("unsigned long f(char ? x) { return numelts(x); }"), 0);
}
