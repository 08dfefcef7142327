//! The preprocessor beside `gcc -E`: the same tokens, in the same lines. `EBB_CORPUS=DIR` tries the files of a directory, too.

#[path = "shared/random.rs"]
mod random;

use ebb_cyclone::lex::lex;
use ebb_cyclone::preprocess::{MacroOption, Settings, preprocess};
use ebb_cyclone::source::{Source, text_of};
use random::Random;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

const OPTIONS: [&str; 4] = ["-D__CYCLONE__", "-U__GNUC__", "-Ulinux", "-Uunix"];

fn cyclone() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..").canonicalize().expect("the source tree is there")
}

fn gcc(arguments: &[&str], file: &Path) -> Option<String> {
    let directory = file.parent().expect("it is in a directory");
    let mut command = Command::new("gcc");
    command.args(["-E", "-x", "c", "-w", "-nostdinc"]).args(arguments).arg("-I").arg(cyclone().join("lib")).arg(file);
    let output = command.current_dir(directory).stdin(Stdio::null()).output().expect("gcc runs");
    output.status.success().then(|| text_of(output.stdout))
}

fn settings() -> Settings {
    let macros = gcc(&["-dM"], Path::new("/dev/null")).expect("gcc knows its macros");
    let option = |text: &str| match text.split_at(2) {
        ("-D", name) => MacroOption::Define(name.to_owned()),
        (_, name) => MacroOption::Undefine(name.to_owned()),
    };
    Settings {
        directories: vec![cyclone().join("lib")],
        macros: OPTIONS.map(option).to_vec(),
        predefined: macros,
        ..Settings::default()
    }
}

/// `file:line token` of each token; not the directory of files.
fn tokens(text: &str) -> Vec<String> {
    let mut source = Source::new("none", text.to_owned());
    let tokens = lex(&mut source, &mut Vec::new());
    let shown = tokens.iter().filter(|token| token.span.start < token.span.end).map(|token| {
        let place = source.place(token.span.start);
        format!("{}:{} {}", place.file, place.line, source.slice(token.span))
    });
    shown.collect()
}

/// What is different, if anything is.
fn difference(ours: &str, theirs: &str) -> Option<String> {
    let (ours, theirs) = (tokens(ours), tokens(theirs));
    let at = (0..ours.len().max(theirs.len())).find(|&at| ours.get(at) != theirs.get(at))?;
    let part = |all: &[String]| all[at.saturating_sub(3).min(all.len())..(at + 4).min(all.len())].join("\n    ");
    Some(format!("token {at}: ours\n    {}\n  gcc's\n    {}", part(&ours), part(&theirs)))
}

/// Compares a file; what is different, or that it could not be compared.
fn compare(file: &Path, settings: &Settings) -> Result<(), String> {
    let text = text_of(std::fs::read(file).expect("it can be read"));
    let theirs = gcc(&OPTIONS, file);
    let ours = preprocess(file, &text, settings);
    match (ours, theirs) {
        (Ok(ours), Some(theirs)) => difference(&ours.text, &theirs).map_or(Ok(()), Err),
        (Err(_), None) => Ok(()),
        (Ok(_), None) => Err("gcc refuses it".to_owned()),
        (Err(failure), Some(_)) => Err(format!("we refuse it: {failure}")),
    }
}

fn sources(directory: &Path, found: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(directory).into_iter().flatten().flatten() {
        let path = entry.path();
        let is_source =
            path.extension().is_some_and(|extension| ["cyc", "h", "c"].iter().any(|known| extension == *known));
        match entry.file_type() {
            Ok(kind) if kind.is_dir() => sources(&path, found),
            Ok(kind) if kind.is_file() && is_source => found.push(path),
            _ => {}
        }
    }
    found.sort();
}

fn compare_all(directory: &Path, least: usize) {
    let settings = settings();
    let mut files = Vec::new();
    sources(directory, &mut files);
    let wrong: Vec<String> = files
        .iter()
        .filter_map(|file| Some(format!("{}: {}", file.display(), compare(file, &settings).err()?)))
        .collect();
    assert!(wrong.is_empty(), "{} of {} files:\n{}", wrong.len(), files.len(), wrong.join("\n"));
    assert!(files.len() >= least, "{} files", files.len());
}

