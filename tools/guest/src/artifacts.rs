//! Where the parts of Ebb are that a guest is made of: the kernel and the agent.
//!
//! Each is looked for in this order: the path the caller names; the path in an environment variable; the build's
//! `target` directory, if the running program lies in one; the installation's `share/ebb` next to the program's `bin`.

use crate::{Error, Result};
use std::path::{Path, PathBuf};

/// A part of Ebb that was built before.
#[derive(Debug, Clone, Copy)]
pub struct Artifact {
    what: &'static str,
    variable: &'static str,
    in_target: &'static str,
    installed: &'static str,
}

/// The kernel: `EBB_KERNEL`, or what `make kernel` built.
pub const KERNEL: Artifact = Artifact {
    what: "the Ebb kernel",
    variable: "EBB_KERNEL",
    in_target: "x86_64-unknown-none/kernel/ebb",
    installed: "share/ebb/kernel",
};

/// The agent, process 1 in guests: `EBB_AGENT`, or what `make agent` built.
pub const AGENT: Artifact = Artifact {
    what: "Ebb's guest agent",
    variable: "EBB_AGENT",
    in_target: "x86_64-unknown-linux-gnu/release/ebb-agent",
    installed: "share/ebb/agent",
};

impl Artifact {
    /// The file of this part; `named` is the path that the user gave, if any.
    pub fn find(&self, named: Option<&Path>) -> Result<PathBuf> {
        let variable = std::env::var_os(self.variable).map(PathBuf::from);
        if let Some(path) = named.map(Path::to_path_buf).or(variable) {
            return if path.is_file() { Ok(path) } else { Err(self.not_built(path.display().to_string())) };
        }
        let own_path = std::env::current_exe().and_then(|path| path.canonicalize()).unwrap_or_default();
        // target/release/ebb, target/debug/deps/some-test, or PREFIX/bin/ebb.
        let bases = || own_path.ancestors().skip(2).take(2);
        let in_target = bases().map(|base| base.join(self.in_target));
        let installed = bases().map(|base| base.join(self.installed));
        in_target
            .chain(installed)
            .find(|path| path.is_file())
            .ok_or_else(|| self.not_built(format!("no {} beside {}", self.in_target, own_path.display())))
    }

    fn not_built(&self, looked_at: String) -> Error {
        Error::NotBuilt { what: self.what, looked_at, variable: self.variable }
    }
}
