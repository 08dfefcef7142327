//! Where the headers, the library and the run time of Cyclone are.

use std::path::PathBuf;

/// The directory that holds `lib` and `runtime`: what `CYC_HOME` names; where an installed compiler has it
/// (`../share/cyclone` from the command); the source tree that the compiler was built from.
///
/// # Errors
/// Says where it was looked for.
pub fn directory() -> Result<PathBuf, String> {
    let mut candidates = Vec::new();
    if let Some(home) = std::env::var_os("CYC_HOME") {
        candidates.push(PathBuf::from(home));
    }
    if let Some(installed) = std::env::current_exe().ok().and_then(|path| Some(path.parent()?.parent()?.to_path_buf()))
    {
        candidates.push(installed.join("share/cyclone"));
    }
    candidates.push(PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/..")));
    for candidate in &candidates {
        if candidate.join("runtime/cyc_runtime.h").is_file() {
            return Ok(candidate.canonicalize().unwrap_or_else(|_| candidate.clone()));
        }
    }
    let places: Vec<String> = candidates.iter().map(|candidate| candidate.display().to_string()).collect();
    Err(format!("the run-time library is in none of {}; CYC_HOME names its directory", places.join(", ")))
}
