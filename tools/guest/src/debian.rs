//! [`Debian`]: a root file system of Debian, made from packages of its archive and kept in a cache.
//!
//! `mmdebstrap` installs the packages into an empty directory and writes that as a tar archive, without the rights of root where user namespaces or `fakechroot`
//! let it. The archive is unpacked, under `fakeroot` for whoever is not root, and `mke2fs`, `mkfs.erofs` or `mksquashfs` makes an image of it. All of that
//! is in a directory beside the image, which is given its name when it is whole. So the cache has whole images only, whatever happens meanwhile.

use crate::error::Doing;
use crate::qemu::find_in_path;
use crate::{Error, Mebibytes, Result};
use rustix::process::{Pid, Signal, kill_process_group};
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use std::collections::VecDeque;
use std::ffi::OsString;
use std::fs;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::io::{self, BufRead, BufReader, PipeReader};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::str::FromStr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::time::Duration;

/// How the recipe is counted: an image that another recipe made is not taken from the cache.
const RECIPE: u32 = 2;

/// The archive where this machine's apt names none.
const ARCHIVE: &str = "http://deb.debian.org/debian";
const SECURITY_ARCHIVE: &str = "http://deb.debian.org/debian-security";
/// What its signatures are checked with.
const KEYRING: &str = "/usr/share/keyrings/debian-archive-keyring.gpg";

/// So many of the last lines of a tool that failed are told.
const TOLD_LINES: usize = 12;
/// How often it is looked whether somebody wants no image any more.
const INTERRUPT_INTERVAL: Duration = Duration::from_millis(100);

/// What the root file system is to have.
#[derive(Debug, Clone, Hash)]
pub struct Debian {
    /// The release: `bookworm`.
    pub suite: Suite,
    /// Packages that are installed, with what they depend on, beside the essential ones and apt.
    pub include: Vec<Package>,
    /// Packages whose files are brought along with what they depend on: apt installs them in the guest, without a network.
    pub download: Vec<Package>,
    /// Packages whose sources are unpacked in `/usr/src`.
    pub source: Vec<Package>,
    /// How large an image of ext2 or ext4 is.
    pub size: Mebibytes,
    /// What kind of file system it is.
    pub format: ImageFormat,
    /// The archive; without one that of this machine's apt.
    pub mirror: Option<String>,
}

/// The name of a release.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Suite(String);

impl FromStr for Suite {
    type Err = String;

    fn from_str(text: &str) -> std::result::Result<Self, String> {
        // It is a part of the image's name, and a word of mmdebstrap's.
        let is_plain = text.starts_with(|c: char| c.is_ascii_alphanumeric())
            && text.chars().all(|c| c.is_ascii_alphanumeric() || c == '-');
        if is_plain { Ok(Self(text.into())) } else { Err("expected a release like bookworm or trixie".into()) }
    }
}

/// The name of a package, with `=VERSION` or `/SUITE` behind it if need be.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Package(String);

impl FromStr for Package {
    type Err = String;

    fn from_str(text: &str) -> std::result::Result<Self, String> {
        let is_plain = |c: char| c.is_ascii_alphanumeric() || "+-.:~=/_".contains(c);
        // The names become words of a shell's.
        let is_name = text.starts_with(|c: char| c.is_ascii_alphanumeric()) && text.chars().all(is_plain);
        if is_name { Ok(Self(text.into())) } else { Err("expected names of Debian's packages: vim,git".into()) }
    }
}

/// A kind of file system that an image can be of.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ImageFormat {
    /// Written and read, with a journal.
    Ext4,
    /// Written and read.
    Ext2,
    /// Only read, compressed.
    Erofs,
    /// Only read, compressed.
    Squashfs,
}

impl ImageFormat {
    /// All of them, by their names.
    pub const ALL: [(&str, Self); 4] =
        [("ext4", Self::Ext4), ("ext2", Self::Ext2), ("erofs", Self::Erofs), ("squashfs", Self::Squashfs)];

    fn name(self) -> &'static str {
        Self::ALL.iter().find(|(_, format)| *format == self).map_or("ext4", |(name, _)| name)
    }

    /// The tool that makes such an image, and the package that has it.
    fn tool(self) -> (&'static str, &'static str) {
        match self {
            Self::Ext4 | Self::Ext2 => ("mke2fs", "e2fsprogs"),
            Self::Erofs => ("mkfs.erofs", "erofs-utils"),
            Self::Squashfs => ("mksquashfs", "squashfs-tools"),
        }
    }
}

