//! `--explain-checks` leaves no check out: as many are explained of each kind as stand in the C.

use std::path::Path;
use std::process::Command;

/// Kinds of explanations, with what stands in C for each.
const KINDS: &[(&str, &[&str])] = &[
    ("bounds", &["_cyc_fat_at(", "_cyc_fat_at_if(", "_cyc_zero_at(", "_cyc_below(", "_cyc_fat_thin("]),
    ("null", &["_cyc_nonnull(", "_cyc_throw_null("]),
    ("terminator", &["_cyc_fat_keep(", "_cyc_zero_keep("]),
    ("tag", &["tag != "]),
    ("match", &[")) _cyc_throw_match()"]),
    ("size", &["_cyc_bytes("]),
];

/// Checks of all kinds, each in a place of its own.
const ALL_KINDS: &str = r#"
#include <core.h>
#include <stdlib.h>
@tagged union Number { int whole; double broken; };
struct Pair { int a, b; };
datatype Shape { Square(int); Circle(double); };
int ?elements;
int in_memory(int i) { return elements[i] + *elements; }
int fat(int ?p, int i) { return p[i] + *p + p[-1]; }
int first_round(int ?p, int n) { int s = 0; while (s < n) s += p[2] + 1; return s; }
int thin(int *p, int a[10], int i) { return *p + a[i]; }
int as_many(tag_t<`n> n, int *@notnull @numelts(valueof(`n)) p, unsigned i) { return *p + p[i]; }
int member(struct Pair *p, struct Pair ?q) { return p->a + q->b; }
int text(char *p, int i) { p[i] = 'a'; *p = 'b'; return p[i]; }
char *`H moved(char *`H p, int i) { p++; return p + i; }
void fat_text(char ?@zeroterm p, int i) { p[i] = 'c'; *p++ = 'd'; p[i]++; p[i] |= 1; p[0] = 0; }
int @`H not_null(int *`H p) { return (int @`H)p; }
int ?@notnull`H fat_not_null(int ?`H p) { return (int ?@notnull`H)p; }
int @{3}`H become_thin(int ?`H p) { return (int @{3}`H)p; }
int *{3}`H become_thin_or_null(int ?`H p) { return (int *{3}`H)p; }
int tag(union Number @n) { return n->whole; }
int matched(datatype Shape @s) { let &Square(side) = s; return side; }
int ?allocated(int n) { return malloc(n * sizeof(int)); }
int ?made(unsigned n) { return new {for i < n : 1}; }
"#;

#[track_caller]
fn cyc(arguments: &[&str], file: &Path) -> String {
    let output = Command::new(env!("CARGO_BIN_EXE_cyc")).args(arguments).arg(file).output().expect("cyc starts");
    assert!(output.status.success(), "{}: {}", file.display(), String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).expect("the output is text")
}

/// How many there are of each kind: in the C, explained.
#[track_caller]
fn counts(file: &Path) -> Vec<(&'static str, usize, usize)> {
    let c = cyc(&["emit-c", "-w"], file);
    let explained = cyc(&["check", "-w", "--explain-checks"], file);
    let count = |&(kind, forms): &(&'static str, &[&str])| {
        let in_c = forms.iter().map(|form| c.matches(form).count()).sum();
        let marked = format!(": {kind}: ");
        (kind, in_c, explained.lines().filter(|line| line.contains(&marked)).count())
    };
    KINDS.iter().map(count).collect()
}

#[track_caller]
fn all_are_explained(file: &Path) {
    let counts = counts(file);
    assert!(counts.iter().all(|(_, in_c, explained)| in_c == explained), "{}: {counts:?}", file.display());
}

#[test]
fn each_kind_of_check_is_explained() {
    let directory = tempfile::tempdir().expect("a directory for the program");
    let file = directory.path().join("kinds.cyc");
    std::fs::write(&file, ALL_KINDS).expect("the program is written");
    assert!(counts(&file).iter().all(|&(_, in_c, _)| in_c > 0), "{:?}", counts(&file));
    all_are_explained(&file);
}

#[test]
fn each_check_of_the_measured_programs_is_explained() {
    let programs = Path::new(env!("CARGO_MANIFEST_DIR")).join("../bench/programs");
    let mut met = 0;
    for entry in programs.read_dir().expect("the programs are there") {
        let path = entry.expect("a program").path();
        if path.extension().is_some_and(|extension| extension == "cyc") {
            all_are_explained(&path);
            met += 1;
        }
    }
    assert!(met > 10, "only {met} programs");
}
