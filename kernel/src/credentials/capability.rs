//! [`Capability`], [`CapabilitySet`] and [`SecureBits`]: see capabilities(7). `docs/src/capabilities.md` says which call needs which.

use bitflags::bitflags;
use linux_raw_sys::general as abi;

use crate::error::{Errno, Result};

macro_rules! capabilities {
    ($($name:ident = $number:ident,)*) => {
        /// A privilege. What each allows is in the book's page on capabilities.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        #[allow(missing_docs)]
        #[repr(u32)]
        pub enum Capability {
            $($name = abi::$number,)*
        }

        impl Capability {
            /// All of them, by their numbers from 0 on.
            pub const ALL: &[Capability] = &[$(Capability::$name),*];

            /// Linux's name, such as `CAP_CHOWN`.
            pub fn name(self) -> &'static str {
                match self {
                    $(Capability::$name => stringify!($number),)*
                }
            }
        }
    };
}

capabilities! {
    Chown = CAP_CHOWN,
    DacOverride = CAP_DAC_OVERRIDE,
    DacReadSearch = CAP_DAC_READ_SEARCH,
    Fowner = CAP_FOWNER,
    Fsetid = CAP_FSETID,
    Kill = CAP_KILL,
    Setgid = CAP_SETGID,
    Setuid = CAP_SETUID,
    Setpcap = CAP_SETPCAP,
    LinuxImmutable = CAP_LINUX_IMMUTABLE,
    NetBindService = CAP_NET_BIND_SERVICE,
    NetBroadcast = CAP_NET_BROADCAST,
    NetAdmin = CAP_NET_ADMIN,
    NetRaw = CAP_NET_RAW,
    IpcLock = CAP_IPC_LOCK,
    IpcOwner = CAP_IPC_OWNER,
    SysModule = CAP_SYS_MODULE,
    SysRawio = CAP_SYS_RAWIO,
    SysChroot = CAP_SYS_CHROOT,
    SysPtrace = CAP_SYS_PTRACE,
    SysPacct = CAP_SYS_PACCT,
    SysAdmin = CAP_SYS_ADMIN,
    SysBoot = CAP_SYS_BOOT,
    SysNice = CAP_SYS_NICE,
    SysResource = CAP_SYS_RESOURCE,
    SysTime = CAP_SYS_TIME,
    SysTtyConfig = CAP_SYS_TTY_CONFIG,
    Mknod = CAP_MKNOD,
    Lease = CAP_LEASE,
    AuditWrite = CAP_AUDIT_WRITE,
    AuditControl = CAP_AUDIT_CONTROL,
    Setfcap = CAP_SETFCAP,
    MacOverride = CAP_MAC_OVERRIDE,
    MacAdmin = CAP_MAC_ADMIN,
    Syslog = CAP_SYSLOG,
    WakeAlarm = CAP_WAKE_ALARM,
    BlockSuspend = CAP_BLOCK_SUSPEND,
    AuditRead = CAP_AUDIT_READ,
    Perfmon = CAP_PERFMON,
    Bpf = CAP_BPF,
    CheckpointRestore = CAP_CHECKPOINT_RESTORE,
}

impl Capability {
    /// The capability of a number.
    ///
    /// # Errors
    /// EINVAL if there is none.
    pub fn new(number: usize) -> Result<Self> {
        Self::ALL.get(number).copied().ok_or(Errno::EINVAL)
    }
}

/// A set of capabilities.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CapabilitySet(u64);

impl CapabilitySet {
    /// None.
    pub const EMPTY: CapabilitySet = CapabilitySet(0);
    /// All that there are.
    pub const ALL: CapabilitySet = CapabilitySet((1 << Capability::ALL.len()) - 1);
    /// Those about files, which go and come with the file-system user id: see capabilities(7), "Effect of user ID changes".
    pub const FILE_SYSTEM: CapabilitySet = CapabilitySet::EMPTY
        .with(Capability::Chown)
        .with(Capability::DacOverride)
        .with(Capability::DacReadSearch)
        .with(Capability::Fowner)
        .with(Capability::Fsetid)
        .with(Capability::LinuxImmutable)
        .with(Capability::MacOverride)
        .with(Capability::Mknod);

    /// From a mask with bit `n` for capability `n`. Bits that mean none are dropped, as capset(2) does.
    pub const fn from_bits(bits: u64) -> Self {
        CapabilitySet(bits & Self::ALL.0)
    }

    /// The mask.
    pub const fn bits(self) -> u64 {
        self.0
    }

    /// Whether the capability is in it.
    #[inline(always)]
    pub const fn contains(self, capability: Capability) -> bool {
        self.0 >> capability as u32 & 1 != 0
    }

    /// With the capability.
    pub const fn with(self, capability: Capability) -> Self {
        CapabilitySet(self.0 | 1 << capability as u32)
    }

    /// Without the capability.
    pub const fn without(self, capability: Capability) -> Self {
        CapabilitySet(self.0 & !(1 << capability as u32))
    }

    /// What is in either.
    pub const fn union(self, other: Self) -> Self {
        CapabilitySet(self.0 | other.0)
    }

    /// What is in both.
    pub const fn intersection(self, other: Self) -> Self {
        CapabilitySet(self.0 & other.0)
    }

    /// What is in this one only.
    pub const fn difference(self, other: Self) -> Self {
        CapabilitySet(self.0 & !other.0)
    }

