//! The sets of semaphores to which the end of a process gives something back: SEM_UNDO of semop(2).
//!
//! The process names each set, and is charged for it; what is given back stands in the set. Its threads share that, as those do that pthread_create(3) makes (CLONE_SYSVSEM).

use alloc::vec::Vec;

use frame::Cx;
use refs::{NoSuspend, SpinLock, WeakRc};

use super::Process;
use crate::current::Current;
use crate::error::{Errno, Result};
use crate::ipc::sem::{self, Begun, Set};
use crate::reclaim::Held;
use crate::sched;
use crate::step::{Caller, Interruption, TimeSlice};

/// So many semaphores are looked at and given something for what one [`Held::Timer`] costs.
const SEMAPHORES_EACH: usize = 80;

/// The sets of a process. Of those that are gone it keeps no more names than there are others.
#[derive(Default)]
pub struct Undos(SpinLock<Vec<Undo>>);

/// A set that gets something back.
struct Undo {
    set: WeakRc<Set>,
    /// How many [`Held::Timer`] are charged for it.
    charged: u32,
}

/// How far it is given back.
#[derive(Default)]
struct Undoing {
    current: Option<(Undo, Option<Begun>)>,
    /// What was charged for those that are done.
    charged: u32,
}

/// So many names are looked at for sets that are gone before interrupts are let in.
const LOOKED_AT_ONCE: usize = 2048;

/// A set is to get something back when the calling process ends.
///
/// # Errors
/// ENOMEM: there is none, or the budget of its group has no room. EIDRM.
#[cfg_attr(false, ebb_lint::never_suspends)]
pub fn note_undo(cx: &mut Cx, me: &Current, set: WeakRc<Set>) -> Result<()> {
    let len = set.upgrade(cx).map_err(|_| Errno::EIDRM)?.len;
    let undo = Undo { set, charged: 1 + (len / SEMAPHORES_EACH) as u32 };
    if me.process(cx)?.has_no_room(cx) {
        forget_gone(cx, me)?;
        me.process(cx)?.make_room(cx)?;
    }
    if me.process(cx)?.hold(Held::Timer, undo.charged, cx).is_err() {
        // Sets that are gone are charged for until they are forgotten.
        forget_gone(cx, me)?;
        me.process(cx)?.hold(Held::Timer, undo.charged, cx)?;
    }
    let process = me.process(cx)?;
    let charged = undo.charged;
    let outcome = process.name_set(undo, cx);
    if !matches!(outcome, Ok(true)) {
        process.let_go(Held::Timer, charged, cx);
    }
    outcome.map(|_| ())
}

#[cfg_attr(false, ebb_lint::never_suspends)]
fn forget_gone(cx: &mut Cx, me: &Current) -> Result<()> {
    let mut at = 0;
    while me.process(cx)?.forget_some_gone(&mut at, cx) {
        frame::irq::poll(cx);
    }
    Ok(())
}

impl Process {
    /// Whether one more name has no room.
    fn has_no_room(&self, cx: &Cx) -> bool {
        let undos = self.undos.0.lock(cx);
        undos.len() == undos.capacity()
    }

    /// Makes room for so many more that those that are gone are not looked for again soon.
    fn make_room(&self, cx: &Cx) -> Result<()> {
        let mut undos = self.undos.0.lock(cx);
        let most = undos.capacity() / 2;
        let more = if undos.len() >= most { undos.len() + 1 } else { 1 };
        undos.try_reserve(more).map_err(|_| Errno::ENOMEM)
    }

    /// Enters a set, unless another thread has.
    fn name_set(&self, undo: Undo, cx: &Cx) -> Result<bool> {
        let set = undo.set.upgrade(cx).map_err(|_| Errno::EIDRM)?;
        let mut undos = self.undos.0.lock(cx);
        undos.try_reserve(1).map_err(|_| Errno::ENOMEM)?;
        // Locked all the while, so that the room stays, and a set is named if and only if it has room for what is to be undone.
        let is_new = set.begin_undo(self.pid, cx)?;
        if is_new {
            undos.push(undo);
        }
        Ok(is_new)
    }

    /// Forgets some of those sets that are gone, from a place on; whether there may be more.
    fn forget_some_gone(&self, at: &mut usize, cx: &Cx) -> bool {
        let mut gone = 0;
        let mut undos = self.undos.0.lock(cx);
        for _ in 0..LOOKED_AT_ONCE {
            match undos.get(*at) {
                None => break,
                Some(undo) if undo.set.is_gone() => gone += undos.swap_remove(*at).charged,
                Some(_) => *at += 1,
            }
        }
        let has_more = *at < undos.len();
        drop(undos);
        self.let_go(Held::Timer, gone, cx);
        has_more
    }

    /// Some sets get back what they are to get; whether there is more to do.
    fn undo_some(&self, undoing: &mut Undoing, cx: &impl NoSuspend) -> bool {
        let mut time_slice = TimeSlice::of_end();
        loop {
            let next = || self.undos.0.lock(cx).pop().map(|undo| (undo, None));
            let Some((undo, mut begun)) = undoing.current.take().or_else(next) else { return false };
            if !sem::undo(undo.set, &mut begun, self.pid, &mut time_slice, cx) {
                undoing.current = Some((undo, begun));
                return true;
            }
            undoing.charged += undo.charged;
            if time_slice.is_over() {
                return true;
            }
        }
    }
}

/// The process has no other threads any more: sets get back what they are to get at its end. (What was charged goes with the process.)
pub(super) fn undo_at_end_async(cx: &mut Cx, me: &Current) {
    let mut undoing = Undoing::default();
    while me.process(cx).is_ok_and(|process| process.undo_some(&mut undoing, cx)) {
        sched::pause_in_end_async(cx);
    }
}

/// The sets get it back now: unshare(2) with CLONE_SYSVSEM. Where other threads share it, it stays theirs.
pub fn undo_now_async(cx: &mut Cx, me: &mut Current) -> Result<()> {
    if me.process(cx)?.unfinished_threads() > 1 {
        return Ok(());
    }
    let mut undoing = Undoing::default();
    while me.process(cx)?.undo_some(&mut undoing, cx) {
        me.pause_async(cx, Interruption::Never)?;
    }
    me.process(cx)?.let_go(Held::Timer, undoing.charged, cx);
    Ok(())
}
