//! System V IPC and the message queues of POSIX: see [`crate::ipc`].

pub mod mq;
pub mod msg;
pub mod sem;
pub mod shm;
mod texts;

use frame::Cx;
use refs::TempRc;
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout};

use crate::credentials::Credentials;
use crate::current::Current;
use crate::error::{Errno, Result};
use crate::ipc::{Object, Permissions};

/// Requests that all kinds of objects know.
const IPC_RMID: i32 = 0;
const IPC_SET: i32 = 1;
const IPC_STAT: i32 = 2;
const IPC_INFO: i32 = 3;
/// Do not wait.
const IPC_NOWAIT: u32 = 0o4000;

/// `struct ipc64_perm`.
#[derive(Clone, Copy, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
struct IpcPerm {
    key: i32,
    uid: u32,
    gid: u32,
    creator_uid: u32,
    creator_gid: u32,
    mode: u32,
    sequence: u16,
    padding: [u16; 3],
    unused: [u64; 2],
}

const _: () = assert!(size_of::<IpcPerm>() == 48);

impl IpcPerm {
    /// Those of the object of an id.
    fn new(id: i32, permissions: &Permissions) -> Self {
        IpcPerm {
            key: permissions.key,
            uid: permissions.uid,
            gid: permissions.gid,
            creator_uid: permissions.creator_uid,
            creator_gid: permissions.creator_gid,
            mode: permissions.mode,
            sequence: (id as u32 >> 15) as u16,
            padding: [0; 3],
            unused: [0; 2],
        }
    }

    /// What IPC_SET takes of it: owner, group and mode.
    ///
    /// # Errors
    /// EINVAL: nobody has such an id.
    fn owner(&self) -> Result<(u32, u32, u32)> {
        let is_id = self.uid != u32::MAX && self.gid != u32::MAX;
        if is_id { Ok((self.uid, self.gid, self.mode)) } else { Err(Errno::EINVAL) }
    }
}

/// The object that a request asks about, with its id and what the call returns: IPC_STAT has an id, the others (`*_STAT`, `*_STAT_ANY`) a place.
///
/// # Errors
/// EINVAL: there is none.
fn asked<'cx, T: Object>(id_or_place: i32, command: i32, cx: &'cx Cx) -> Result<(i32, TempRc<'cx, T>, usize)> {
    if command == IPC_STAT {
        return Ok((id_or_place, T::table().find(id_or_place, cx)?, 0));
    }
    let (id, object) = T::table().at(id_or_place, cx)?;
    Ok((id, object, id as usize))
}

/// Who asks.
fn who(me: &Current, cx: &Cx) -> Result<Credentials> {
    Ok(me.thread(cx)?.credentials.lock(cx).clone())
}

/// And in which process.
fn pid(me: &Current, cx: &Cx) -> Result<u32> {
    Ok(me.process(cx)?.pid)
}