#[test]
fn headers_and_programs_of_ours_become_what_gcc_makes_of_them() {
    for (part, least) in [("lib", 80), ("tests/programs", 400), ("bench/programs", 20), ("runtime", 10)] {
        compare_all(&cyclone().join(part), least);
    }
}

#[test]
fn a_directory_that_is_named_becomes_what_gcc_makes_of_it() {
    if let Some(directory) = std::env::var_os("EBB_CORPUS") {
        compare_all(Path::new(&directory), 1);
    }
}

/// Texts of definitions and uses, which stand after each other in one file.
const FORMS: &str = r#"
#define ONE 1
#define PAIR(a, b) a b
#define SELF SELF + OTHER
#define OTHER SELF
SELF; OTHER;
#define CALL(f) f(ONE) f
CALL(CALL)(ONE) CALL(PAIR(CALL, 2)) CALL
(ONE) CALL +
#define CAT(a, b) a ## b
CAT(ON, E) CAT(, ONE) CAT(ONE, ) CAT(,) CAT(1, e) CAT(-, >) CAT(<<, =) CAT(L, "s") CAT(x y, z w)
#define CAT3(a, b, c) a ## b ## c
CAT3(1, 2, 3) CAT3(, 2, 3) CAT3(1, , 3) CAT3(1, 2, ) CAT3(, , 3) CAT3(, , )
#define TEXT(a) #a
#define TEXT_OF(a) TEXT(a)
TEXT(ONE  +  "q\"\n" 'c\'' /* gone */ \n) TEXT_OF(ONE) TEXT() TEXT( "\\" ) TEXT(a
#define ALL(...) { __VA_ARGS__ }
#undef TEXT
#define TEXT(a, b) #b #a
) ALL() ALL(,) ALL((a, b), ONE)
#define LOG(form, ...) log(form, ## __VA_ARGS__)
#define LOG_OF(form, rest...) log(form, ## rest) TEXT(rest, form)
LOG("a") LOG("a",) LOG("a", ONE, b) LOG_OF("a") LOG_OF("a", ONE)
#define ONLY(...) f(0, ## __VA_ARGS__)
ONLY() ONLY(x) ONLY( , )
#define NOTHING
-NOTHING- +NOTHING+ ONE NOTHING(x) PAIR(NOTHING, NOTHING) <NOTHING< /NOTHING/ x
#define NEXT() OTHER_NEXT
#define OTHER_NEXT() NEXT
NEXT()()()()() NEXT() () NEXT
#define OPEN (
#define CLOSE )
PAIR OPEN 1, 2 CLOSE ALL(PAIR OPEN 1, 2 CLOSE) ALL(PAIR, OPEN, CLOSE)
#define LEAST(a, b) ((a) < (b) ? (a) : (b))
LEAST(LEAST(1, ONE), LEAST(SELF, LEAST(x, y)))
#define LINES(a) a __LINE__
LINES(__LINE__
  __LINE__) LINES(LINES(
    1)) __LINE__
int a; /* one
 two */ int b; __LINE__ // three \
 four
a \
 b ONE \
c "d \
e"; f\
g \
 __LINE__
