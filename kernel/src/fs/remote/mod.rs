//! Directories of a server, by messages of 9P2000.L: the host's directories.
//!
//! ```text
//!   InodeOps (node) --> Volume::ask --> Call, a task of its own --> Session --> Channel: the driver, the server
//!        |                  absent: the step says so, and is run again when the call is over
//!        '--> the file's page cache --> Session as a device --> Channel
//! ```
//!
//! | file | what it holds |
//! | --- | --- |
//! | `channel` | what a driver provides |
//! | `session` | what was agreed with a server: fids, and asking it |
//! | `device` | content, as the page cache reads it |
//! | `volume` | [`Volume`]: what is mounted, its inodes |
//! | `calls` | the questions of steps that are under way |
//! | `perform` | how they are answered |
//! | `node`, `listing`, `file` | files, the names of a directory, open files |
//!
//! *Questions.* What must be asked of the server a step asks by a [`Question`](calls::Question). A task of its own finds the answer, in straight-line code that suspends; until it has, the step says `Absent`, and is then run again and takes the answer out. A change is made once, however often the step is
//! run: it is known by who asks what. Until the step has taken the answer out, who asked sees the names as they were before: so the walk that is repeated comes to where it was. A caller that is killed leaves its call behind, which goes on to its end.
//!
//! *How fresh things are.* Names and metadata hold for a second, that there is no file of a name for a twentieth. open(2) asks again: what was changed at the server before is seen. Where the time of change or the size is another one, the pages that were read are forgotten. Writes go to the server before write(2) returns, those of one file one after the other.
//!
//! *Who owns what.* A session lives for ever. The [`FileSystem`](super::FileSystem) owns its volume until its last mount ends; the volume owns the inodes; an inode owns its page cache and its fids, and the directory above it. The end of a volume frees its inodes one by one, in the time of whoever gives up the last mount; fids are given back by a task of the session's.
//!
//! *Bad input.* A server may say anything. What cannot be is EIO, and a line in the kernel's log for the first time.

mod calls;
pub mod channel;
mod device;
mod file;
mod listing;
mod node;
mod perform;
mod removals;
mod session;
mod volume;

use alloc::vec::Vec;

use frame::Cx;
use refs::SpinLock;

use channel::Channel;
use session::Session;
pub use volume::mount;

/// All servers.
static SESSIONS: SpinLock<Vec<&'static Session>> = SpinLock::new(Vec::new());

/// Begins to speak to servers. Called once, before the first program, with all that drivers have found.
pub fn start_async(cx: &mut Cx, channels: Vec<&'static dyn Channel>) {
    for channel in channels {
        match session::begin_async(cx, channel) {
            Ok(session) => SESSIONS.lock(cx).push(session),
            Err(error) => {
                crate::log!("the host's directory {} cannot be used: {error:?}", channel.name().escape_ascii());
            }
        }
    }
}

/// The server of that name.
fn session(name: &[u8], cx: &Cx) -> Option<&'static Session> {
    SESSIONS.lock(cx).iter().copied().find(|session| session.channel.name() == name)
}