impl FromStr for ImageFormat {
    type Err = String;

    fn from_str(text: &str) -> std::result::Result<Self, String> {
        let found = Self::ALL.iter().find(|(name, _)| *name == text);
        found.map(|(_, format)| *format).ok_or_else(|| "expected ext4, ext2, erofs or squashfs".into())
    }
}

/// While an image is made, a signal that would end this process ends the work, so that nothing half made is left.
struct Signals {
    came: Arc<AtomicUsize>,
    is_over: Arc<AtomicBool>,
}

impl Signals {
    fn watch() -> io::Result<Self> {
        let watched = Self { came: Arc::default(), is_over: Arc::default() };
        for number in [SIGHUP, SIGINT, SIGTERM] {
            signal_hook::flag::register_conditional_default(number, Arc::clone(&watched.is_over))?;
            signal_hook::flag::register_usize(number, Arc::clone(&watched.came), number as usize)?;
        }
        Ok(watched)
    }

    /// The signal that came.
    fn came(&self) -> Option<u8> {
        u8::try_from(self.came.load(Ordering::Relaxed)).ok().filter(|&signal| signal != 0)
    }
}

impl Drop for Signals {
    fn drop(&mut self) {
        self.is_over.store(true, Ordering::Relaxed);
    }
}

/// Where images are kept: `$XDG_CACHE_HOME/ebb/images`, or `~/.cache/ebb/images`.
pub fn cache() -> PathBuf {
    let variable = |name| std::env::var_os(name).map(PathBuf::from).filter(|path| path.is_absolute());
    let base = variable("XDG_CACHE_HOME").or_else(|| Some(variable("HOME")?.join(".cache")));
    base.unwrap_or_else(std::env::temp_dir).join("ebb/images")
}

impl Debian {
    /// The image in this cache; made if it is not there, or made anew with [`Cached::Refreshed`]. What is being done is told to `doing`. Until it returns, SIGHUP, SIGINT and SIGTERM end the work.
    ///
    /// # Errors
    /// [`Error::ToolMissing`], [`Error::ImageNotMade`], [`Error::Interrupted`], [`Error::Io`].
    pub fn image(&self, cache: &Path, cached: Cached, doing: &mut dyn FnMut(&str)) -> Result<PathBuf> {
        let archive = self.archive_lines();
        let mut hasher = DefaultHasher::new();
        (RECIPE, self, &archive).hash(&mut hasher);
        let name = format!("debian-{}-{:016x}.{}", self.suite.0, hasher.finish(), self.format.name());
        let path = cache.join(name);
        if path.is_file() && cached == Cached::AsItIs {
            return Ok(path);
        }
        fs::create_dir_all(cache).doing(|| format!("making {}", cache.display()))?;
        let signals = Signals::watch().doing(|| "watching signals".into())?;
        let directory = tempfile::Builder::new().prefix("making-").tempdir_in(cache);
        let directory = directory.doing(|| format!("making a directory in {}", cache.display()))?;
        let made = self.make(&archive, directory.path(), doing, &signals)?;
        fs::rename(&made, &path).doing(|| format!("naming {}", path.display()))?;
        Ok(path)
    }

    fn make(
        &self,
        archive: &[String],
        directory: &Path,
        doing: &mut dyn FnMut(&str),
        signals: &Signals,
    ) -> Result<PathBuf> {
        let mmdebstrap = tool("mmdebstrap", "mmdebstrap")?;
        let (name, package) = self.format.tool();
        let maker = tool(name, package)?;
        let fakeroot = if rustix::process::geteuid().is_root() { None } else { Some(tool("fakeroot", "fakeroot")?) };
        if self.mirror.is_none() && !Path::new(KEYRING).is_file() {
            return Err(Error::ToolMissing { tool: KEYRING, package: "debian-archive-keyring" });
        }
        let (tar, root, image) = (directory.join("root.tar"), directory.join("root"), directory.join("image"));

        doing(&format!("installing packages of {}", self.suite.0));
        let mut install = Command::new(mmdebstrap);
        install.args(self.mmdebstrap_options()).arg(&self.suite.0).arg(&tar).args(archive);
        run(install, "mmdebstrap", signals, |line| progress_of(line).into_iter().for_each(&mut *doing))?;

        doing(&format!("making the image ({})", self.format.name()));
        // One process for both: what fakeroot knows of owners is gone with it.
        let script = "mkdir -p \"$2\"; tar -x -p --numeric-owner --xattrs --xattrs-include='*' -f \"$1\" -C \"$2\"; rm \"$1\"; shift 2; exec \"$@\"";
        let mut pack = match fakeroot {
            Some(fakeroot) => Command::new(fakeroot),
            None => Command::new("env"),
        };
        pack.args(["sh", "-ec", script, "sh"]).args([&tar, &root]).arg(maker);
        pack.args(self.maker_arguments(&root, &image));
        run(pack, name, signals, |_| {})?;
        Ok(image)
    }

