//! FS_IOC_FIEMAP: where on its disk a file is. The structures are those of Linux's `include/uapi/linux/fiemap.h`.

use frame::Cx;
use linux_raw_sys::ioctl::{
    FIEMAP_EXTENT_LAST, FIEMAP_EXTENT_MERGED, FIEMAP_EXTENT_UNWRITTEN, FIEMAP_FLAG_CACHE, FIEMAP_FLAG_SYNC,
    FS_IOC_FIEMAP,
};
use refs::WeakRc;
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout};

use crate::block::Depth;
use crate::current::Current;
use crate::error::{Errno, Result};
use crate::fs::read_write::sync_async;
use crate::fs::{Extent, NextExtent, OpenFile, OpenFlags};
use crate::step::{Interruption, Patience, Step, Stop, TimeSlice, complete_async};
use crate::user_memory::{Argument, UserInOut, UserOut};

/// What is asked for, and then how many extents there are; an array of them follows.
#[derive(Clone, Copy, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
struct Request {
    /// The first byte.
    start: u64,
    /// How many.
    length: u64,
    /// `FIEMAP_FLAG_*`; with EBADR those that are unknown.
    flags: u32,
    /// How many extents were told.
    mapped: u32,
    /// How many the array has room for; 0: they are only counted.
    room: u32,
    reserved: u32,
}

#[derive(FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
struct Told {
    /// Where in the file it begins, where on the disk, and how many bytes it has.
    at: u64,
    on_disk: u64,
    len: u64,
    reserved: [u64; 2],
    /// `FIEMAP_EXTENT_*`.
    flags: u32,
    more_reserved: [u32; 3],
}

/// What a file can have at most, as Linux's `MAX_LFS_FILESIZE`.
const LARGEST_FILE: u64 = i64::MAX as u64;

/// Whether `request` is this one.
pub fn is_it(request: u32) -> bool {
    request == FS_IOC_FIEMAP
}

/// Tells the extents in a range of a file.
///
/// # Errors
/// EOPNOTSUPP: its file system has none to tell. EBADR: a flag is not known; they are told. EFBIG, EINVAL for no range of a file. EFAULT, EIO.
pub fn ioctl_async(cx: &mut Cx, me: &mut Current, name: WeakRc<OpenFile>, argument: Argument) -> Result<usize> {
    let address = argument.in_out::<Request>();
    let request = complete_async(cx, me, Patience::Forever, |cx, me, _| begin(name, address, me, cx))?;
    if request.flags & FIEMAP_FLAG_SYNC != 0 {
        sync_async(cx, me, name, 0..u64::MAX, Depth::Written)?;
    }
    let extents = UserOut::<Told>::new(address.add(1).address());
    let end = request.start.saturating_add(request.length).min(LARGEST_FILE);
    let mut telling = Telling { at: request.start, mapped: 0, kept: None };
    complete_async(cx, me, Patience::Forever, |cx, me, _| {
        telling.go_on(name, (extents, request.room, end), me, cx)?;
        let answer = Request { mapped: telling.mapped, ..request };
        me.memory(cx)?.write(address.as_output(), &answer)?;
        Ok(0)
    })
}

/// Reads and checks what is asked for.
fn begin(name: WeakRc<OpenFile>, address: UserInOut<Request>, me: &Current, cx: &Cx) -> Step<Request> {
    let open = name.upgrade(cx).map_err(|_| Errno::EBADF)?;
    if open.flags().contains(OpenFlags::PATH) {
        return Err(Errno::EBADF.into());
    }
    let request = me.memory(cx)?.read(address.as_input())?;
    if request.room as usize > u32::MAX as usize / size_of::<Told>() || request.length == 0 {
        return Err(Errno::EINVAL.into());
    }
    if request.start > LARGEST_FILE {
        return Err(Errno::EFBIG.into());
    }
    let unknown = request.flags & !(FIEMAP_FLAG_SYNC | FIEMAP_FLAG_CACHE);
    if unknown != 0 {
        let answer = Request { flags: unknown, mapped: 0, ..request };
        me.memory(cx)?.write(address.as_output(), &answer)?;
        return Err(Errno::EBADR.into());
    }
    Ok(request)
}

/// How far extents were told.
struct Telling {
    /// Where the search goes on.
    at: u64,
    mapped: u32,
    /// Found, and told when it is known whether another one follows.
    kept: Option<Extent>,
}

impl Telling {
    /// Tells what is before `end`, as far as there is room.
    fn go_on(
        &mut self,
        name: WeakRc<OpenFile>,
        (extents, room, end): (UserOut<Told>, u32, u64),
        me: &Current,
        cx: &Cx,
    ) -> Step<()> {
        let open = name.upgrade(cx).map_err(|_| Errno::EBADF)?;
        let inode = open.inode(cx)?;
        let mut time_slice = TimeSlice::default();
        while self.at < end {
            match inode.ops.extent(&inode, self.at..end, cx)? {
                NextExtent::NoneBefore(next) => self.at = next.max(self.at.saturating_add(1)),
                NextExtent::Found(found) => {
                    if self.is_full(room) {
                        return Ok(());
                    }
                    if let Some(before) = self.kept {
                        self.tell(&before, 0, (extents, room), me, cx)?;
                    }
                    self.kept = Some(found);
                    self.at = found.at.saturating_add(found.len.max(1));
                }
            }
            if time_slice.is_over() {
                return Err(Stop::Pause(Interruption::KillOnly));
            }
        }
        match self.kept {
            Some(last) if !self.is_full(room) => self.tell(&last, FIEMAP_EXTENT_LAST, (extents, room), me, cx),
            _ => Ok(()),
        }
    }

    fn is_full(&self, room: u32) -> bool {
        room != 0 && self.mapped == room
    }

    fn tell(
        &mut self,
        extent: &Extent,
        flags: u32,
        (extents, room): (UserOut<Told>, u32),
        me: &Current,
        cx: &Cx,
    ) -> Step<()> {
        let kinds = [(!extent.is_written, FIEMAP_EXTENT_UNWRITTEN), (extent.is_merged, FIEMAP_EXTENT_MERGED)];
        let told = Told {
            at: extent.at,
            on_disk: extent.on_disk,
            len: extent.len,
            reserved: [0; 2],
            flags: kinds.iter().filter(|(is, _)| *is).fold(flags, |all, (_, flag)| all | flag),
            more_reserved: [0; 3],
        };
        if room != 0 {
            me.memory(cx)?.write(extents.add(self.mapped as usize), &told)?;
        }
        self.mapped = self.mapped.saturating_add(1);
        self.kept = None;
        Ok(())
    }
}
