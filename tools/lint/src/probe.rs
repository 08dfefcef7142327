//! Shows for the compiler in use that its MIR text is read rightly: a small program is compiled, and what is found in it must be what is
//! in it. A compiler whose text has changed gives an error, never a lint that finds nothing.

use std::io::Write;
use std::process::{Command, Stdio};

use crate::mir::{self, Body, Role};
use crate::signature::last_segment;

/// What makes the compiler print MIR, and nothing else, as this crate reads it.
pub const FLAGS: [&str; 4] =
    ["-Zunpretty=mir", "-Zmir-include-spans=on", "-Ztrim-diagnostic-paths=no", "-Zmir-opt-level=0"];

/// The compilers with which this version was tested.
pub const TESTED: &str = "rustc 1.95, 1.96 and a nightly of 1.97";

const PROGRAM: &str = "\
pub struct Cx;
pub fn leaf_async(_cx: &mut Cx) {}
pub trait Read { fn read_async(&self, cx: &mut Cx); }
impl Read for u8 { fn read_async(&self, cx: &mut Cx) { leaf_async(cx) } }
pub fn outside(cx: &mut Cx, file: &dyn Read) {
    file.read_async(cx);
    let closure = |cx: &mut Cx| leaf_async(cx);
    closure(cx)
}
pub static TABLE: [fn(&mut Cx); 1] = [leaf_async];
pub fn pointer(cx: &mut Cx) { let call = TABLE[0]; call(cx) }
";

const EXPECTED: &str = "\
leaf_async(&mut Cx) at 2:32
read_async(&u8, &mut Cx) self at 4:53
 calls leaf_async at 4:56
outside(&mut Cx, &dyn Read) at 5:45
 calls read_async at 6:10
 calls call at 8:5
{closure#0}(&{closure@<anon>:7:19: 7:32}, &mut Cx) at 7:32
 calls leaf_async at 7:33
TABLE() at 10:19
 uses leaf_async at 10:39
pointer(&mut Cx) at 11:28
 calls a pointer at 11:52
";

/// Checks the compiler.
///
/// # Errors
/// A text for the user: it cannot be run, or its MIR text is not known.
pub fn check(rustc: &std::ffi::OsStr) -> Result<(), String> {
    let cannot_run = |error: std::io::Error| format!("cannot run {}: {error}", rustc.display());
    let mut child = Command::new(rustc)
        .args(["--crate-name", "probe", "--crate-type", "lib", "--edition", "2021", "--cap-lints", "allow", "-"])
        .args(FLAGS)
        .env("RUSTC_BOOTSTRAP", "1")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .map_err(cannot_run)?;
    if let Some(mut stdin) = child.stdin.take() {
        // A compiler that refuses the flags does not read the program; its message follows.
        let _ = stdin.write_all(PROGRAM.as_bytes());
    }
    let output = child.wait_with_output().map_err(cannot_run)?;
    let found = if output.status.success() {
        mir::read(&output.stdout[..]).map(|mir| describe(&mir.bodies))
    } else {
        Ok(String::new())
    };
    let found = found.map_err(cannot_run)?;
    if is_expected(&found) {
        return Ok(());
    }
    let version = Command::new(rustc).arg("--version").output().map_err(cannot_run)?;
    let version = String::from_utf8_lossy(&version.stdout).trim().to_owned();
    let said = String::from_utf8_lossy(&output.stderr);
    Err(unknown_compiler(&version, &found, said.trim()))
}

/// The order of the bodies is the compiler's own affair.
fn is_expected(found: &str) -> bool {
    let sorted = |text: &str| {
        let mut bodies: Vec<String> = text.replace("\n ", "\t").lines().map(str::to_owned).collect();
        bodies.sort();
        bodies
    };
    sorted(found) == sorted(EXPECTED)
}

fn unknown_compiler(version: &str, found: &str, said: &str) -> String {
    let mut text = format!(
        "the compiler's MIR text is not understood: {version} is not among the compilers with which this version of ebb-lint was tested \
         ({TESTED}). Nothing was checked."
    );
    if !said.is_empty() {
        text += &format!("\nThe compiler said:\n{said}");
    } else {
        text += &format!("\nIn the test program it was to find\n{EXPECTED}and found\n{found}");
    }
    text
}

fn describe(bodies: &[Body]) -> String {
    let mut text = String::new();
    for body in bodies {
        let place = body.at.as_ref().map_or((0, 0), |at| at.start);
        let name = last_segment(&body.path);
        let has_self = if body.has_self { " self" } else { "" };
        text += &format!("{name}({}){has_self} at {}:{}\n", body.params.join(", "), place.0, place.1);
        for used in &body.uses {
            let role = match used.role {
                Role::Called => "calls",
                Role::Value => "uses",
            };
            let name = used.signature.path.as_deref().map_or("a pointer", last_segment);
            text += &format!(" {role} {name} at {}:{}\n", used.span.start.0, used.span.start.1);
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_of_another_form_is_not_what_is_expected() {
        assert!(is_expected(EXPECTED));
        assert!(!is_expected(""));
        assert!(!is_expected(&EXPECTED.replace(" calls call at 8:5\n", "")));
    }

    #[test]
    fn the_message_names_the_compiler_and_what_it_said() {
        let text = unknown_compiler("rustc 9.0.0", "", "error: unknown unstable option");
        assert!(text.contains("rustc 9.0.0") && text.contains("unknown unstable option") && text.contains(TESTED));
    }

    #[test]
    fn a_compiler_that_cannot_be_run_is_an_error() {
        let error = check(std::ffi::OsStr::new("/no/such/rustc")).unwrap_err();
        assert!(error.contains("/no/such/rustc"), "{error}");
    }

    #[test]
    fn a_program_that_is_no_compiler_is_an_error() {
        assert!(check(std::ffi::OsStr::new("true")).unwrap_err().contains("not understood"));
        assert!(check(std::ffi::OsStr::new("false")).unwrap_err().contains("not understood"));
    }
}
