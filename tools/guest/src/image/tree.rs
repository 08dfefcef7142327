//! The tree of files that becomes a guest's initial file system.

use super::cpio;
use crate::artifacts;
use crate::error::Doing;
use crate::{Error, Result};
use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::PermissionsExt;
use std::path::{Component, Path, PathBuf};

/// Where the agent lies in every guest.
pub(crate) const AGENT_PATH: &str = "/.ebb/agent";

/// Where the modules lie that the agent has a Linux kernel load, in the order of their names.
pub(crate) const MODULES_PATH: &str = "/.ebb/modules";

/// How many symbolic links one path may lead through, as in Linux.
const MAX_SYMLINKS: usize = 40;

/// What one name in the tree stands for.
#[derive(Debug, Clone)]
pub struct Node {
    /// Permission bits, at most `0o7777`.
    pub mode: u32,
    /// Owner.
    pub uid: u32,
    /// Group.
    pub gid: u32,
    /// Time of last modification, seconds since 1970.
    pub mtime: u32,
    /// The kind of file and what belongs to it.
    pub kind: Kind,
}

/// The kinds of files.
#[derive(Debug, Clone)]
pub enum Kind {
    /// A directory; its entries are nodes of their own.
    Directory,
    /// A regular file.
    File(Content),
    /// Another name of the regular file at this path in the image.
    HardLink(PathBuf),
    /// A symbolic link with this text.
    Symlink(PathBuf),
    /// A character device: major and minor number.
    CharDevice(u32, u32),
    /// A block device: major and minor number.
    BlockDevice(u32, u32),
    /// A named pipe.
    Fifo,
}

/// Where a regular file's bytes are.
#[derive(Debug, Clone)]
pub enum Content {
    /// Here.
    Bytes(Vec<u8>),
    /// In this file of the host, read when the image is written.
    HostFile(PathBuf),
}

impl Node {
    /// A node of root's with a time of 0.
    pub fn new(mode: u32, kind: Kind) -> Self {
        Self { mode, uid: 0, gid: 0, mtime: 0, kind }
    }
}

/// A guest's initial file system. Paths are those in the guest, absolute or not: both start at its root.
#[derive(Debug, Clone, Default)]
pub struct Image {
    /// By normalised path without a leading slash, so that a directory comes before its entries.
    nodes: BTreeMap<PathBuf, Node>,
}

impl Image {
    /// An image without any file.
    pub fn empty() -> Self {
        Self::default()
    }

    /// What every Unix program expects: `/tmp`, `/root`, mount points, and names for root.
    pub fn base() -> Self {
        let mut image = Self::empty();
        image.complete();
        image
    }

    /// Adds what [`Self::base`] has and this image lacks.
    pub fn complete(&mut self) {
        for (path, mode) in
            [("dev", 0o755), ("proc", 0o555), ("sys", 0o555), ("root", 0o700), ("tmp", 0o1777), ("run", 0o755)]
        {
            self.add_missing(path, Node::new(mode, Kind::Directory));
        }
        let files: [(&str, &[u8]); 5] = [
            (
                "etc/passwd",
                b"root:x:0:0:root:/root:/bin/sh\nnobody:x:65534:65534:nobody:/nonexistent:/usr/sbin/nologin\n",
            ),
            ("etc/group", b"root:x:0:\ntty:x:5:\nnogroup:x:65534:\n"),
            ("etc/hostname", b"ebb\n"),
            ("etc/hosts", b"127.0.0.1\tlocalhost ebb\n"),
            ("etc/nsswitch.conf", b"passwd: files\ngroup: files\nhosts: files dns\n"),
        ];
        for (path, text) in files {
            self.add_missing(path, Node::new(0o644, Kind::File(Content::Bytes(text.to_vec()))));
        }
        // What the network's DHCP has told.
        self.add_missing("etc/resolv.conf", Node::new(0o777, Kind::Symlink("/proc/net/pnp".into())));
    }