    fn mmdebstrap_options(&self) -> Vec<String> {
        let names = |packages: &[Package]| packages.iter().map(|it| it.0.as_str()).collect::<Vec<_>>().join(" ");
        let mut options: Vec<String> = ["--format=tar", "--variant=minbase"].map(String::from).into();
        // apt's lists of packages are small so.
        options.push("--aptopt=Acquire::GzipIndexes \"true\"".into());
        options.push("--aptopt=Acquire::Languages \"none\"".into());
        options.push("--include=apt".into());
        options.extend(self.include.iter().map(|package| format!("--include={}", package.0)));
        if !self.source.is_empty() {
            options.push("--include=dpkg-dev".into());
            let fetch = "mkdir -p /usr/src; cd /usr/src; apt-get -q source";
            let clean = "find . -maxdepth 1 -type f -delete";
            options.push(format!("--customize-hook=chroot \"$1\" sh -ec '{fetch} {}; {clean}'", names(&self.source)));
        }
        if !self.download.is_empty() {
            // What the guest's apt would install: mmdebstrap's leaves out what is recommended.
            let fetch = "apt-get clean; apt-get -q -y -o APT::Install-Recommends=true install --download-only";
            options.push("--skip=cleanup/apt/lists,cleanup/apt/cache".into());
            options.push(format!("--customize-hook=chroot \"$1\" sh -ec '{fetch} {}'", names(&self.download)));
        }
        options.push(format!("--customize-hook={SETTINGS}"));
        options
    }

    fn maker_arguments(&self, root: &Path, image: &Path) -> Vec<OsString> {
        let words = |words: &[&str]| words.iter().map(OsString::from).collect::<Vec<_>>();
        let paths = |first: &Path, second: &Path| vec![first.into(), second.into()];
        match self.format {
            ImageFormat::Ext4 | ImageFormat::Ext2 => {
                let mut arguments = words(&["-q", "-F", "-t", self.format.name(), "-d"]);
                arguments.extend(paths(root, image));
                arguments.push(format!("{}M", self.size.0).into());
                arguments
            }
            ImageFormat::Erofs => [words(&["-zlz4hc"]), paths(image, root)].concat(),
            ImageFormat::Squashfs => [paths(root, image), words(&["-quiet", "-no-progress", "-comp", "zstd"])].concat(),
        }
    }

    /// The lines of `sources.list`: the release with its updates, from this machine's archives or the one that was named.
    fn archive_lines(&self) -> Vec<String> {
        let suite = &self.suite.0;
        let places = match &self.mirror {
            Some(mirror) => vec![(mirror.clone(), suite.clone())],
            None => {
                let known = apt_archives();
                let archive = |label, default: &str| {
                    let found = known.iter().find(|(its_label, _)| its_label == label);
                    found.map_or_else(|| default.to_owned(), |(_, uri)| uri.clone())
                };
                let main = archive("Debian", ARCHIVE);
                let mut places = vec![(main.clone(), suite.clone())];
                // What is not released has no updates.
                if !["sid", "unstable", "experimental"].contains(&suite.as_str()) {
                    places.push((main, format!("{suite}-updates")));
                    places.push((archive("Debian-Security", SECURITY_ARCHIVE), format!("{suite}-security")));
                }
                places
            }
        };
        let kinds: &[&str] = if self.source.is_empty() { &["deb"] } else { &["deb", "deb-src"] };
        let line = |kind: &&str, (uri, suite): &(String, String)| format!("{kind} {uri} {suite} main");
        kinds.iter().flat_map(|kind| places.iter().map(move |place| line(kind, place))).collect()
    }
}

/// Whether an image that is in the cache is taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Cached {
    /// It is taken.
    AsItIs,
    /// It is made anew, and takes the other's place.
    Refreshed,
}

/// What is set in the new system: a name of its own instead of this machine's, and the servers of names that its network tells of; and no daemon is started by the installation of its package, as nobody would
/// start it at the next boot.
const SETTINGS: &str = "set -e; echo ebb >\"$1/etc/hostname\"; ln -sf /proc/net/pnp \"$1/etc/resolv.conf\"; \
    printf '127.0.0.1\\tlocalhost\\n127.0.1.1\\tebb\\n::1\\tlocalhost ip6-localhost\\n' >\"$1/etc/hosts\"; \
    printf '#!/bin/sh\\nexit 101\\n' >\"$1/usr/sbin/policy-rc.d\"; chmod 755 \"$1/usr/sbin/policy-rc.d\"";

