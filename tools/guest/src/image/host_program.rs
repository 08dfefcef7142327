//! Bringing a program of the host into a guest, with all it needs to start.
//!
//! The program keeps its path, and so do its interpreter and libraries, with the symbolic links that lead to them. What it
//! needs is found by reading the ELF files (never by running them): the interpreter, then library by library what
//! `ld.so` would find. What a program loads by itself later (plug-ins, character sets, NSS modules) is not known here;
//! such programs want a root file system of their own.

use super::elf::{self, ElfFile};
use super::tree::{Content, Image, Kind, Node};
use crate::error::Doing;
use crate::{Error, Result};
use std::collections::HashSet;
use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

/// The file that a shell would run for this name: a path with a slash as it is, another name from `PATH`.
pub fn find(name: &str) -> Result<PathBuf> {
    let no_such = || Error::NoSuchProgram(name.to_owned());
    if name.contains('/') {
        let path = std::path::absolute(name).map_err(|_| no_such())?;
        let metadata = fs::metadata(&path).map_err(|_| no_such())?;
        if metadata.is_dir() {
            return Err(Error::NotAProgram { path, why: "a directory".into() });
        }
        if metadata.permissions().mode() & 0o111 == 0 {
            return Err(Error::NotAProgram { path, why: "not executable (chmod +x makes it so)".into() });
        }
        return Ok(path);
    }
    let path = std::env::var_os("PATH").unwrap_or_default();
    let candidates = std::env::split_paths(&path).map(|directory| directory.join(name));
    let is_program = |path: &PathBuf| {
        fs::metadata(path).is_ok_and(|metadata| metadata.is_file() && metadata.permissions().mode() & 0o111 != 0)
    };
    candidates.into_iter().find(is_program).ok_or_else(no_such)
}

impl Image {
    /// Adds a program of the host at its own path, with its interpreter and libraries.
    pub fn add_host_program(&mut self, program: &Path) -> Result<()> {
        let mut collector = Collector { image: self, seen: HashSet::new() };
        collector.add_program(program, 0)
    }

    /// Adds a file of the host at its own path, with the symbolic links on the way to it.
    pub(crate) fn add_host_path(&mut self, path: &Path) -> Result<()> {
        self.add_links_on_the_way(path);
        let bytes_at = path.canonicalize().doing(|| format!("reading {}", path.display()))?;
        for guest_path in [bytes_at.as_path(), path] {
            if self.lookup(guest_path).is_none() {
                self.add_file(guest_path, &bytes_at)?;
            }
        }
        Ok(())
    }

    fn add_links_on_the_way(&mut self, path: &Path) {
        let mut at = PathBuf::from("/");
        let mut rest: Vec<PathBuf> = path.iter().rev().map(PathBuf::from).collect();
        let mut links = 0;
        while let Some(piece) = rest.pop() {
            if piece == Path::new("..") {
                at.pop();
                continue;
            }
            let next = at.join(&piece);
            match fs::read_link(&next) {
                Ok(target) if links < 40 => {
                    links += 1;
                    if self.lookup_no_follow(&next).is_none() {
                        self.insert(&next, Node::new(0o777, Kind::Symlink(target.clone())));
                    }
                    rest.extend(target.iter().rev().map(PathBuf::from));
                }
                // An absolute piece (the root of a link's target) replaces what came before it.
                _ => at = next,
            }
        }
    }
}

struct Collector<'a> {
    image: &'a mut Image,
    /// Files whose needs have been seen to, by their real path.
    seen: HashSet<PathBuf>,
}

