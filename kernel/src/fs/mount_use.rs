//! [`MountUse`]: that somebody uses a mount.
//!
//! A mount has an owner for each description that was opened through it, each working directory. With several cores, all that open and close files would write the
//! count of its owners. So each core keeps a few owners that are not used just now, for its next ones: all of the mount that was used last.
//!
//! Who wants to know whether a mount is in use has them [given up](give_up_spare) first. A mount that is in no tree gets no spare owners any more: it ends with its
//! last user.

use core::ops::Deref;

use frame::cpu::PerCore;
use refs::{SpinLock, StrongRc, TempRc, WeakRc};

use super::Mount;

/// How many owners a core keeps that are not used. More than the descriptions that end together: see [`look`](refs::reclaim::look).
const KEPT: usize = 24;

/// The use of a mount: one of its owners.
pub struct MountUse(Option<StrongRc<Mount>>);

/// The owners that a core keeps, all of one mount.
struct Spare {
    owners: [Option<StrongRc<Mount>>; KEPT],
    count: usize,
}

/// On lines of its own: nearly always only its core touches it.
#[repr(align(64))]
struct OfCore(SpinLock<Spare>);

static SPARE: PerCore<OfCore> = PerCore::new(OfCore::new());

impl OfCore {
    const fn new() -> Self {
        OfCore(SpinLock::new(Spare::new()))
    }
}

/// Makes what each core keeps. At boot.
pub fn start() {
    SPARE.make(frame::cpu::count(), OfCore::new);
}

impl MountUse {
    /// One more use of a mount; `None` if it is gone.
    #[inline(always)]
    pub fn of(mount: &TempRc<'_, Mount>) -> Option<Self> {
        if frame::cpu::count() > 1
            && let Some(owner) = take_spare(mount.downgrade())
        {
            return Some(MountUse(Some(owner)));
        }
        Some(MountUse(Some(mount.share()?)))
    }

    /// The mount is used once more.
    pub fn share(&self) -> Self {
        MountUse(self.0.as_ref().map(StrongRc::share))
    }
}

impl From<StrongRc<Mount>> for MountUse {
    fn from(owner: StrongRc<Mount>) -> Self {
        MountUse(Some(owner))
    }
}

impl Deref for MountUse {
    type Target = StrongRc<Mount>;

    #[inline(always)]
    fn deref(&self) -> &StrongRc<Mount> {
        self.0.as_ref().expect("it is taken out only where the use ends")
    }
}

impl Drop for MountUse {
    #[inline]
    fn drop(&mut self) {
        if frame::cpu::count() > 1
            && let Some(owner) = self.0.take()
        {
            keep_spare(owner);
        }
    }
}

#[cold]
#[inline(never)]
fn take_spare(mount: WeakRc<Mount>) -> Option<StrongRc<Mount>> {
    SPARE[frame::cpu::current_core()].0.with(|spare| {
        let place = spare.owners.get_mut(spare.count.checked_sub(1)?)?;
        if place.as_ref()?.downgrade() != mount {
            return None;
        }
        spare.count -= 1;
        place.take()
    })
}

#[cold]
#[inline(never)]
fn keep_spare(owner: StrongRc<Mount>) {
    // What is not kept ends here, with no lock held.
    let _left = SPARE[frame::cpu::current_core()].0.with(|spare| {
        if !owner.with(Mount::is_in_table) {
            return (Some(owner), None);
        }
        let is_other = spare.owners.iter().flatten().next().is_some_and(|kept| kept.downgrade() != owner.downgrade());
        let others = is_other.then(|| core::mem::replace(spare, Spare::new()));
        let Some(place) = spare.owners.get_mut(spare.count) else { return (Some(owner), others) };
        *place = Some(owner);
        spare.count += 1;
        (None, others)
    });
}

impl Spare {
    const fn new() -> Self {
        Spare { owners: [const { None }; KEPT], count: 0 }
    }
}

/// Gives up all owners that are kept and not used. None is the last one of a mount that is in the table, which owns it.
pub(super) fn give_up_spare() {
    for core in SPARE.all() {
        drop(core.0.with(|spare| core::mem::replace(spare, Spare::new())));
    }
}
