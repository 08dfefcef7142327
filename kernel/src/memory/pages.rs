//! [`Pages`]: what a mapping shows. A file's page cache, or the memory of a shared anonymous mapping.
//!
//! A file system keeps a file's data in [`UFrame`]s and gives the same frames to read(2), write(2) and every mapping, so all
//! of them see each other's changes at once. A fault asks for a page with the address space's lock held; so an implementation may take
//! its own locks, but must never reach for an address space.

use core::ops::Range;

use frame::Cx;
use frame::mm::{Access, UFrame};

use super::{BadAccess, Mapped};
use crate::error::Errno;
use crate::step::Step;

/// Pages that can be mapped, by their index from the start of the object.
pub trait Pages: Send + Sync {
    /// The page of that index. The same frame until the object is truncated or the page is cut out of it; a private mapping copies
    /// it before it is written.
    ///
    /// `access` is what will be done *to the object*: [`Access::Write`] only through a shared mapping.
    ///
    /// # Errors
    /// [`BadAccess::BeyondFile`] for a page that lies wholly behind the end; [`BadAccess::NoMemory`].
    fn page(&self, index: u64, access: Access, cx: &Cx) -> core::result::Result<UFrame, BadAccess>;

    /// Whether it must be told ([`page`](Self::page) with [`Access::Write`]) before a mapping writes to a page: then a shared mapping gives the right to write only to who is about to.
    fn is_told_of_writes(&self) -> bool {
        false
    }

    /// Tells `each` those pages of a range (short: some tens of pages) that are in memory already. A fault maps them together with the one
    /// that was asked for.
    fn cached(&self, _indices: Range<u64>, _each: &mut dyn FnMut(u64, UFrame), _cx: &Cx) {}

    /// Cuts pages out of the object: from here on they are zeros for all who see them (MADV_REMOVE). Called with no address space locked. `is_removed` is the
    /// caller's and begins as false; true: they are cut out, but not out of all address spaces.
    ///
    /// # Errors
    /// EOPNOTSUPP where that cannot be done; EPERM if the object is sealed; whatever a step may say.
    fn remove(&self, _indices: Range<u64>, _is_removed: &mut bool, _cx: &Cx) -> Step<()> {
        Err(Errno::EOPNOTSUPP.into())
    }

    /// What memory knows of it; its address is also the object's identity.
    fn mapped(&self) -> &Mapped;
}

/// What mmap(2) makes of an open file.
pub enum Mappable<'a> {
    /// It cannot be mapped (ENODEV).
    No,
    /// Its pages.
    Pages(&'a dyn Pages),
    /// Its pages, which no mapping changes: a shared one that could is refused (ENODEV).
    ReadOnly(&'a dyn Pages),
    /// Zeros, as `/dev/zero`: the mapping is anonymous.
    Zeros,
}
