//! The disk that every machine gets a copy of: an ext4 file system of 1 GiB with a large file, a source tree, an archive of it, and Python.

use super::tree;
use anyhow::{Context, Result, bail};
use ebb_guest::image::Kind;
use ebb_guest::{Error, Image};
use std::ffi::OsStr;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// A program of Debian's, and the package that has it.
type Tool = (&'static str, &'static str);

/// Programs that the rows run, from the archive in memory.
pub const PROGRAMS: [Tool; 6] = [
    ("/usr/bin/sqlite3", "sqlite3"),
    ("/usr/bin/tar", "tar"),
    ("/usr/bin/rm", "coreutils"),
    ("/usr/bin/ls", "coreutils"),
    ("/usr/bin/git", "git"),
    ("/usr/bin/grep", "grep"),
];

const PYTHON: Tool = ("/usr/bin/python3", "python3-minimal libpython3-stdlib");
const MKE2FS: Tool = ("/usr/sbin/mke2fs", "e2fsprogs");

/// Bytes of the large file; `user/bench/disks/access.c` has the same number.
const DATA_BYTES: usize = 64 << 20;

/// What makes the file system the same each time.
const UUID: &str = "6ff54d5b-9d1c-4bb7-a5d9-4fa4f2d5f9c1";

/// Makes it, below `directory`.
///
/// # Errors
/// A program is not installed or fails, or a file cannot be written.
pub fn make(directory: &Path) -> Result<PathBuf> {
    let root = directory.join("root");
    let tree = root.join("tree");
    fs::create_dir_all(&tree).with_context(|| format!("making {}", tree.display()))?;
    let data = root.join("data");
    fs::write(&data, tree::noise(DATA_BYTES)).with_context(|| format!("writing {}", data.display()))?;
    tree::make(&tree)?;
    let mut tar = tool(("/usr/bin/tar", "tar"))?;
    tar.args(["--sort=name", "--owner=0", "--group=0", "--numeric-owner", "--mtime=@0", "-C"]).arg(&tree);
    succeed(tar.arg("-cf").arg(root.join("tree.tar")).arg("."))?;
    commit(&tree)?;
    add_python(&root)?;
    let image = directory.join("disk.img");
    let extended = format!("lazy_itable_init=0,lazy_journal_init=0,root_owner=0:0,hash_seed={UUID}");
    let mut mke2fs = tool(MKE2FS)?;
    mke2fs.args(["-q", "-F", "-t", "ext4", "-b", "4096", "-U", UUID, "-E", &extended, "-d"]).arg(&root);
    succeed(mke2fs.arg(&image).arg("1G"))?;
    fs::remove_dir_all(&root).with_context(|| format!("removing {}", root.display()))?;
    Ok(image)
}

/// Adds the programs that the rows run to an archive.
///
/// # Errors
/// One is not installed.
pub fn add_programs(image: &mut Image) -> Result<()> {
    for program in PROGRAMS {
        tool(program)?;
        image.add_host_program(Path::new(program.0))?;
    }
    image.add_bytes("sql/speed", 0o644, tree::sqlite_speed());
    image.add_bytes("sql/inserts", 0o644, tree::sqlite_inserts("DELETE"));
    image.add_bytes("sql/inserts-wal", 0o644, tree::sqlite_inserts("WAL"));
    Ok(())
}

/// Makes a repository of the source tree, with everything in one pack.
fn commit(tree: &Path) -> Result<()> {
    let git = |arguments: &[&str]| {
        let mut git = tool(("/usr/bin/git", "git"))?;
        git.env_clear().env("HOME", "/nonexistent").env("GIT_CONFIG_NOSYSTEM", "1");
        git.envs([("GIT_AUTHOR_DATE", "@0 +0000"), ("GIT_COMMITTER_DATE", "@0 +0000")]);
        git.args(["-c", "user.name=ebb", "-c", "user.email=ebb@localhost", "-C"]).arg(tree).args(arguments);
        succeed(&mut git)
    };
    git(&["init", "--quiet", "--initial-branch=main"])?;
    git(&["add", "--all"])?;
    git(&["commit", "--quiet", "--message=All"])?;
    git(&["gc", "--quiet"])
}

/// Puts Python below `root`, with its library and the libraries that it is linked with, each at its own path.
fn add_python(root: &Path) -> Result<()> {
    let mut python = tool(PYTHON)?;
    python.args(["-I", "-c", "import os; print(os.path.dirname(os.__file__), end='')"]);
    let library = python.output().with_context(|| format!("running {}", PYTHON.0))?.stdout;
    let mut image = Image::empty();
    image.add_host_program(Path::new(PYTHON.0))?;
    let mut copy = Command::new("cp");
    copy.args(["--archive", "--parents", "--target-directory"]).arg(root).current_dir("/");
    copy.args(image.entries().filter(|(_, node)| !matches!(node.kind, Kind::Directory)).map(|(path, _)| path));
    copy.arg(OsStr::new(String::from_utf8_lossy(&library).trim_start_matches('/')));
    succeed(&mut copy)
}

/// A program of the host's.
fn tool((path, package): Tool) -> Result<Command> {
    if !Path::new(path).exists() {
        return Err(Error::ToolMissing { tool: path, package }.into());
    }
    Ok(Command::new(path))
}

/// Runs a program that has to succeed.
fn succeed(command: &mut Command) -> Result<()> {
    let name = command.get_program().to_string_lossy().into_owned();
    let done = command.stdin(Stdio::null()).output().with_context(|| format!("running {name}"))?;
    if !done.status.success() {
        bail!("{name} failed ({}):\n{}", done.status, String::from_utf8_lossy(&done.stderr).trim_end());
    }
    Ok(())
}
