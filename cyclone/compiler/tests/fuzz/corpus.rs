//! The programs that damage is done to: those of `cyclone/tests/programs` and the library's modules, as the preprocessor leaves them.

use super::random::Random;
use std::cell::OnceCell;
use std::path::{Path, PathBuf};
use std::process::Command;

/// A program: the headers that it includes, and what is its own, in words.
pub struct Program {
    pub headers: String,
    pub own: Vec<String>,
}

/// All programs, each preprocessed when it is first asked for.
pub struct Corpus(Vec<(PathBuf, OnceCell<Program>)>);

impl Corpus {
    pub fn find() -> Corpus {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../tests/programs");
        let features = std::fs::read_dir(folder).expect("the folder of programs is there");
        let features = features.map(|feature| feature.expect("it can be read").path());
        let library = Path::new(env!("CARGO_MANIFEST_DIR")).join("../lib");
        let mut files = Vec::new();
        for feature in features.chain([library]) {
            let Ok(programs) = std::fs::read_dir(feature) else { continue };
            let programs = programs.map(|entry| entry.expect("it can be read").path());
            files.extend(programs.filter(|path| path.extension().is_some_and(|extension| extension == "cyc")));
        }
        files.sort();
        Corpus(files.into_iter().map(|file| (file, OnceCell::new())).collect())
    }

    pub fn any(&self, random: &mut Random) -> &Program {
        let (file, program) = random.one_of(&self.0);
        program.get_or_init(|| preprocess(file))
    }
}

fn preprocess(file: &Path) -> Program {
    let output = Command::new(env!("CARGO_BIN_EXE_cyc")).arg("preprocess").arg(file).output().expect("cyc runs");
    let text = String::from_utf8_lossy(&output.stdout);
    let marker = format!("\"{}\"", file.display());
    let (mut headers, mut own, mut in_own) = (String::new(), String::new(), false);
    for line in text.lines() {
        if line.starts_with("# ") {
            in_own = line.contains(&marker);
        } else if !line.trim().is_empty() {
            let part = if in_own { &mut own } else { &mut headers };
            *part += line;
            *part += "\n";
        }
    }
    Program { headers, own: super::damage::words(&own) }
}
