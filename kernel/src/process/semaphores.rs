//! The sets of semaphores to which the end of a process gives something back: SEM_UNDO of semop(2).
//!
//! The process names each set, and is charged for it; what is given back stands in the set. Its threads share that, as those do that pthread_create(3) makes (CLONE_SYSVSEM).

use alloc::vec::Vec;

use frame::Cx;
use refs::{NoSuspend, SpinLock, WeakRc};

use super::Process;
use crate::error::{Errno, Result};
use crate::ipc::sem::Set;
use crate::reclaim::Held;

/// So many semaphores are looked at for what one [`Held::Timer`] costs.
const SEMAPHORES_EACH: usize = 512;

/// The sets of a process. Of those that are gone it keeps no more names than there are others.
#[derive(Default)]
pub struct Undos(SpinLock<Vec<Undo>>);

/// A set that gets something back.
struct Undo {
    set: WeakRc<Set>,
    /// How many [`Held::Timer`] are charged for it.
    charged: u32,
}

impl Process {
    /// A set is to get something back when the process ends.
    ///
    /// # Errors
    /// ENOMEM: there is none, or the budget of its group has no room.
    pub fn undo_at_end(&self, name: WeakRc<Set>, cx: &Cx) -> Result<()> {
        let set = name.upgrade(cx).map_err(|_| Errno::EIDRM)?;
        let charged = 1 + (set.len / SEMAPHORES_EACH) as u32;
        self.hold(Held::Timer, charged, cx)?;
        let mut undos = self.undos.0.lock(cx);
        let mut gone = 0;
        if undos.len() == undos.capacity() {
            undos.retain(|undo| {
                gone += if undo.set.is_gone() { undo.charged } else { 0 };
                !undo.set.is_gone()
            });
        }
        let has_room = undos.try_reserve(1).is_ok();
        if has_room {
            undos.push(Undo { set: name, charged });
        } else {
            gone += charged;
        }
        drop(undos);
        self.let_go(Held::Timer, gone, cx);
        if has_room { Ok(()) } else { Err(Errno::ENOMEM) }
    }

    /// It has ended: one of the sets gets back what it is to get; whether there are more. (What was charged goes with the process.)
    pub(super) fn undo_next(&self, cx: &impl NoSuspend) -> bool {
        let Some(Undo { set, .. }) = self.undos.0.lock(cx).pop() else { return false };
        if let Ok(set) = set.upgrade(cx) {
            set.undo(self.pid, cx);
        }
        true
    }
}
