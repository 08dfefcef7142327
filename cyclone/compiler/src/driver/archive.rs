//! The library and run time as one archive, compiled once for each set of options.
//!
//! The archive's directory in the cache is named by a hash of everything that it depends on: the sources, the compiler itself and
//! the options. It is built in a directory of its own and moved to its name when it is complete, so that compilers that run
//! at the same time do not disturb each other.

use super::build::{Scratch, c_compiler_command, defines, object, succeed};
use super::home;
use super::options::{Options, Warnings};
use super::preprocessing::c_compiler;
use std::ffi::OsString;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

/// The archive for these options.
///
/// # Errors
/// If it cannot be built.
pub fn library(options: &Options) -> Result<PathBuf, String> {
    let home = home::directory()?;
    let sources = sources(&home)?;
    let directory = cache()?.join(format!("{:016x}", fingerprint(&home, options)?));
    let archive = directory.join("libcyclone.a");
    if archive.is_file() {
        return Ok(archive);
    }
    let scratch = Scratch::new()?;
    let built = build(&home, &sources, options, &scratch)?;
    let cache = cache()?;
    let fail = |error: std::io::Error| format!("{}: {error}", cache.display());
    // As other directories: the cache may be shared.
    let permissions = std::os::unix::fs::PermissionsExt::from_mode(0o777);
    let staging =
        tempfile::Builder::new().prefix("building-").permissions(permissions).tempdir_in(&cache).map_err(fail)?;
    std::fs::copy(&built, staging.path().join("libcyclone.a")).map_err(fail)?;
    // If it fails another compiler was faster; its archive is the same.
    if std::fs::rename(staging.path(), &directory).is_ok() {
        let _ = staging.keep();
    }
    if archive.is_file() { Ok(archive) } else { Err(format!("cannot write {}", archive.display())) }
}

/// The sources that the two lists of modules name.
fn sources(home: &Path) -> Result<Vec<PathBuf>, String> {
    let mut all = Vec::new();
    for part in ["runtime", "lib"] {
        let directory = home.join(part);
        let list = directory.join("modules");
        let text = std::fs::read_to_string(&list).map_err(|error| format!("{}: {error}", list.display()))?;
        let names = text.lines().map(str::trim).filter(|line| !line.is_empty() && !line.starts_with('#'));
        all.extend(names.map(|name| directory.join(name)));
    }
    Ok(all)
}

/// The directory for what is kept.
///
/// # Errors
/// If there is none, and none can be made.
pub fn cache() -> Result<PathBuf, String> {
    let directory = if let Some(named) = std::env::var_os("CYC_CACHE") {
        PathBuf::from(named)
    } else if let Some(caches) = std::env::var_os("XDG_CACHE_HOME") {
        PathBuf::from(caches).join("cyc")
    } else if let Some(home) = std::env::var_os("HOME") {
        PathBuf::from(home).join(".cache/cyc")
    } else {
        std::env::temp_dir().join("cyc-cache")
    };
    std::fs::create_dir_all(&directory).map_err(|error| format!("{}: {error}", directory.display()))?;
    Ok(directory)
}

fn fingerprint(home: &Path, options: &Options) -> Result<u64, String> {
    let mut hasher = DefaultHasher::new();
    env!("CARGO_PKG_VERSION").hash(&mut hasher);
    c_compiler(options).hash(&mut hasher);
    defines(options).hash(&mut hasher);
    machine_options(options).hash(&mut hasher);
    if let Ok(metadata) = std::env::current_exe().and_then(std::fs::metadata) {
        metadata.len().hash(&mut hasher);
        metadata.modified().ok().hash(&mut hasher);
    }
    for part in ["runtime", "lib"] {
        hash_files(&home.join(part), &mut hasher)?;
    }
    Ok(hasher.finish())
}

fn hash_files(directory: &Path, hasher: &mut DefaultHasher) -> Result<(), String> {
    let fail = |error: std::io::Error| format!("{}: {error}", directory.display());
    let mut entries: Vec<PathBuf> = Vec::new();
    for entry in std::fs::read_dir(directory).map_err(fail)? {
        entries.push(entry.map_err(fail)?.path());
    }
    entries.sort();
    for path in entries {
        if path.is_dir() {
            if path.file_name().is_some_and(|name| name != "tests") {
                hash_files(&path, hasher)?;
            }
        } else {
            path.hash(hasher);
            std::fs::read(&path).map_err(|error| format!("{}: {error}", path.display()))?.hash(hasher);
        }
    }
    Ok(())
}

/// Options that objects must agree on to be linked together.
fn machine_options(options: &Options) -> Vec<OsString> {
    let matters = |option: &&OsString| {
        let text = option.to_string_lossy();
        ["-m", "-fsanitize", "-fpic", "-fPIC", "-fpie", "-fPIE", "-fno-pie"]
            .iter()
            .any(|prefix| text.starts_with(prefix))
    };
    options.compiler.iter().filter(matters).cloned().collect()
}

fn build(home: &Path, sources: &[PathBuf], options: &Options, scratch: &Scratch) -> Result<PathBuf, String> {
    let mut compiler = machine_options(options);
    compiler.push("-O2".into());
    let own = Options {
        preprocessor: Vec::new(),
        compiler,
        own_headers: true,
        preprocess: true,
        library: None,
        warnings: Warnings::Hidden,
        explain_checks: false,
        time: false,
        rules: crate::check::Rules::default(),
        ..options.clone()
    };
    let next = AtomicUsize::new(0);
    let objects = Mutex::new(Vec::new());
    let failures = Mutex::new(Vec::new());
    let work = || {
        while let Some(source) = sources.get(next.fetch_add(1, Ordering::Relaxed)) {
            match module(source, home, &own, scratch) {
                Ok(object) => lock(&objects).push(object),
                Err(message) => lock(&failures).push(format!("{}: {message}", source.display())),
            }
        }
    };
    std::thread::scope(|scope| {
        let threads = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
        for _ in 0..threads {
            let worker = std::thread::Builder::new().stack_size(super::STACK_BYTES);
            if let Err(error) = worker.spawn_scoped(scope, work) {
                lock(&failures).push(format!("no thread for compiling the library: {error}"));
            }
        }
    });
    let failures = failures.into_inner().unwrap_or_default();
    if !failures.is_empty() {
        return Err(format!("the library cannot be compiled:\n{}", failures.join("\n")));
    }
    let mut objects = objects.into_inner().unwrap_or_default();
    objects.sort();
    let archive = scratch.path().join("libcyclone.a");
    let mut command = Command::new("ar");
    command.arg("rcs").arg(&archive).args(objects);
    succeed(command)?;
    Ok(archive)
}

/// What a thread that panicked left in it is as good as before: only whole entries are pushed.
fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
}

fn module(source: &Path, home: &Path, options: &Options, scratch: &Scratch) -> Result<PathBuf, String> {
    let name = source.strip_prefix(home).unwrap_or(source).to_string_lossy().replace(['/', '.'], "_");
    let output = scratch.path().join(format!("{name}.o"));
    if source.extension().is_some_and(|extension| extension == "c") {
        let mut command = c_compiler_command(options)?;
        command.arg("-c").arg(source).arg("-o").arg(&output);
        succeed(command)?;
        return Ok(output);
    }
    object(source.as_os_str(), &output, options, scratch)?.ok_or_else(|| "it has errors".to_owned())
}