/// The archives of Debian's that this machine's apt uses: label and address.
fn apt_archives() -> Vec<(String, String)> {
    let format = "$(ORIGIN)|$(LABEL)|$(REPO_URI)";
    let output = Command::new("apt-get").args(["indextargets", "--format", format, "Created-By: Packages"]).output();
    // A machine without apt has none.
    let text = output.map(|output| String::from_utf8_lossy(&output.stdout).into_owned()).unwrap_or_default();
    let archive = |line: &str| match line.split('|').collect::<Vec<_>>()[..] {
        ["Debian", label, uri] if uri.starts_with("http") => Some((label.to_owned(), uri.to_owned())),
        _ => None,
    };
    text.lines().filter_map(archive).collect()
}

/// A tool of the host's, also one that is for root.
fn tool(name: &'static str, package: &'static str) -> Result<PathBuf> {
    let for_root = ["/usr/sbin", "/sbin"].map(|directory| Path::new(directory).join(name));
    let found = find_in_path(name).or_else(|| for_root.into_iter().find(|path| path.is_file()));
    found.ok_or(Error::ToolMissing { tool: name, package })
}

/// What mmdebstrap says that a person wants to see meanwhile.
fn progress_of(line: &str) -> Option<&str> {
    let steps = ["downloading", "extracting", "installing", "cleaning", "creating", "running apt-get"];
    let step = line.strip_prefix("I: ")?.trim_end_matches("...");
    if step.starts_with("running --customize-hook") {
        return Some("fetching what was asked for beside, and settings");
    }
    steps.iter().any(|known| step.starts_with(known)).then_some(step)
}

/// Runs a tool to its end; `said` is given each line that it writes.
fn run(mut command: Command, tool: &'static str, signals: &Signals, mut said: impl FnMut(&str)) -> Result<()> {
    let starting = || format!("starting {tool}");
    let (output, writer) = io::pipe().doing(starting)?;
    command.stdin(Stdio::null()).stdout(writer.try_clone().doing(starting)?).stderr(writer);
    // A Ctrl-C in the terminal is for this process, which ends the tool in order.
    let mut child = command.process_group(0).spawn().doing(starting)?;
    drop(command);
    let lines = lines_of(output);
    let mut last = VecDeque::new();
    loop {
        match lines.recv_timeout(INTERRUPT_INTERVAL) {
            Ok(line) => {
                said(&line);
                if last.len() == TOLD_LINES {
                    last.pop_front();
                }
                last.push_back(line);
            }
            Err(RecvTimeoutError::Timeout) => {}
            Err(RecvTimeoutError::Disconnected) => break,
        }
        if let Some(signal) = signals.came() {
            end(&mut child);
            return Err(Error::Interrupted(signal));
        }
    }
    let status = child.wait().doing(|| format!("waiting for {tool}"))?;
    if status.success() {
        return Ok(());
    }
    let said = Vec::from(last).join("\n");
    Err(Error::ImageNotMade { tool, advice: advice(&said), said })
}

/// What a tool writes, line by line.
fn lines_of(output: PipeReader) -> mpsc::Receiver<String> {
    let (sender, lines) = mpsc::channel();
    std::thread::spawn(move || {
        for line in BufReader::new(output).split(b'\n').map_while(io::Result::ok) {
            if sender.send(String::from_utf8_lossy(&line).into_owned()).is_err() {
                return;
            }
        }
    });
    lines
}

/// Ends a tool and what it has started; it takes away what it made.
fn end(child: &mut Child) {
    let _ = kill_process_group(Pid::from_child(child), Signal::TERM);
    let _ = child.wait();
}

