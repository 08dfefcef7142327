//! Texts that are nested far deeper, or are far longer, than anybody would write them: as deep as the parser allows, and deeper.

use ebb_cyclone::parse::{CHAIN_LIMIT, DEPTH_LIMIT};

/// What stands before, what is repeated before the middle, the middle, what is repeated after it, and what stands behind.
type Nested = (&'static str, &'static str, &'static str, &'static str, &'static str);

#[rustfmt::skip]
const NESTED: &[Nested] = &[
    ("int f() { return ", "(", "1", ")", "; }"),
    ("void f() ", "{", "", "}", ""),
    ("int f(int x) { return ", "!", "x", "", "; }"),
    ("int f(int x) { return ", "- ", "x", "", "; }"),
    ("int f(int *x) { return ", "*", "x", "", "; }"),
    ("int f(int x) { return ", "(int)", "x", "", "; }"),
    ("int f(int x) { return ", "sizeof ", "x", "", "; }"),
    ("int f(int x) { return ", "sizeof(", "int", ")", "; }"),
    ("int f(int x) { return ", "x?x:", "x", "", "; }"),
    ("int f(int x) { return ", "x?", "x", ":x", "; }"),
    ("int f(int x) { return ", "x=", "x", "", "; }"),
    ("int f(int x) { return ", "f(", "x", ")", "; }"),
    ("int f(int ?x) { return ", "x[", "0", "]", "; }"),
    ("int f(int x) { ", "if (x) x = 1; else ", "x = 2;", "", " return x; }"),
    ("int f(int x) { ", "if (x) ", "x = 2;", "", " return x; }"),
    ("int f(int x) { ", "do ", "x = 2;", " while (x);", " return x; }"),
    ("int f(int x) { return ", "({", "1;", "});", " }"),
    ("void f(int x) { ", "switch (x) { default: ", "break;", "}", " }"),
    ("void f(int x) { ", "try { x++; ", "x = 1;", "} catch { default: break; }", " }"),
    ("int f(int x) { ", "int g() { x++; ", "", "return x; }", " return x; }"),
    ("int f(int x) { ", "l: ", ";", "", " return x; }"),
    ("void f() { let x = ", "$(", "1", ")", "; }"),
    ("void f() { let x = ", "new ", "1", "", "; }"),
    ("void f(int x) { let ", "$(", "y", ")", " = x; }"),
    ("void f(int x) { switch (x) { case ", "&", "y", "", ": break; } }"),
    ("void f() { ", "{ region r;", "", "}", " }"),
    ("int ", "*", "p", "", ";"),
    ("int ", "(*", "p", ")", ";"),
    ("int ", "", "p", "[1]", ";"),
    ("int ", "", "p", "(int)", ";"),
    ("int f(", "int (", "int", ")", ");"),
    ("struct T<`a> { int x; }; ", "struct T<", "int", ">", " x;"),
    ("typedef ", "$(", "int", ")", " x;"),
    ("", "__typeof__(", "int", ")", " x;"),
    ("int x[1] = ", "{", "1", "}", ";"),
    ("", "struct {", "int x;", "} m;", ""),
    ("", "namespace N {", "", "}", ""),
    ("", "extern \"C\" {", "", "}", ""),
    ("/*", "/*", "", "", " int x;"),
];

/// What stands before, what is repeated, and what stands behind.
type Long = (&'static str, &'static str, &'static str);

#[rustfmt::skip]
const LONG: &[Long] = &[
    ("int f(int x) { return x", "+x", "; }"),
    ("int f(int x) { return x", "<<1", "; }"),
    ("int f(int x) { return x", "<1", "; }"),
    ("int f(int x) { return x", ",x", "; }"),
    ("int f(int x) { return x", "&&x", "; }"),
    ("int f(int x, int ?p) { if (x", "&&p[x]", ") return 1; return 0; }"),
    ("enum E { a = 1", "+1", " };"),
    ("int f(int ?p) { return p", "[0]", "; }"),
    ("int f(int x) { return f", "()", "; }"),
    ("void f() ", "__attribute__((noreturn))", ";"),
    ("void f(;", "`a+", "`b);"),
    ("const char ?s = ", "\"a\" ", ";"),
    ("const char ?s = \"", "\\n", "\";"),
    ("const char ?s = \"", "a", "\n;"),
    ("int ", "a", ";"),
    ("int x = ", "9", ";"),
    ("double x = 1.", "9", "e99999999999;"),
    ("", "int x;", ""),
    ("void f(int x) { ", "x++;", " }"),
    ("int x", ", x", ";"),
];

/// All of them, with names.
pub fn texts() -> Vec<(String, String)> {
    let mut texts = Vec::new();
    for (before, open, middle, close, after) in NESTED {
        // Some take two levels, some three; the last is too deep.
        for depth in [DEPTH_LIMIT / 3 - 5, DEPTH_LIMIT / 2 - 5, DEPTH_LIMIT - 10, 4 * DEPTH_LIMIT] {
            let (open, close) = (open.repeat(depth as usize), close.repeat(depth as usize));
            let text = format!("{before}{open}{middle}{close}{after}\n");
            texts.push((format!("{depth} times in `{before}{middle}{after}`"), text));
        }
    }
    for (before, part, after) in LONG {
        for count in [CHAIN_LIMIT / 10, 2 * CHAIN_LIMIT] {
            let text = format!("{before}{}{after}\n", part.repeat(count as usize));
            texts.push((format!("{count} times `{part}`"), text));
        }
    }
    texts
}