    /// Whether all of it is in the other.
    pub const fn is_subset(self, other: Self) -> bool {
        self.0 & !other.0 == 0
    }

    /// Whether there is none in it.
    pub const fn is_empty(self) -> bool {
        self.0 == 0
    }
}

/// The capabilities of a file: see capabilities(7), "File capabilities".
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FileCapabilities {
    /// What the program gets, as far as the bounding set allows.
    pub permitted: CapabilitySet,
    /// What it gets if its user has it inheritable.
    pub inheritable: CapabilitySet,
    /// Whether it has them in effect at once.
    pub effective: bool,
}

impl FileCapabilities {
    /// The extended attribute that holds them.
    pub const ATTRIBUTE: &[u8] = b"security.capability";

    /// From the attribute: `struct vfs_cap_data` of version 2, or of version 3 for user 0.
    ///
    /// # Errors
    /// EINVAL for anything else.
    pub fn decode(attribute: &[u8]) -> Result<Self> {
        const VERSION_2: (u32, usize) = (0x0200_0000, 20);
        const VERSION_3: (u32, usize) = (0x0300_0000, 24);
        const EFFECTIVE: u32 = 1;
        let (words, rest) = attribute.as_chunks::<4>();
        let word = |index: usize| words.get(index).map_or(0, |word| u32::from_le_bytes(*word));
        let version = (word(0) & !EFFECTIVE, attribute.len());
        if !rest.is_empty() || !(version == VERSION_2 || (version == VERSION_3 && word(5) == 0)) {
            return Err(Errno::EINVAL);
        }
        let set = |low, high| CapabilitySet::from_bits(u64::from(word(low)) | u64::from(word(high)) << 32);
        Ok(FileCapabilities { permitted: set(1, 3), inheritable: set(2, 4), effective: word(0) & EFFECTIVE != 0 })
    }
}

bitflags! {
    /// How user 0 is treated: see capabilities(7), "The securebits flags". Each has a lock, the next bit.
    #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
    pub struct SecureBits: u32 {
        /// User 0 gets no capabilities when a program is executed.
        const NO_ROOT = 1;
        /// Capabilities do not follow changes of user ids.
        const NO_SETUID_FIXUP = 1 << 2;
        /// Permitted capabilities survive giving up user 0, until a program is executed.
        const KEEP_CAPS = 1 << 4;
        /// Locks `KEEP_CAPS`.
        const KEEP_CAPS_LOCKED = 1 << 5;
        /// No capability becomes ambient.
        const NO_CAP_AMBIENT_RAISE = 1 << 6;
        /// All locks.
        const LOCKS = 0b1010_1010;
        /// The other bits.
        const SWITCHES = 0b0101_0101;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_numbers_are_those_of_linux() {
        for (number, capability) in Capability::ALL.iter().enumerate() {
            assert_eq!(*capability as usize, number, "{}", capability.name());
        }
        assert_eq!(Capability::ALL.len() as u32, abi::CAP_LAST_CAP + 1);
    }

    #[test]
    fn bits_that_mean_nothing_are_dropped() {
        assert_eq!(CapabilitySet::from_bits(u64::MAX), CapabilitySet::ALL);
        assert!(CapabilitySet::from_bits(1 << 63).is_empty());
    }

    /// All source files of the kernel but those of this folder, as one text.
    fn sources() -> std::string::String {
        let mut texts = std::string::String::new();
        let mut folders = std::vec![std::path::PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/src"))];
        while let Some(folder) = folders.pop() {
            for entry in std::fs::read_dir(folder).unwrap() {
                let path = entry.unwrap().path();
                if path.is_dir() {
                    folders.push(path);
                } else if !path.ends_with("credentials/capability.rs") {
                    texts.push_str(&std::fs::read_to_string(path).unwrap());
                }
            }
        }
        texts
    }

    #[test]
    fn the_page_says_of_each_capability_whether_something_needs_it() {
        let page =
            std::fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/../docs/src/capabilities.md")).unwrap();
        let sources = sources();
        for capability in Capability::ALL {
            let start = std::format!("| `{}` | ", capability.name());
            let row = page.lines().find_map(|line| line.strip_prefix(&start)).unwrap_or("nothing here");
            assert!(page.contains(&start), "{}", capability.name());
            let is_used = sources.contains(&std::format!("Capability::{capability:?}"));
            assert_eq!(is_used, !row.starts_with("nothing here"), "{}", capability.name());
        }
    }

    #[test]
    fn the_page_names_only_calls_that_there_are() {
        let page =
            std::fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/../docs/src/capabilities.md")).unwrap();
        let calls =
            std::fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/../docs/src/system-calls.md")).unwrap();
        for row in page.lines().filter(|line| line.starts_with("| `CAP_")) {
            let needs = row.split('|').nth(2).unwrap();
            // Names of calls are the words in code type that are in lower case and no path or setting.
            for name in needs.split('`').skip(1).step_by(2) {
                if name.bytes().all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'_') {
                    assert!(calls.contains(&std::format!("`{name}`")), "{name}");
                }
            }
        }
    }

    #[test]
    fn nobody_asks_whether_an_id_is_0() {
        let sources = sources();
        for question in ["Uid::new(0)", "Gid::new(0)", "number() == 0", "number() != 0"] {
            let of_ids = sources.lines().filter(|line| line.contains(question) && !line.contains("signal"));
            assert_eq!(of_ids.count(), 0, "{question}");
        }
    }
}
