//! The programs of the tutorial compile and run, and those marked *rejected* are rejected at the line that says so.

use std::path::{Path, PathBuf};
use std::process::Command;

struct Sample {
    text: String,
    rejected: bool,
    line: usize,
}

fn samples(book: &str) -> Vec<Sample> {
    let mut samples = Vec::new();
    let mut current: Option<Sample> = None;
    for (index, line) in book.lines().enumerate() {
        match (&mut current, line) {
            (Some(_), "```") => samples.extend(current.take()),
            (Some(sample), line) => {
                sample.text.push_str(line);
                sample.text.push('\n');
            }
            (None, "```cyclone") | (None, "```cyclone rejected") => {
                current = Some(Sample { text: String::new(), rejected: line.ends_with("rejected"), line: index + 1 });
            }
            _ => {}
        }
    }
    samples
}

fn cyc() -> Command {
    Command::new(env!("CARGO_BIN_EXE_cyc"))
}

#[test]
fn the_tutorials_programs_do_what_the_tutorial_says() {
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/src/cyclone-tutorial.md");
    let samples = samples(&std::fs::read_to_string(page).expect("the tutorial is there"));
    assert!(samples.len() >= 15, "the tutorial has {} programs", samples.len());
    let directory = tempfile::tempdir().expect("there is room for a directory");
    let mut wrong = Vec::new();
    for sample in &samples {
        let file = directory.path().join(format!("line-{}.cyc", sample.line));
        std::fs::write(&file, &sample.text).expect("the program can be written");
        let verdict = if sample.rejected { rejected(&file, &sample.text) } else { runs(&file) };
        if let Err(message) = verdict {
            wrong.push(format!("line {} of the tutorial: {message}", sample.line));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

fn runs(file: &PathBuf) -> Result<(), String> {
    let output = cyc().arg("run").arg(file).output().expect("cyc starts");
    match output.status.success() && !output.stdout.is_empty() {
        true => Ok(()),
        false => Err(format!("{}\n{}", output.status, String::from_utf8_lossy(&output.stderr))),
    }
}

fn rejected(file: &PathBuf, text: &str) -> Result<(), String> {
    let marked =
        text.lines().position(|line| line.ends_with("// rejected")).expect("a rejected program says where") + 1;
    let output = cyc().args(["check", "--plain"]).arg(file).output().expect("cyc starts");
    let messages = String::from_utf8_lossy(&output.stderr);
    let expected = format!("{}:{marked}: error", file.display());
    match !output.status.success() && messages.lines().any(|line| line.starts_with(&expected)) {
        true => Ok(()),
        false => Err(format!("no error in line {marked}\n{messages}")),
    }
}