impl Collector<'_> {
    fn add_program(&mut self, path: &Path, depth: usize) -> Result<()> {
        let bytes = fs::read(path).doing(|| format!("reading {}", path.display()))?;
        self.image.add_host_path(path)?;
        if let Some(line) = bytes.strip_prefix(b"#!") {
            return self.add_interpreter(path, line, depth);
        }
        let file = elf::read(&bytes).map_err(|why| Error::NotAProgram { path: path.to_path_buf(), why })?;
        let Some(interpreter) = &file.interpreter else {
            return Ok(());
        };
        if !interpreter.exists() {
            return Err(missing(path, &interpreter.display().to_string()));
        }
        self.image.add_host_path(interpreter)?;
        let directories = LoaderDirectories::of(interpreter);
        if directories.uses_cache {
            for configuration in ["/etc/ld.so.cache", "/etc/ld.so.conf"] {
                if Path::new(configuration).is_file() {
                    self.image.add_host_path(Path::new(configuration))?;
                }
            }
        }
        self.add_libraries(path, &file, &directories)
    }

    /// The program behind `#!`.
    fn add_interpreter(&mut self, script: &Path, line: &[u8], depth: usize) -> Result<()> {
        let not_a_program = |why: &str| Error::NotAProgram { path: script.to_path_buf(), why: why.into() };
        let line = line.split(|&byte| byte == b'\n').next().unwrap_or_default();
        let mut words = line.split(|byte| byte.is_ascii_whitespace()).filter(|word| !word.is_empty());
        let interpreter = words.next().ok_or_else(|| not_a_program("a script without an interpreter"))?;
        // Linux follows four scripts at most.
        if depth == 4 {
            return Err(not_a_program("a script whose interpreter is a script, too often"));
        }
        let interpreter = Path::new(OsStr::from_bytes(interpreter));
        if !interpreter.exists() {
            return Err(missing(script, &interpreter.display().to_string()));
        }
        self.add_program(interpreter, depth + 1)?;
        if interpreter.file_name() == Some(OsStr::new("env"))
            && let Some(name) = words.find(|word| !word.starts_with(b"-") && !word.contains(&b'='))
        {
            let name = String::from_utf8_lossy(name);
            let program = find(&name).map_err(|_| missing(script, &name))?;
            self.add_program(&program, depth + 1)?;
        }
        Ok(())
    }

    /// Breadth first, as the loader does, so that the first library of a name is the loader's as well.
    fn add_libraries(&mut self, program: &Path, file: &ElfFile, directories: &LoaderDirectories) -> Result<()> {
        let mut queue = vec![(program.to_path_buf(), file.clone())];
        let mut names = HashSet::new();
        while let Some((user, file)) = queue.pop() {
            for name in &file.needed {
                if !names.insert(name.clone()) {
                    continue;
                }
                let library =
                    find_library(name, &user, &file.search_path, directories).ok_or_else(|| missing(&user, name))?;
                self.image.add_host_path(&library)?;
                let real_path = library.canonicalize().unwrap_or_else(|_| library.clone());
                if !self.seen.insert(real_path) {
                    continue;
                }
                let bytes = fs::read(&library).doing(|| format!("reading {}", library.display()))?;
                let file = elf::read(&bytes).map_err(|why| Error::NotAProgram { path: library.clone(), why })?;
                queue.insert(0, (library, file));
            }
        }
        Ok(())
    }
}

fn missing(path: &Path, needed: &str) -> Error {
    Error::LibraryMissing { path: path.to_path_buf(), needed: needed.to_owned() }
}

/// Where a dynamic loader looks for libraries by itself.
struct LoaderDirectories {
    directories: Vec<PathBuf>,
    /// Whether it reads `/etc/ld.so.cache`.
    uses_cache: bool,
}

impl LoaderDirectories {
    fn of(interpreter: &Path) -> Self {
        let name = interpreter.file_name().unwrap_or_default().to_string_lossy().into_owned();
        if let Some(architecture) = name.strip_prefix("ld-musl-").and_then(|name| name.strip_suffix(".so.1")) {
            let configured = fs::read_to_string(format!("/etc/ld-musl-{architecture}.path")).ok();
            let text = configured.unwrap_or_else(|| "/lib:/usr/local/lib:/usr/lib".into());
            let directories = text.split([':', '\n']).filter(|part| !part.is_empty()).map(PathBuf::from).collect();
            return Self { directories, uses_cache: false };
        }
        let mut directories = Vec::new();
        read_configuration(Path::new("/etc/ld.so.conf"), &mut directories, 0);
        let built_in =
            ["/lib/x86_64-linux-gnu", "/usr/lib/x86_64-linux-gnu", "/lib64", "/usr/lib64", "/lib", "/usr/lib"];
        directories.extend(built_in.map(PathBuf::from));
        Self { directories, uses_cache: true }
    }
}

/// Reads `ld.so.conf` and what it includes.
fn read_configuration(path: &Path, directories: &mut Vec<PathBuf>, depth: usize) {
    let Ok(text) = fs::read_to_string(path) else { return };
    for line in text.lines().map(|line| line.split('#').next().unwrap_or_default().trim()) {
        match line.strip_prefix("include") {
            Some(pattern) if depth < 8 => {
                for included in matching_files(Path::new(pattern.trim())) {
                    read_configuration(&included, directories, depth + 1);
                }
            }
            None if line.starts_with('/') => directories.push(PathBuf::from(line)),
            _ => {}
        }
    }
}