#define FAT @fat
#define VARIABLE `a
int *FAT p; VARIABLE x; \U q; `H r; $(ONE, y) x$y 1.x 1e+ONE .5ONE 0x1p-3 ...
L"a" u8"b" L 'c' 'unended ONE
__COUNTER__ __COUNTER__ __INCLUDE_LEVEL__
#if defined(ONE) && !defined NONE && (1 ? 2 : 3) == 2 && -1 > 0u && 'a' == 97 && __has_include(<core.h>) && !__has_include("no")
yes
#elif 1 / 0
#else
no
#endif
#define ASKS defined(ONE) && defined(ASKS)
#if ASKS
yes
#endif
#if 0
'unended " /*
#endif
#if 0
/*
#endif */
#ifdef ONE
#elif
#else x
#endif
#elif PAIR(1, +1) == 2
yes
#endif
#ifndef NONE
#if (2 || 1 / 0) && (0 ? 1 / 0 : 1) && 0x7fffffffffffffff > 0 && -1 >> 1 == -1 && 1 << 63 < 0 && ~0u == 0xffffffffffffffff
yes
#endif
#endif
#pragma other ONE
#pragma push_macro("ONE")
#undef ONE
#define ONE changed
ONE
#pragma pop_macro("ONE")
ONE
#line 100 "other.c"
__LINE__ __FILE__
# 200 "third.c" 3
__LINE__ __FILE__ PAIR(
#ifdef ONE
1,
#else
2,
#endif
__LINE__
)
#define NOTED _Pragma("note \"x\"") after
1 NOTED 2
#include "core.h"
#define HEADER <string.h>
#include HEADER
#include_next <stdio.h>
#
#ident "x"
end"#;

#[test]
fn each_form_becomes_what_gcc_makes_of_it() {
    let directory = tempfile::tempdir().expect("a directory for the test");
    let file = directory.path().join("forms.c");
    std::fs::write(&file, FORMS).expect("it can be written");
    assert!(gcc(&OPTIONS, &file).is_some(), "gcc accepts it");
    compare(&file, &settings()).unwrap_or_else(|what| panic!("{what}"));
}

#[test]
fn what_is_wrong_is_refused_with_its_line() {
    let settings = settings();
    for (text, line, message) in [
        ("\n#include \"none.h\"\n", 2, "none.h: No such file or directory"),
        ("#if 1\n#else\n", 1, "a condition does not end"),
        ("#endif\n", 1, "`#endif` without `#if`"),
        ("#if 1\n#else\n#else\n#endif", 3, "`#else` after `#else`"),
        ("#if (1\n#endif", 1, "`)` is missing"),
        ("#if 1 1\n#endif", 1, "an operator is missing"),
        ("#if 1 / 0\n#endif", 1, "division by zero"),
        ("#if\n#endif", 1, "without a condition"),
        ("#define\n", 1, "the name of a macro is missing"),
        ("#define defined\n", 1, "cannot be the name of a macro"),
        ("#define f(a, a) a\n", 1, "the parameters of a macro are names"),
        ("#define f(a) #b\n", 1, "`#` stands before a parameter"),
        ("#define f(a) ## a\n", 1, "`##` stands between two tokens"),
        ("#define f(a) a\n\nf(1, 2)", 3, "the macro `f` takes one argument, not 2"),
        ("#define f(a) a\nf(1\n\n", 2, "the arguments of the macro `f` do not end"),
        ("#define f(a) + ## a\nf(x)", 2, "`+` and `x` are not one token"),
        ("/* a\n", 1, "a comment does not end"),
        ("#error not \"this\" /* way */\n", 1, "#error not \"this\""),
        ("#nothing\n", 1, "there is no directive `#nothing`"),
        ("#line x\n", 1, "after `#line` stands a number"),
        ("#line 7\n#line \n", 7, "after `#line` stands a number"),
    ] {
        let failure = preprocess(Path::new("a.c"), text, &settings).expect_err(text);
        assert!(failure.line == line && failure.message.contains(message), "{failure} for {text}");
    }
}

#[test]
fn what_grows_without_end_is_refused() {
    // With a stack as `cyc` has it: files and arguments are nested some hundred levels deep before they are refused.
    let refused = std::thread::Builder::new().stack_size(64 << 20).spawn(refuse_what_grows).expect("a thread");
    refused.join().expect("all of it is refused");
}

fn refuse_what_grows() {
    let settings = Settings::default();
    let double: String = (1..60).map(|at| format!("#define A{at} A{} A{}\n", at - 1, at - 1)).collect();
    let nested = format!("#define f(a) a\n{}x{}", "f(".repeat(100_000), ")".repeat(100_000));
    let deep = format!("#if {}1{}\n#endif", "(".repeat(100_000), ")".repeat(100_000));
    let signs = format!("#if {}1\n#endif", "- ".repeat(100_000));
    for (text, message) in [
        (format!("#define A0 x\n{double}A59"), "macros expand to more than"),
        (nested, "macros"),
        (deep, "nested too deeply"),
    ] {
        let failure = preprocess(Path::new("a.c"), &text, &settings).expect_err("it is refused");
        assert!(failure.message.contains(message), "{failure}");
    }
    assert!(preprocess(Path::new("a.c"), &signs, &settings).is_ok());
    let directory = tempfile::tempdir().expect("a directory for the test");
    let file = directory.path().join("self.h");
    std::fs::write(&file, "#include \"self.h\"\n").expect("it can be written");
    let failure = preprocess(&file, "#include \"self.h\"\n", &settings).expect_err("it is refused");
    assert!(failure.message.contains("files are nested"), "{failure}");
}

