//! Small workspaces that are written to a folder of cargo's for tests, and linted there.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use serde_json::Value;

/// A workspace in a folder that was empty before.
pub struct Workspace {
    pub folder: PathBuf,
}

impl Workspace {
    /// A workspace of these packages, which are still to be written.
    pub fn new(name: &str, members: &[&str]) -> Workspace {
        let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
        if folder.exists() {
            fs::remove_dir_all(&folder).unwrap();
        }
        let workspace = Workspace { folder };
        let members: Vec<String> = members.iter().map(|member| format!("{member:?}")).collect();
        workspace.write("Cargo.toml", &format!("[workspace]\nresolver = \"3\"\nmembers = [{}]\n", members.join(", ")));
        workspace
    }

    /// Writes a file.
    pub fn write(&self, path: &str, text: &str) {
        let path = self.folder.join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

    /// Writes a package with a library; `more` is the end of its `Cargo.toml`.
    pub fn package(&self, name: &str, more: &str, library: &str) {
        let manifest = format!("[package]\nname = \"{name}\"\nversion = \"0.0.0\"\nedition = \"2024\"\n{more}");
        self.write(&format!("{name}/Cargo.toml"), &manifest);
        self.write(&format!("{name}/src/lib.rs"), library);
    }

    /// Runs the linter here.
    pub fn lint(&self, toolchain: &Toolchain, arguments: &[&str]) -> Output {
        let mut command = Command::new(env!("CARGO_BIN_EXE_cargo-ebb-lint"));
        command.args(arguments).arg("--offline").current_dir(&self.folder);
        for name in
            ["RUSTFLAGS", "CARGO_ENCODED_RUSTFLAGS", "RUSTC_WRAPPER", "CARGO_BUILD_TARGET", "CARGO_MANIFEST_DIR"]
        {
            command.env_remove(name);
        }
        command.env("CARGO_TARGET_DIR", self.folder.join("target")).env("CARGO", &toolchain.cargo);
        if let Some(rustc) = &toolchain.rustc {
            command.env("RUSTC", rustc);
        }
        command.output().unwrap()
    }
}

/// A cargo and the compiler that it uses.
pub struct Toolchain {
    pub cargo: PathBuf,
    /// Where it is not cargo's own choice.
    pub rustc: Option<PathBuf>,
    pub version: String,
}

impl Toolchain {
    /// The one that runs the tests.
    pub fn current() -> Toolchain {
        let rustc = std::env::var_os("RUSTC").map(PathBuf::from);
        let version = version(rustc.as_deref().unwrap_or(Path::new("rustc")));
        Toolchain { cargo: std::env::var_os("CARGO").unwrap().into(), rustc, version: version.unwrap() }
    }

    /// The one that runs the tests, and the system's own if that is another one and new enough.
    pub fn all() -> Vec<Toolchain> {
        let mut all = vec![Toolchain::current()];
        let (cargo, rustc) = (PathBuf::from("/usr/bin/cargo"), PathBuf::from("/usr/bin/rustc"));
        if let Some(version) = version(&rustc)
            && version != all[0].version
            && cargo.exists()
            && minor(&version) >= Some(88)
        {
            all.push(Toolchain { cargo, rustc: Some(rustc), version });
        }
        all
    }
}

fn version(rustc: &Path) -> Option<String> {
    let output = Command::new(rustc).arg("--version").output().ok()?;
    output.status.success().then(|| String::from_utf8_lossy(&output.stdout).trim().to_owned())
}

fn minor(version: &str) -> Option<u32> {
    version.strip_prefix("rustc 1.")?.split('.').next()?.parse().ok()
}

/// The diagnostics on standard output, one object per line.
pub fn diagnostics(output: &Output) -> Vec<Value> {
    let text = String::from_utf8_lossy(&output.stdout);
    text.lines().map(|line| serde_json::from_str(line).unwrap_or_else(|error| panic!("{error}: {line}"))).collect()
}

/// What was printed for people.
pub fn said(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}
