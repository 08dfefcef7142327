//! FIFOs: the pipe behind an inode, and opening it.

use alloc::boxed::Box;

use frame::Cx;
use refs::{StrongRc, WeakRc};

use super::{Pipe, PipeUser};
use crate::error::{Errno, Result};
use crate::fs::{Inode, Mount, OpenFile, OpenFlags, Path, VfsCaller};

/// Opens a FIFO, as far as [`open_step`](crate::fs::open::open_step) came: waits for the other end.
///
/// # Errors
/// As for [`Pipe::open_async`]; ENOENT if the file is gone; EINVAL for O_DIRECT.
pub fn open_fifo_async(
    cx: &mut Cx,
    me: &mut impl VfsCaller,
    mount: WeakRc<Mount>,
    inode: WeakRc<Inode>,
    flags: OpenFlags,
) -> Result<OpenFile> {
    let pipe = pipe_of(&*inode.upgrade(cx).map_err(|_| Errno::ENOENT)?, cx);
    let by = PipeUser::new(&me.credentials(cx)?.lock(cx));
    let file = Pipe::open_async(cx, me, pipe, flags, by)?;
    if flags.contains(OpenFlags::DIRECT) {
        // That can only be set later.
        return Err(Errno::EINVAL);
    }
    let path = Path {
        mount: mount.upgrade(cx).map_err(|_| Errno::ENOENT)?,
        inode: inode.upgrade(cx).map_err(|_| Errno::ENOENT)?,
    };
    let kept =
        flags & !(OpenFlags::CREATE | OpenFlags::TRUNCATE | OpenFlags::CLOSE_ON_EXEC | OpenFlags::NO_CONTROLLING_TTY);
    Ok(OpenFile::of_path(file, kept, path.keep()?))
}

/// The pipe behind a FIFO: made when it is first opened.
fn pipe_of(inode: &Inode, cx: &Cx) -> WeakRc<Pipe> {
    let mut attachment = inode.attachment.lock(cx);
    if let Some(pipe) = attachment.as_ref().and_then(|any| any.downcast_ref::<StrongRc<Pipe>>()) {
        return pipe.downgrade();
    }
    let pipe = Pipe::new();
    let name = pipe.downgrade();
    *attachment = Some(Box::new(pipe));
    name
}