/// The files that a pattern with at most one `*`, in its last component, stands for; sorted.
fn matching_files(pattern: &Path) -> Vec<PathBuf> {
    let Some((directory, name)) = pattern.parent().zip(pattern.file_name().and_then(OsStr::to_str)) else {
        return Vec::new();
    };
    let Some((prefix, suffix)) = name.split_once('*') else {
        return vec![pattern.to_path_buf()];
    };
    let mut files: Vec<PathBuf> = fs::read_dir(directory)
        .into_iter()
        .flatten()
        .flatten()
        .map(|entry| entry.path())
        .filter(|path| {
            let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
            name.len() >= prefix.len() + suffix.len() && name.starts_with(prefix) && name.ends_with(suffix)
        })
        .collect();
    files.sort();
    files
}

fn find_library(name: &str, user: &Path, search_path: &[String], loader: &LoaderDirectories) -> Option<PathBuf> {
    if name.contains('/') {
        return Some(PathBuf::from(name)).filter(|path| path.exists());
    }
    let real_user = user.canonicalize().unwrap_or_else(|_| user.to_path_buf());
    let origin = real_user.parent().unwrap_or(Path::new("/")).to_string_lossy().into_owned();
    let expand = |part: &String| PathBuf::from(part.replace("${ORIGIN}", &origin).replace("$ORIGIN", &origin));
    search_path
        .iter()
        .map(expand)
        .chain(loader.directories.iter().cloned())
        .map(|directory| directory.join(name))
        // A library of that name for another architecture is passed over, as the loader does.
        .find(|path| fs::read(path).is_ok_and(|bytes| elf::read(&bytes).is_ok()))
}

/// A file of the host as a node, whatever it is; `None` for a socket.
pub(crate) fn node_of(path: &Path, metadata: &fs::Metadata) -> std::io::Result<Option<Node>> {
    use std::os::unix::fs::{FileTypeExt, MetadataExt};
    let file_type = metadata.file_type();
    // The encoding of device numbers in `stat`: makedev(3).
    let (major, minor) = {
        let device = metadata.rdev();
        let major = ((device >> 8) & 0xfff) | ((device >> 32) & !0xfff);
        let minor = (device & 0xff) | ((device >> 12) & !0xff);
        (major as u32, minor as u32)
    };
    let kind = if file_type.is_dir() {
        Kind::Directory
    } else if file_type.is_symlink() {
        Kind::Symlink(fs::read_link(path)?)
    } else if file_type.is_file() {
        Kind::File(Content::HostFile(path.to_path_buf()))
    } else if file_type.is_fifo() {
        Kind::Fifo
    } else if file_type.is_char_device() {
        Kind::CharDevice(major, minor)
    } else if file_type.is_block_device() {
        Kind::BlockDevice(major, minor)
    } else {
        return Ok(None);
    };
    Ok(Some(Node {
        mode: metadata.mode() & 0o7777,
        uid: metadata.uid(),
        gid: metadata.gid(),
        mtime: metadata.mtime().clamp(0, i64::from(u32::MAX)) as u32,
        kind,
    }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_dynamic_program_brings_its_loader_and_libraries() {
        let own = std::env::current_exe().unwrap();
        let mut image = Image::empty();
        image.add_host_program(&own).unwrap();
        assert!(image.has_program(&own));
        assert!(image.has_program(Path::new("/lib64/ld-linux-x86-64.so.2")));
        let names: Vec<String> =
            image.entries().map(|(path, _)| path.file_name().unwrap().to_string_lossy().into_owned()).collect();
        assert!(names.iter().any(|name| name.starts_with("libc.so")), "{names:?}");
    }

    #[test]
    fn a_script_brings_its_interpreter() {
        let directory = tempfile::tempdir().unwrap();
        let script = directory.path().join("script");
        fs::write(&script, "#!/usr/bin/env -S sh -e\nexit 3\n").unwrap();
        fs::set_permissions(&script, fs::Permissions::from_mode(0o755)).unwrap();
        let mut image = Image::empty();
        image.add_host_program(&script).unwrap();
        assert!(image.has_program(&script));
        assert!(image.has_program(Path::new("/usr/bin/env")));
        assert!(image.has_program(&find("sh").unwrap()));
    }

    #[test]
    fn a_program_that_is_not_there_is_said_to_be_missing() {
        assert!(matches!(find("no-such-program-anywhere"), Err(Error::NoSuchProgram(_))));
        assert!(matches!(find("./no-such-program"), Err(Error::NoSuchProgram(_))));
        assert!(matches!(find("/etc"), Err(Error::NotAProgram { .. })));
        assert!(matches!(find("/etc/passwd"), Err(Error::NotAProgram { .. })));
    }
}
