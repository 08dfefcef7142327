//! [`Address`]: where a socket can be reached: a path, or an abstract name.

use alloc::collections::BTreeMap;
use alloc::vec::Vec;

use frame::Cx;
use linux_raw_sys::{general::AT_FDCWD, net};
use refs::{SpinLock, TempRc, WeakRc};

use super::Endpoint;
use crate::error::{Errno, Result};
use crate::fs::access::{Subject, Want};
use crate::fs::walk::{self, WalkFlags};
use crate::fs::{FileKind, Inode, VfsCaller, dentry};
use crate::step::{Step, Stop};

/// The size of `struct sockaddr_un`.
pub const MAX_ADDRESS_BYTES: usize = 110;

/// Where a socket can be reached.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Address {
    /// A file of kind socket.
    Path(Vec<u8>),
    /// A name that lives as long as the socket: not in the file system.
    Abstract(Vec<u8>),
}

/// Who has which abstract name.
static ABSTRACT: SpinLock<BTreeMap<Vec<u8>, WeakRc<Endpoint>>> = SpinLock::new(BTreeMap::new());

/// Has the endpoint reached by an abstract name from now on.
///
/// # Errors
/// EADDRINUSE.
pub fn take_abstract(name: &[u8], endpoint: WeakRc<Endpoint>, cx: &Cx) -> Result<()> {
    let mut names = ABSTRACT.lock(cx);
    if names.get(name).is_some_and(|other| !other.is_gone()) {
        return Err(Errno::EADDRINUSE);
    }
    // Names whose sockets are gone are thrown out now and then.
    if names.len().is_power_of_two() {
        names.retain(|_, endpoint| !endpoint.is_gone());
    }
    names.insert(name.to_vec(), endpoint);
    Ok(())
}

/// Makes a file of kind socket, by which nobody is reached yet.
///
/// # Errors
/// EADDRINUSE; the others of mknod(2).
pub fn make_file<'cx>(path: &[u8], me: &dyn VfsCaller, cx: &'cx Cx) -> Step<TempRc<'cx, Inode>> {
    let new = dentry::NewFile { kind: FileKind::Socket, permissions: 0o777, device: Default::default(), target: &[] };
    match dentry::make(dentry::At { directory: AT_FDCWD, path }, &new, me, cx) {
        Err(Stop::Error(Errno::EEXIST)) => Err(Errno::EADDRINUSE.into()),
        made => made,
    }
}

impl Address {
    /// What a `struct sockaddr_un` means; `None` for one without a name.
    ///
    /// # Errors
    /// EINVAL: too long or too short, or of another family.
    pub fn decode(bytes: &[u8]) -> Result<Option<Address>> {
        let (family, name) = bytes.split_first_chunk().ok_or(Errno::EINVAL)?;
        if bytes.len() > MAX_ADDRESS_BYTES || u32::from(u16::from_le_bytes(*family)) != net::AF_UNIX {
            return Err(Errno::EINVAL);
        }
        Ok(match name.first() {
            None => None,
            Some(0) => Some(Address::Abstract(name[1..].to_vec())),
            Some(_) => {
                let end = name.iter().position(|&byte| byte == 0).unwrap_or(name.len());
                Some(Address::Path(name[..end].to_vec()))
            }
        })
    }

    /// As `struct sockaddr_un`; an unnamed one is its family alone.
    pub fn encode(address: Option<&Address>) -> Vec<u8> {
        let mut bytes = (net::AF_UNIX as u16).to_le_bytes().to_vec();
        match address {
            None => {}
            Some(Address::Path(path)) => {
                bytes.extend_from_slice(path);
                bytes.push(0);
            }
            Some(Address::Abstract(name)) => {
                bytes.push(0);
                bytes.extend_from_slice(name);
            }
        }
        bytes
    }

    /// Who is reached here.
    ///
    /// # Errors
    /// ECONNREFUSED: nobody (any more); EACCES; those of path_resolution(7).
    pub fn find(&self, me: &dyn VfsCaller, cx: &Cx) -> Step<WeakRc<Endpoint>> {
        let found = match self {
            Address::Abstract(name) => ABSTRACT.lock(cx).get(name).copied(),
            Address::Path(path) => {
                let found = walk::resolve(AT_FDCWD, path, WalkFlags::FOLLOW, me, cx)?;
                Subject::of(me, cx)?.check(&found.inode, Want::WRITE, cx)?;
                let attachment = found.inode.attachment.lock(cx);
                attachment.as_ref().and_then(|any| any.downcast_ref::<WeakRc<Endpoint>>()).copied()
            }
        };
        Ok(found.filter(|endpoint| !endpoint.is_gone()).ok_or(Errno::ECONNREFUSED)?)
    }
}
