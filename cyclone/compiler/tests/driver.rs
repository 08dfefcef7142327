//! The command as a user meets it: help, mistakes, and what build systems need.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

fn cyc(directory: &Path, arguments: &str) -> Output {
    Command::new(env!("CARGO_BIN_EXE_cyc"))
        .args(arguments.split_whitespace())
        .current_dir(directory)
        .output()
        .expect("the compiler starts")
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// A directory with these files.
fn directory(files: &[(&str, &str)]) -> tempfile::TempDir {
    let directory = tempfile::tempdir().expect("a directory for the test");
    for (name, content) in files {
        std::fs::write(directory.path().join(name), content).expect("a file for the test");
    }
    directory
}

#[test]
fn help_is_given_wherever_it_is_asked_for() {
    let directory = directory(&[]);
    for arguments in ["help", "--help", "build --help", "check -h", "new --help"] {
        let output = cyc(directory.path(), arguments);
        assert!(output.status.success(), "{arguments}");
        assert!(text(&output.stdout).contains("cyc build"), "{arguments}");
    }
    assert!(std::fs::read_dir(directory.path()).unwrap().next().is_none(), "help begins no project");
}

#[test]
fn a_wrong_command_line_says_what_to_do_and_exits_with_2() {
    let directory = directory(&[]);
    for (arguments, advice) in [
        ("hello.cyc", "cyc build hello.cyc"),
        ("bild hello.cyc", "cyc help"),
        ("build", "no files"),
        ("build a.cyc --frobnicate", "--frobnicate"),
        ("explain nonsense", "E0003"),
    ] {
        let output = cyc(directory.path(), arguments);
        assert_eq!(output.status.code(), Some(2), "{arguments}");
        assert!(text(&output.stderr).contains(advice), "{arguments}: {}", text(&output.stderr));
    }
}

#[test]
fn a_file_that_is_not_there_is_named_in_one_line() {
    let directory = directory(&[]);
    let output = cyc(directory.path(), "build absent.cyc");
    assert_eq!(output.status.code(), Some(1));
    let message = text(&output.stderr);
    assert!(message.starts_with("cyc: absent.cyc: ") && message.lines().count() == 1, "{message}");
}

#[test]
fn dependencies_are_written_for_make_while_a_file_is_compiled() {
    let files = [("own.h", "int seven(void);\n"), ("a.cyc", "#include \"own.h\"\nint seven(void) { return 7; }\n")];
    let directory = directory(&files);
    for (arguments, rule) in [("-MMD", "a.d"), ("-MD -MP -MF rules", "rules")] {
        let output = cyc(directory.path(), &format!("build -c {arguments} a.cyc -o a.o"));
        assert!(output.status.success(), "{}", text(&output.stderr));
        assert!(directory.path().join("a.o").exists());
        let rule = std::fs::read_to_string(directory.path().join(rule)).expect("the rule was written");
        assert!(rule.starts_with("a.o:") && rule.contains("own.h"), "{rule}");
    }
}

#[test]
fn the_stack_trace_of_an_uncaught_exception_has_names() {
    let program =
        "int reckless(int ?p) { return p[3]; }\nint main() { int ?p = new {for i < 3: i}; return reckless(p); }\n";
    let directory = directory(&[("a.cyc", program)]);
    let output = cyc(directory.path(), "run --no-gc -O0 a.cyc");
    let message = text(&output.stderr);
    assert!(message.contains("Array_bounds thrown from around a.cyc:1"), "{message}");
    // A statically linked system has no traces at all.
    assert!(cfg!(target_env = "musl") || message.contains("reckless"), "{message}");
}

/// A copy of the example of C beside Cyclone.
fn example() -> tempfile::TempDir {
    let example = Path::new(env!("CARGO_MANIFEST_DIR")).join("../examples/mixed-c");
    let directory = tempfile::tempdir().expect("a directory for the test");
    for entry in std::fs::read_dir(example).expect("the example") {
        let path = entry.expect("a file of the example").path();
        if path.is_file() {
            std::fs::copy(&path, directory.path().join(path.file_name().unwrap())).expect("a copy");
        }
    }
    directory
}

fn succeeds(command: &mut Command) {
    let output = command.output().expect("the command starts");
    assert!(output.status.success(), "{command:?}: {}{}", text(&output.stdout), text(&output.stderr));
}

/// Gives the example's program a text, and compares what it says.
fn reads_settings(program: PathBuf) {
    let mut child = Command::new(program)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the program starts");
    child.stdin.take().unwrap().write_all(b"colour = blue\nsize=12\nno sign").expect("it reads");
    let output = child.wait_with_output().expect("it ends");
    assert_eq!(text(&output.stdout), "colour is \"blue\"\nsize is \"12\"\n");
    assert_eq!(text(&output.stderr), "line 3 is not `name = value`\n");
}

#[test]
fn make_builds_the_example_of_c_beside_cyclone() {
    let directory = example();
    let compiler = format!("CYC={}", env!("CARGO_BIN_EXE_cyc"));
    succeeds(Command::new("make").arg(&compiler).current_dir(directory.path()));
    reads_settings(directory.path().join("settings"));
    let question = Command::new("make").args(["-q", &compiler]).current_dir(directory.path()).status().expect("make");
    assert!(question.success(), "nothing is left to be made");
}

#[test]
fn cmake_builds_it_too() {
    if Command::new("cmake").arg("--version").output().is_err() {
        println!("this machine has no cmake, skipped");
        return;
    }
    let directory = example();
    let compiler = format!("-DCYC={}", env!("CARGO_BIN_EXE_cyc"));
    succeeds(Command::new("cmake").args(["-B", "build", &compiler]).current_dir(directory.path()));
    succeeds(Command::new("cmake").args(["--build", "build"]).current_dir(directory.path()));
    reads_settings(directory.path().join("build/settings"));
}

#[test]
fn files_that_see_more_and_less_of_a_structure_agree_on_its_elements() {
    let header = "struct Row<`a>;\nextern struct Row<`a> @make(`a ?`H);\nextern `a at(struct Row<`a> @, int);\nextern void each(void (@)(`a), struct Row<`a> @);\n";
    let row = "#include \"row.h\"\nstruct Row<`a> { `a ?elements; };\nstruct Row<`a> @make(`a::B ?`H elements) { return new Row{elements}; }\n`a at(struct Row<`a> @row, int index) { return row->elements[index]; }\nvoid each(void (@f)(`a), struct Row<`a> @row) {\n  for (int i = 0; i < numelts(row->elements); i++) f(row->elements[i]);\n}\n";
    let user = "#include \"row.h\"\n#include <stdio.h>\nvoid show(int x) { printf(\"%d \", x); }\nvoid show_long(long x) { printf(\"%ld \", x); }\nint main() {\n  let row = make(new {4, -5, 6});\n  each(show, row);\n  each(show_long, make(new {7L, 8L}));\n  printf(\"%d\\n\", at(row, 1));\n  return 0;\n}\n";
    let directory = directory(&[("row.h", header), ("row.cyc", row), ("user.cyc", user)]);
    let output = cyc(directory.path(), "run user.cyc row.cyc");
    assert_eq!(text(&output.stdout), "4 -5 6 7 8 -5\n", "{}", text(&output.stderr));
}

#[test]
fn a_new_project_builds_and_runs() {
    let directory = directory(&[]);
    assert!(cyc(directory.path(), "new hello").status.success());
    let project = directory.path().join("hello");
    succeeds(Command::new("make").arg(format!("CYC={}", env!("CARGO_BIN_EXE_cyc"))).current_dir(&project));
    let output = Command::new(project.join("hello")).arg("you").output().expect("the program starts");
    assert_eq!(text(&output.stdout), "Hello, you!\n");
    assert_eq!(cyc(directory.path(), "new hello").status.code(), Some(1), "what is there is not overwritten");
}

#[test]
fn a_message_shows_the_line_as_it_was_written_and_where_a_region_ends() {
    let program = "#include <core.h>\n#define KEEP(p, x) p = x\nvoid f(void) {\n  int *out = NULL;\n  /* a */ { region r;\n    KEEP(out, rnew(r) 3);  // kept\n  }\n}\n";
    let directory = directory(&[("a.cyc", program)]);
    let message = text(&cyc(directory.path(), "check a.cyc").stderr);
    for expected in [
        "error[E0402]",
        "a.cyc:6:15",
        "    KEEP(out, rnew(r) 3);  // kept",
        "/* a */ { region r;",
        "begins here",
        "it ends here",
    ] {
        assert!(message.contains(expected), "{expected} is missing in\n{message}");
    }
    let json = text(&cyc(directory.path(), "check --json a.cyc").stderr);
    let json: serde_json::Value = serde_json::from_str(json.lines().next().expect("a message")).expect("JSON");
    assert_eq!((&json["line"], &json["column"], &json["end_column"]), (&6.into(), &15.into(), &24.into()), "{json}");
    assert_eq!(json["related"][1]["line"], 7);
}

#[test]
fn a_misspelt_name_is_answered_with_the_one_that_was_meant() {
    let program = "#include <list.h>\n#include <string.h>\nstruct P { int first; int second; };\nint f(List::list_t<int> l, struct P p) {\n  strlne(\"\");\n  length(l);\n  return p.frist;\n}\nint g(int *p) { return p; }\nint h(int *p) { return (int)p; }\n";
    let directory = directory(&[("a.cyc", program)]);
    let message = text(&cyc(directory.path(), "check a.cyc").stderr);
    for expected in ["`strlen` is declared", "`List::length` is", "a member `first`", "becomes a number here"] {
        assert!(message.contains(expected), "{expected} is missing in\n{message}");
    }
    assert_eq!(message.matches("becomes a number here").count(), 1, "a cast says what is meant\n{message}");
}

/// The array lies below the thread's stack: without a touch of each page the frame's lowest bytes would be in it.
#[test]
fn a_large_frame_of_a_thread_ends_the_program_instead_of_reaching_past_the_guard() {
    let program = "#include <core.h>\n#include <pthread.h>\n\
        struct A { int n; bool go; };\n\
        int deep(struct A @`H s) { char large[20000000]; for (int i = 0; i < 2000; i++) large[i] = 'X'; return large[s->n]; }\n\
        int run(struct A @`H s) { while (!s->go) pthread_yield(); return deep(s); }\n\
        int main() {\n\
          struct A @`H s = new A{5, false};\n\
          pthread_t thread; pthread_create(&thread, NULL, run, s);\n\
          char ?below = new {for i < 60000000 : 'a'};\n\
          s->go = true;\n\
          pthread_join(thread, NULL);\n\
          return 0;\n\
        }\n";
    let directory = directory(&[("deep.cyc", program)]);
    for heap in ["", "--no-gc"] {
        let output = cyc(directory.path(), &format!("run -fthreads {heap} deep.cyc"));
        let sigsegv = 11;
        assert_eq!(output.status.code(), Some(128 + sigsegv), "{heap}: {}", text(&output.stderr));
    }
}

/// musl's gcc looks for headers and libraries in musl's directories only, where no collector is.
#[test]
fn a_missing_collector_is_named_with_the_option_that_needs_none() {
    if Command::new("musl-gcc").arg("--version").output().is_err() {
        eprintln!("skipped: there is no musl-gcc");
        return;
    }
    let directory = directory(&[("hello.cyc", "int main() { return 0; }\n")]);
    let output = cyc(directory.path(), "build --cc musl-gcc hello.cyc");
    assert_eq!(output.status.code(), Some(1));
    let last = text(&output.stderr).lines().last().unwrap_or_default().to_owned();
    assert!(last.contains("libgc") && last.contains("--no-gc"), "{last}");
}
