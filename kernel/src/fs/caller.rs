//! [`VfsCaller`]: the calling thread, as the VFS and what is built on it know it.

use core::any::Any;

use frame::Cx;
use refs::{Gone, SpinLock, TempRc};

use super::{FileTable, FsContext};
use crate::credentials::Credentials;
use crate::reclaim::Payer;
use crate::signal::Signal;
use crate::step::Caller;
use crate::user_memory::HasMemory;

/// The thread that makes a call. The room that has threads implements it; those below know no more of a thread than this.
///
/// Functions take `&impl VfsCaller`, or `&(impl VfsCaller + ?Sized)` where the others call them too, which costs nothing. The methods of [`File`](super::File) and [`InodeOps`](super::InodeOps) take `&dyn VfsCaller`;
/// files of the rooms above, such as terminals, find out by `Any` which thread it is.
pub trait VfsCaller: Any + Caller + HasMemory {
    /// The same, for those who know no more of it.
    fn as_dyn(&self) -> &dyn VfsCaller;

    /// Its file descriptors.
    ///
    /// # Errors
    /// It has none any more.
    fn files<'cx>(&self, cx: &'cx Cx) -> Result<TempRc<'cx, FileTable>, Gone>;

    /// Its root, working directory and umask.
    ///
    /// # Errors
    /// It has none any more.
    fn fs<'cx>(&self, cx: &'cx Cx) -> Result<TempRc<'cx, FsContext>, Gone>;

    /// Who it acts for.
    ///
    /// # Errors
    /// The thread is gone.
    fn credentials<'cx>(&self, cx: &'cx Cx) -> Result<&'cx SpinLock<Credentials>, Gone>;

    /// The id of its process.
    ///
    /// # Errors
    /// The process is gone.
    fn pid(&self, cx: &Cx) -> Result<u32, Gone>;

    /// A soft resource limit (`RLIMIT_*`) of its process.
    ///
    /// # Errors
    /// The process is gone.
    fn limit(&self, resource: u32, cx: &Cx) -> Result<u64, Gone>;

    /// Who is charged for the end of what its process makes.
    ///
    /// # Errors
    /// The process is gone.
    fn payer(&self, cx: &Cx) -> Result<Payer, Gone>;

    /// Sends it a signal that it has caused itself (SIGPIPE, SIGXFSZ).
    fn raise(&self, signal: Signal, cx: &Cx);
}
