//! [`Volume`]: a directory of the host that a machine has as a directory of its own.

use crate::{Error, Result};
use std::ffi::OsString;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::str::FromStr;

/// A directory of the host, and where the guest has it. QEMU itself serves it (9P over virtio), with the rights of whoever runs it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Volume {
    /// The directory.
    pub host: PathBuf,
    /// Where it is mounted in the guest: an absolute path.
    pub guest: String,
    /// Whether the guest may only read it.
    pub is_read_only: bool,
}

impl FromStr for Volume {
    type Err = String;

    /// `HOST:GUEST`, with `:ro` behind it for one that is only read, or `:rw`. What is before the last of the colons that is followed by `/` is the host's path.
    fn from_str(text: &str) -> std::result::Result<Self, String> {
        let (places, is_read_only) = match (text.strip_suffix(":ro"), text.strip_suffix(":rw")) {
            (Some(places), _) => (places, true),
            (None, Some(places)) => (places, false),
            (None, None) => (text, false),
        };
        let (host, guest) = places.rsplit_once(":/").ok_or("expected HOST:GUEST or HOST:GUEST:ro, GUEST absolute")?;
        if host.is_empty() {
            return Err("expected a directory of this machine before the colon".into());
        }
        if guest.contains(['"', '\n']) {
            return Err("a path in the guest cannot have quotes or line ends here".into());
        }
        Ok(Self { host: host.into(), guest: format!("/{guest}"), is_read_only })
    }
}

impl Volume {
    /// Where this machine has the file that the guest has at `path` in the volume; `None` if it is in another place, or there is none.
    pub fn host_path(&self, path: &str) -> Option<PathBuf> {
        let inside = Path::new(path).strip_prefix(&self.guest).ok()?;
        let at_host = self.host.join(inside);
        at_host.is_file().then_some(at_host)
    }

    /// Sees to it that the directory is there: one that is missing is made, as `docker run -v` does.
    ///
    /// # Errors
    /// [`Error::BadVolume`].
    pub fn check(&self) -> Result<()> {
        let bad = |why: String| Error::BadVolume { path: self.host.clone(), why };
        if !self.host.exists() && !self.is_read_only {
            std::fs::create_dir_all(&self.host).map_err(|error| bad(format!("it cannot be made ({error})")))?;
        }
        let metadata = self.host.metadata().map_err(|error| bad(error.to_string()))?;
        if !metadata.is_dir() {
            return Err(bad("it is no directory; give the one that it is in".into()));
        }
        std::fs::read_dir(&self.host).map_err(|error| bad(format!("it cannot be read ({error})"))).map(|_| ())
    }
}

/// What volume `number` is called between QEMU and the guest.
fn tag(number: usize) -> String {
    format!("ebb{number}")
}

/// QEMU's arguments for the directory that has this number in its machine.
pub(crate) fn arguments(number: usize, host: &Path, is_read_only: bool, has_iommu: bool) -> Vec<OsString> {
    let mut served = OsString::from(format!(
        "local,id=volume{number},security_model=none,multidevs=remap,{}path=",
        if is_read_only { "readonly=on," } else { "" }
    ));
    // A comma in a value is written twice.
    served.push(host.to_string_lossy().replace(',', ",,"));
    let device = format!(
        "virtio-9p-pci,fsdev=volume{number},mount_tag={},disable-legacy=on,iommu_platform={}",
        tag(number),
        if has_iommu { "on" } else { "off" }
    );
    vec!["-fsdev".into(), served, "-device".into(), device.into()]
}

/// What mount(2) of the guest is told: whose files are root's there. Nothing if this process is root itself.
fn mount_options() -> String {
    // The owner of a process is that of its directory in /proc.
    match std::fs::metadata("/proc/self") {
        Ok(own) if own.uid() != 0 => format!("hostuid={},hostgid={}", own.uid(), own.gid()),
        _ => "defaults".into(),
    }
}

/// The agent's words for a volume.
pub(crate) fn agent_words(number: usize, volume: &Volume) -> Vec<String> {
    let access = if volume.is_read_only { "ro" } else { "rw" };
    vec!["volume".into(), tag(number), volume.guest.clone(), access.into(), mount_options()]
}

/// The agent's words for the directory of that number as its root.
pub(crate) fn agent_words_of_root(number: usize) -> Vec<String> {
    vec!["root".into(), tag(number), "9p".into(), mount_options()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_volume_has_two_places_and_may_be_read_only() {
        let parse =
            |text: &str| text.parse::<Volume>().map(|it| (it.host.display().to_string(), it.guest, it.is_read_only));
        assert_eq!(parse(".:/work"), Ok((".".into(), "/work".into(), false)));
        assert_eq!(parse("/a:b:/work dir:ro"), Ok(("/a:b".into(), "/work dir".into(), true)));
        assert_eq!(parse("a:/:rw"), Ok(("a".into(), "/".into(), false)));
        for bad in ["", "a", "/a", "a:b", ":/work", "a:/x\"y"] {
            assert!(parse(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn what_is_no_directory_is_refused_and_what_is_missing_is_made() {
        let at = |host: PathBuf, is_read_only| Volume { host, guest: "/x".into(), is_read_only };
        assert!(matches!(at("/etc/passwd".into(), false).check(), Err(Error::BadVolume { .. })));
        assert!(matches!(at("/no/such/place".into(), true).check(), Err(Error::BadVolume { .. })));
        let place = tempfile::tempdir().unwrap();
        let deep = place.path().join("a/b");
        at(deep.clone(), false).check().unwrap();
        assert!(deep.is_dir());
    }

    #[test]
    fn a_file_in_a_volume_has_a_place_on_this_machine() {
        let place = tempfile::tempdir().unwrap();
        std::fs::create_dir(place.path().join("bin")).unwrap();
        std::fs::write(place.path().join("bin/tool"), "").unwrap();
        let volume = Volume { host: place.path().into(), guest: "/v".into(), is_read_only: false };
        assert_eq!(volume.host_path("/v/bin/tool"), Some(place.path().join("bin/tool")));
        for other in ["/v/bin", "/v/other", "/vv/bin/tool", "/bin/tool", "bin/tool"] {
            assert_eq!(volume.host_path(other), None, "{other}");
        }
    }

    #[test]
    fn commas_in_paths_reach_qemu() {
        let arguments = arguments(1, Path::new("/tmp/a,b"), true, false);
        assert!(arguments[1].to_string_lossy().ends_with("readonly=on,path=/tmp/a,,b"));
        assert!(arguments[3].to_string_lossy().contains("mount_tag=ebb1"));
    }
}
