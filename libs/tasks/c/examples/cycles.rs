//! Compiles `cycles_in_c.c` as a user of the library would (`gcc -O2`, or what the variable `CC` names) and runs it:
//! `cargo run --release -p ebb-ac --example cycles`. One line for each figure: "name: cycles (goal)".

use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};

/// The library that cargo has made beside this example.
fn archive() -> Option<PathBuf> {
    let examples = std::env::current_exe().ok()?;
    let folder = examples.parent()?.parent()?.join("deps");
    let files = std::fs::read_dir(folder).ok()?.filter_map(|entry| {
        let entry = entry.ok()?;
        let name = entry.file_name().to_string_lossy().into_owned();
        let is_ours = name.starts_with("libac-") && name.ends_with(".a");
        is_ours.then_some((entry.metadata().ok()?.modified().ok()?, entry.path()))
    });
    files.max().map(|(_, path)| path)
}

fn main() -> ExitCode {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    let Some(archive) = archive() else {
        eprintln!("cycles: run this by cargo, which makes the library");
        return ExitCode::from(2);
    };
    let compiler = std::env::var("CC").unwrap_or_else(|_| "gcc".into());
    let program = std::env::temp_dir().join(format!("ac-cycles-{}", std::process::id()));
    let compiled = Command::new(&compiler)
        .args(["-std=gnu11", "-O2", "-I"])
        .arg(here.join("include"))
        .arg(here.join("examples/cycles_in_c.c"))
        .arg("-o")
        .arg(&program)
        .arg(archive)
        .args(["-lpthread", "-ldl"])
        .status();
    let ran = match compiled {
        Ok(status) if status.success() => Command::new(&program).status(),
        Ok(_) => return ExitCode::FAILURE,
        Err(error) => {
            eprintln!("cycles: {compiler}: {error}");
            return ExitCode::from(2);
        }
    };
    let _ = std::fs::remove_file(program);
    match ran {
        Ok(status) if status.success() => ExitCode::SUCCESS,
        _ => ExitCode::FAILURE,
    }
}