/// A file of definitions and uses of a few names.
fn random_text(random: &mut Random) -> String {
    const NAMES: [&str; 6] = ["A", "B", "F", "G", "H", "x"];
    const PIECES: [&str; 26] = [
        "A", "B", "F", "G", "H", "x", "y", "z", "(", ")", "(", ")", ",", "F(", "G(", "H(x)", " ", " ", "+", "-", "1",
        "\"s\"", "'c'", "__LINE__", "\n", "/**/",
    ];
    let mut text = String::new();
    for _ in 0..random.below(8) + 2 {
        let name = random.one_of(&NAMES);
        let params = ["", "", "(x)", "(x)", "(x, y)", "(x, ...)", "()"][random.below(7)];
        text.push_str(&format!("#define {name}{params} "));
        for _ in 0..random.below(7) {
            let piece = random.one_of(&PIECES).trim_matches('\n');
            match random.below(8) {
                0 if params.contains('x') => text.push_str("#x "),
                1 if params.contains('x') => text.push_str(" x ## y "),
                2 if params.contains("...") => text.push_str(", ## __VA_ARGS__ "),
                _ => text.push_str(&format!("{piece}{}", ["", " "][random.below(2)])),
            }
        }
        text.push_str(["\n", " \\\n y\n", "/* c\n */\n"][random.below(3)]);
        if random.below(4) == 0 {
            text.push_str(&format!("#if{}def {}\n", ["", "n"][random.below(2)], random.one_of(&NAMES)));
            (0..random.below(5)).for_each(|_| text.push_str(PIECES[random.below(PIECES.len())]));
            text.push_str("\n#else\ny\n#endif\n");
        }
        for _ in 0..random.below(14) {
            text.push_str(PIECES[random.below(PIECES.len())]);
        }
        text.push_str("\n;\n");
    }
    text
}

#[test]
fn random_macros_become_what_gcc_makes_of_them() {
    let count = std::env::var("EBB_FUZZ").ok().and_then(|count| count.parse().ok()).unwrap_or(60);
    let settings = settings();
    let directory = tempfile::tempdir().expect("a directory for the test");
    let file = directory.path().join("random.c");
    let mut accepted = 0;
    for seed in 0..count {
        let text = random_text(&mut Random::new(seed));
        std::fs::write(&file, &text).expect("it can be written");
        if let Err(what) = compare(&file, &settings) {
            panic!("seed {seed}: {what}\n{text}");
        }
        accepted += u64::from(preprocess(&file, &text, &settings).is_ok());
    }
    assert!(accepted * 4 > count, "{accepted} of {count} are accepted");
}

#[test]
fn damaged_text_does_not_make_it_fail() {
    let count = std::env::var("EBB_FUZZ").ok().and_then(|count| count.parse().ok()).unwrap_or(3_000);
    let settings = Settings { directories: vec![cyclone().join("lib")], ..Settings::default() };
    for seed in 0..count {
        let mut random = Random::new(seed);
        let mut text = FORMS.as_bytes().to_vec();
        for _ in 0..random.below(20) + 1 {
            let at = random.below(text.len());
            match random.below(4) {
                0 => text[at] = random.below(256) as u8,
                1 => text.insert(at, b"#()\\\n\"'/*,\xff"[random.below(11)]),
                2 => drop(text.drain(at..(at + random.below(30)).min(text.len()))),
                _ => {
                    let from = random.below(text.len());
                    let piece = text[from..(from + random.below(60)).min(text.len())].to_vec();
                    text.splice(at..at, piece);
                }
            }
        }
        let made = preprocess(Path::new("a.c"), &text_of(text), &settings);
        if let Ok(made) = made {
            tokens(&made.text);
        }
    }
}