    /// Adds the agent, so that [`crate::Guest::boot`] finds its process 1. `named` is the path that the user gave.
    pub fn add_agent(&mut self, named: Option<&Path>) -> Result<()> {
        let agent = artifacts::AGENT.find(named)?;
        self.insert(Path::new(AGENT_PATH), Node::new(0o755, Kind::File(Content::HostFile(agent))));
        Ok(())
    }

    /// Adds a file of the host under a path of the guest, with the host's permission bits.
    pub fn add_file(&mut self, guest_path: impl AsRef<Path>, host_path: &Path) -> Result<()> {
        let metadata = std::fs::metadata(host_path).doing(|| format!("reading {}", host_path.display()))?;
        let mode = metadata.permissions().mode() & 0o7777;
        self.insert(guest_path, Node::new(mode, Kind::File(Content::HostFile(host_path.to_path_buf()))));
        Ok(())
    }

    /// Adds a file with these bytes.
    pub fn add_bytes(&mut self, guest_path: impl AsRef<Path>, mode: u32, bytes: impl Into<Vec<u8>>) {
        self.insert(guest_path, Node::new(mode, Kind::File(Content::Bytes(bytes.into()))));
    }

    /// Adds a symbolic link.
    pub fn add_symlink(&mut self, guest_path: impl AsRef<Path>, target: impl Into<PathBuf>) {
        self.insert(guest_path, Node::new(0o777, Kind::Symlink(target.into())));
    }

    /// Adds an empty directory, unless there is one.
    pub fn add_directory(&mut self, guest_path: impl AsRef<Path>, mode: u32) {
        self.add_missing(guest_path, Node::new(mode, Kind::Directory));
    }

    /// Puts a node at a path, in place of what was there. Links on the way to it are followed and directories made. A
    /// directory that is there already keeps its entries.
    pub fn insert(&mut self, path: impl AsRef<Path>, node: Node) {
        let path = normalise(path.as_ref());
        let (Some(parent), Some(name)) = (path.parent(), path.file_name()) else {
            return; // The root directory itself.
        };
        let parent = self.resolve(parent);
        self.make_directories(&parent);
        self.nodes.insert(parent.join(name), node);
    }

    /// Puts a node at a path unless the path leads to something already.
    pub fn add_missing(&mut self, path: impl AsRef<Path>, node: Node) {
        if self.lookup(path.as_ref()).is_none() {
            self.insert(path, node);
        }
    }

    /// What a path leads to, through symbolic links.
    pub fn lookup(&self, path: &Path) -> Option<&Node> {
        self.nodes.get(&self.resolve(path))
    }

    /// What is at a path, be it a symbolic link.
    pub fn lookup_no_follow(&self, path: &Path) -> Option<&Node> {
        let path = normalise(path);
        let parent = self.resolve(path.parent()?);
        self.nodes.get(&parent.join(path.file_name()?))
    }

    /// All paths and what is there, directories before their entries.
    pub fn entries(&self) -> impl Iterator<Item = (&Path, &Node)> {
        self.nodes.iter().map(|(path, node)| (path.as_path(), node))
    }

    /// Whether a path leads to a regular file that somebody may execute.
    pub fn has_program(&self, path: &Path) -> bool {
        self.lookup(path).is_some_and(|node| match node.kind {
            Kind::File(_) => node.mode & 0o111 != 0,
            Kind::HardLink(_) => true,
            _ => false,
        })
    }

    /// Writes the image as a cpio archive, and returns the archive's length in bytes.
    pub fn write_to(&self, path: &Path) -> Result<u64> {
        let doing = || format!("writing the guest's file system {}", path.display());
        let mut out = BufWriter::with_capacity(1 << 18, File::create(path).doing(doing)?);
        let length = cpio::write(self, &mut out).map_err(|error| match error {
            cpio::WriteError::Content(path, error) => Error::Io { doing: format!("reading {}", path.display()), error },
            cpio::WriteError::Archive(error) => Error::Io { doing: doing(), error },
        })?;
        out.flush().doing(doing)?;
        Ok(length)
    }