/// What to do about what a tool said.
fn advice(said: &str) -> &'static str {
    let has = |words: &[&str]| words.iter().any(|word| said.contains(word));
    if has(&["Unable to locate package", "has no installation candidate", "Unable to find a source package"]) {
        "is each package's name right, and in this suite? `apt-cache search WORD` finds names"
    } else if has(&["Could not resolve", "Could not connect", "Temporary failure", "Connection timed out"]) {
        "is there a network? --mirror names another archive"
    } else if has(&[
        "Could not allocate block",
        "No space left in ext2",
        "could not allocate inode",
        "populating file system",
    ]) {
        "the image is too small for all that: --size makes it larger"
    } else if has(&["No space left on device"]) {
        "this machine's disk is full; TMPDIR names another place to install in"
    } else if has(&["NO_PUBKEY", "not signed", "is not available"]) {
        "the archive's keys are missing: apt-get install debian-archive-keyring"
    } else if has(&["chroot mode", "newuidmap", "/etc/subuid", "unprivileged_userns_clone"]) {
        "without the rights of root: apt-get install uidmap (and a line for the user in /etc/subuid and /etc/subgid)"
    } else {
        "`ebb image debian --help` lists what can be chosen"
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn debian() -> Debian {
        Debian {
            suite: Suite("bookworm".into()),
            include: vec![],
            download: vec![],
            source: vec![],
            size: Mebibytes(4096),
            format: ImageFormat::Ext4,
            mirror: Some("http://archive.example/debian".into()),
        }
    }

    /// No signal comes.
    fn silence() -> Signals {
        Signals { came: Arc::default(), is_over: Arc::default() }
    }

    #[test]
    fn names_of_packages_are_no_shell_text() {
        assert!("g++".parse::<Package>().is_ok());
        assert!("vim=2:9.0.1378-2".parse::<Package>().is_ok());
        for bad in ["", "-o", "a b", "a;b", "$(a)", "a'b", "a\nb"] {
            assert!(bad.parse::<Package>().is_err(), "{bad:?}");
        }
    }

    #[test]
    fn a_release_is_a_plain_word() {
        assert!("trixie".parse::<Suite>().is_ok() && "bookworm-backports".parse::<Suite>().is_ok());
        assert!(["", "-x", "../x", "a b"].iter().all(|bad| bad.parse::<Suite>().is_err()));
    }

    #[test]
    fn a_mirror_stands_for_all_archives() {
        let source = vec!["hello".parse().unwrap()];
        let lines = Debian { source, ..debian() }.archive_lines();
        let place = "http://archive.example/debian bookworm main";
        assert_eq!(lines, [format!("deb {place}"), format!("deb-src {place}")]);
    }

    #[test]
    fn an_image_in_the_cache_is_taken_and_other_inputs_have_another() {
        let cache = tempfile::tempdir().unwrap();
        // There is no such archive, so what is not in the cache cannot be made.
        let unknown = Debian { mirror: Some("file:///no/such/archive".into()), ..debian() };
        let mut hasher = DefaultHasher::new();
        (RECIPE, &unknown, unknown.archive_lines()).hash(&mut hasher);
        let path = cache.path().join(format!("debian-bookworm-{:016x}.ext4", hasher.finish()));
        fs::write(&path, "image").unwrap();
        assert_eq!(unknown.image(cache.path(), Cached::AsItIs, &mut |_| {}).unwrap(), path);
        assert!(unknown.image(cache.path(), Cached::Refreshed, &mut |_| {}).is_err());
        let larger = Debian { size: Mebibytes(8192), ..unknown };
        assert!(larger.image(cache.path(), Cached::AsItIs, &mut |_| {}).is_err());
        // Nothing half made is left, and what was there is as it was.
        let names: Vec<_> = fs::read_dir(cache.path()).unwrap().map(|entry| entry.unwrap().path()).collect();
        assert_eq!(names, [path]);
    }

    #[test]
    fn a_tool_that_fails_is_told_with_its_last_lines() {
        let mut command = Command::new("sh");
        command.args(["-c", "seq 100; echo 'E: Unable to locate package x' >&2; exit 3"]);
        let Err(Error::ImageNotMade { said, advice, .. }) = run(command, "sh", &silence(), |_| {}) else {
            panic!("it did not fail");
        };
        assert!(said.starts_with("90\n") && said.ends_with("package x"), "{said}");
        assert!(advice.contains("apt-cache"));
    }

    #[test]
    fn a_signal_ends_the_tool() {
        let mut command = Command::new("sh");
        command.args(["-c", "sleep 1000000 & wait"]);
        let signals = silence();
        signals.came.store(15, Ordering::Relaxed);
        assert!(matches!(run(command, "sh", &signals, |_| {}), Err(Error::Interrupted(15))));
    }

    #[test]
    fn only_steps_are_shown() {
        assert_eq!(progress_of("I: extracting archives..."), Some("extracting archives"));
        assert_eq!(progress_of("I: using /tmp/x as tempdir"), None);
        assert_eq!(progress_of("Get:1 http://archive.example"), None);
    }
}
