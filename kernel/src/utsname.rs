//! What the machine says of itself: its names (uname(2)).

use alloc::vec::Vec;

use refs::{NoSuspend, SpinLock};

use crate::error::{Errno, Result};

/// What programs take the kernel for: its system calls are Linux's.
pub const NAME: &str = "Linux";
/// The version of Linux whose system calls these are, and whose kernel this is not.
pub const RELEASE: &str = "6.1.0-ebb";
/// The same for programs that know no version after 2.6 (UNAME26).
pub const RELEASE_26: &str = "2.6.61-ebb";
/// Which Ebb this is.
pub const VERSION: &str = concat!("#1 Ebb ", env!("CARGO_PKG_VERSION"));

/// The longest host or domain name, in bytes.
const MAX_NAME: usize = 64;

struct Names {
    /// `None` until it is set.
    host: Option<Vec<u8>>,
    domain: Option<Vec<u8>>,
}

static NAMES: SpinLock<Names> = SpinLock::new(Names { host: None, domain: None });

/// The host's name.
pub fn host_name(cx: &impl NoSuspend) -> Vec<u8> {
    NAMES.lock(cx).host.clone().unwrap_or_else(|| b"ebb".to_vec())
}

/// The NIS domain's name.
pub fn domain_name(cx: &impl NoSuspend) -> Vec<u8> {
    NAMES.lock(cx).domain.clone().unwrap_or_else(|| b"(none)".to_vec())
}

/// Changes the host's name.
///
/// # Errors
/// EINVAL if it is longer than 64 bytes.
pub fn set_host_name(name: &[u8], cx: &impl NoSuspend) -> Result<()> {
    check_length(name.len())?;
    NAMES.lock(cx).host = Some(name.to_vec());
    Ok(())
}

/// Changes the NIS domain's name.
///
/// # Errors
/// EINVAL if it is longer than 64 bytes.
pub fn set_domain_name(name: &[u8], cx: &impl NoSuspend) -> Result<()> {
    check_length(name.len())?;
    NAMES.lock(cx).domain = Some(name.to_vec());
    Ok(())
}

/// Checks the length of a name before it is read.
///
/// # Errors
/// EINVAL.
pub fn check_length(len: usize) -> Result<()> {
    if len <= MAX_NAME { Ok(()) } else { Err(Errno::EINVAL) }
}