    /// The normalised path behind all symbolic links. What does not exist stays as it is written.
    fn resolve(&self, path: &Path) -> PathBuf {
        let mut resolved = PathBuf::new();
        let mut rest: Vec<PathBuf> = pieces(path);
        let mut links = 0;
        while let Some(piece) = rest.pop() {
            if piece == Path::new("..") {
                resolved.pop();
                continue;
            }
            let next = resolved.join(&piece);
            match self.nodes.get(&next).map(|node| &node.kind) {
                Some(Kind::Symlink(target)) if links < MAX_SYMLINKS => {
                    links += 1;
                    if target.is_absolute() {
                        resolved = PathBuf::new();
                    }
                    rest.extend(pieces(target));
                }
                _ => resolved = next,
            }
        }
        resolved
    }

    fn make_directories(&mut self, path: &Path) {
        let missing: Vec<PathBuf> = path
            .ancestors()
            .take_while(|ancestor| !ancestor.as_os_str().is_empty() && !self.nodes.contains_key(*ancestor))
            .map(Path::to_path_buf)
            .collect();
        for ancestor in missing {
            self.nodes.insert(ancestor, Node::new(0o755, Kind::Directory));
        }
    }
}

/// The path's components, last first, ready to be popped; `..` stays, the root and `.` go.
fn pieces(path: &Path) -> Vec<PathBuf> {
    let keep = |component: Component| match component {
        Component::Normal(name) => Some(PathBuf::from(name)),
        Component::ParentDir => Some(PathBuf::from("..")),
        _ => None,
    };
    path.components().rev().filter_map(keep).collect()
}

/// The path from the root, without `.`, `..` and the leading slash.
fn normalise(path: &Path) -> PathBuf {
    let mut normal = PathBuf::new();
    for component in path.components() {
        match component {
            Component::Normal(name) => normal.push(name),
            Component::ParentDir => {
                normal.pop();
            }
            _ => {}
        }
    }
    normal
}

impl Content {
    /// The file's length in bytes now.
    pub fn length(&self) -> io::Result<u64> {
        match self {
            Self::Bytes(bytes) => Ok(bytes.len() as u64),
            Self::HostFile(path) => Ok(std::fs::metadata(path)?.len()),
        }
    }

    /// All bytes of the file.
    pub fn read(&self) -> io::Result<Vec<u8>> {
        match self {
            Self::Bytes(bytes) => Ok(bytes.clone()),
            Self::HostFile(path) => std::fs::read(path),
        }
    }
}

/// A path from an archive's bytes.
pub(crate) fn path_from_bytes(bytes: &[u8]) -> PathBuf {
    PathBuf::from(OsStr::from_bytes(bytes))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn paths(image: &Image) -> Vec<&str> {
        image.entries().map(|(path, _)| path.to_str().unwrap()).collect()
    }

    #[test]
    fn directories_appear_before_what_lies_in_them() {
        let mut image = Image::empty();
        image.add_bytes("/a/b/../c/file", 0o644, "x");
        assert_eq!(paths(&image), ["a", "a/c", "a/c/file"]);
    }

    #[test]
    fn a_file_below_a_linked_directory_goes_where_the_link_leads() {
        let mut image = Image::empty();
        image.add_directory("/usr/bin", 0o755);
        image.add_symlink("/bin", "usr/bin");
        image.add_bytes("/bin/sh", 0o755, "x");
        assert_eq!(paths(&image), ["bin", "usr", "usr/bin", "usr/bin/sh"]);
        assert!(image.has_program(Path::new("/bin/sh")));
        assert!(image.has_program(Path::new("usr/bin/../bin/./sh")));
        assert!(!image.has_program(Path::new("/bin")));
    }

    #[test]
    fn links_in_a_circle_do_not_hang() {
        let mut image = Image::empty();
        image.add_symlink("/a", "b");
        image.add_symlink("/b", "/a");
        assert!(!image.has_program(Path::new("/a/x")));
        image.add_bytes("/a/x", 0o755, "x");
    }

    #[test]
    fn completing_keeps_what_is_there() {
        let mut image = Image::empty();
        image.add_bytes("/etc/passwd", 0o600, "mine");
        image.complete();
        assert_eq!(image.lookup(Path::new("/etc/passwd")).unwrap().mode, 0o600);
        assert!(image.lookup(Path::new("/tmp")).is_some());
    }
}
