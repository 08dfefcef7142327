//! The task of a volume that is written: writes back dirty files, commits, makes checkpoints, deletes what nobody uses, and ends the volume.
//!
//! It holds nothing of the volume while it waits. A step that would have to wait for a commit waits for this task; where it is a step of the task itself, the task commits and runs it again.
//!
//! *A commit.* The files whose new blocks it shows are written. Then the volume is closed to changes, and those that have come meanwhile are written; then the commit is taken from the journal and the volume opened again. Only then it is written.
//!
//! *A disk that cannot be written* ends all this: the volume is as it is on the disk, and says EROFS to all who would change it.

use alloc::boxed::Box;
use alloc::collections::BTreeSet;
use alloc::vec::Vec;

use ext::{CommitState, Io, Time};
use frame::Cx;
use refs::{SpinGuard, TempRc, Waker, WeakRc};
use tasks::{Body, Next};

use super::format::{Change, Format};
use super::journal::Changes;
use super::node::{Flush, Node};
use super::state::{State, Stopped};
use super::volume::{View, Volume};
use crate::block::{self, Depth, SyncProgress};
use crate::error::{Errno, Result};
use crate::fs::{Inode, Timestamp};
use crate::sched::{self, Parameters};
use crate::step::{Step, Stop};
use crate::time::{self, Timeline};

/// So many nanoseconds a change waits at most until it is committed, and a page until it is written.
const OLD: u64 = block::cache::OLD;
/// After so many nanoseconds what lacked memory is tried again.
const MEMORY_PAUSE: u64 = 10_000_000;

/// The task.
pub(super) struct VolumeTask<F: Format> {
    volume: WeakRc<Volume<F>>,
}

/// Starts the task of a volume.
pub(super) fn start<F: Format>(volume: WeakRc<Volume<F>>) {
    let task = Box::new(VolumeTask { volume });
    tasks::spawn(&sched::SCHEDULER, task, |words, _| sched::initialise(words, Parameters::default(), None));
}

/// What is to be done in one round.
struct Due {
    dirty: BTreeSet<u64>,
    commits: bool,
    syncs: u64,
    read_only: Option<bool>,
    is_ending: bool,
}

impl<F: Format> Body for VolumeTask<F> {
    fn run_async(&mut self, cx: &mut Cx) -> Next {
        if self.round_async(cx) {
            return Next::End;
        }
        let waker = tasks::prepare(cx);
        let next = match self.volume.upgrade(cx) {
            Ok(volume) => {
                volume.desk.get(cx).work.register(waker, cx);
                volume.next_round(cx)
            }
            Err(_) => Some(0),
        };
        let alarm = match next {
            Some(due) if due <= frame::time::now() => {
                tasks::finish_wait(cx);
                return Next::Again;
            }
            Some(due) => Some(time::wake_at(Timeline::Boot, due, waker, cx)),
            None => None,
        };
        tasks::park_async(cx);
        drop(alarm);
        Next::Again
    }
}

impl<F: Format> Volume<F> {
    /// When the next round is due, in nanoseconds since boot.
    fn next_round(&self, cx: &Cx) -> Option<u64> {
        let (since, committed, is_stopped) = {
            let state = self.state.lock(cx);
            (state.since, state.committed, state.stopped.is_some())
        };
        let desk = self.desk.get(cx);
        let notes = desk.notes.lock(cx);
        let is_due = !notes.doomed.is_empty()
            || notes.is_urgent
            || notes.commit > committed && !is_stopped
            || notes.syncs > notes.synced
            || notes.read_only.is_some()
            || notes.is_ending;
        if is_due {
            return Some(0);
        }
        let since = if is_stopped { None } else { since };
        [since, notes.since].into_iter().flatten().min().map(|since| since.saturating_add(OLD))
    }

    /// What is due.
    fn take_due(&self, cx: &Cx) -> Due {
        let now = frame::time::now();
        let is_old = |since: Option<u64>| since.is_some_and(|since| since.saturating_add(OLD) <= now);
        let since = self.state.lock(cx).since;
        let desk = self.desk.get(cx);
        let mut notes = desk.notes.lock(cx);
        let is_all = notes.syncs > notes.synced || notes.read_only == Some(true) || notes.is_ending;
        let flushes = is_all || notes.is_urgent || is_old(notes.since);
        notes.is_urgent = false;
        if flushes {
            notes.since = None;
        }
        Due {
            dirty: if flushes { core::mem::take(&mut notes.dirty) } else { BTreeSet::new() },
            commits: is_all || core::mem::take(&mut notes.commit) > 0 || is_old(since),
            syncs: notes.syncs,
            read_only: notes.read_only,
            is_ending: notes.is_ending,
        }
    }

    /// Whether one of the task's own steps waits for a commit.
    fn must_commit(&self, cx: &Cx) -> bool {
        let wanted = self.desk.get(cx).notes.lock(cx).commit;
        let state = self.state.lock(cx);
        state.since.is_some() && wanted > state.committed
    }

    /// An inode that has something to be written, be it without a name.
    pub(super) fn any_inode<'cx>(&self, number: u64, cx: &'cx Cx) -> Option<TempRc<'cx, Inode>> {
        let named = self.inodes.get(number, cx);
        named.or_else(|| {
            let nameless = self.desk.get(cx).notes.lock(cx).nameless.get(&number).copied();
            nameless.and_then(|inode| inode.upgrade(cx).ok())
        })
    }
}

impl<F: Format> VolumeTask<F> {
    /// Does what is due; whether the volume has come to its end.
    fn round_async(&mut self, cx: &mut Cx) -> bool {
        let Ok(due) = self.volume.upgrade(cx).map(|volume| volume.take_due(cx)) else { return true };
        self.delete_async(cx);
        if due.read_only == Some(false) {
            self.begin_changes_async(cx);
        }
        let is_last = (due.is_ending || due.read_only == Some(true)) && due.dirty.is_empty();
        for number in due.dirty {
            self.flush_async(cx, number);
        }
        if due.commits {
            self.commit_async(cx);
        }
        let wants_checkpoint = self.with_state(cx, |state| state.wants_checkpoint() || is_last).unwrap_or(false);
        if wants_checkpoint && let Err(error) = self.checkpoint_async(cx) {
            self.fail(error, cx);
        }
        self.finish_syncs_async(cx, due.syncs);
        let Ok(volume) = self.volume.upgrade(cx) else { return true };
        volume.desk.get(cx).progress.wake_all();
        let is_done = is_last && {
            let desk = volume.desk.get(cx);
            let notes = desk.notes.lock(cx);
            notes.doomed.is_empty() && notes.dirty.is_empty() && (due.is_ending || notes.nameless.is_empty())
        };
        drop(volume);
        if is_done {
            self.end_changes_async(cx);
        }
        if is_done && due.is_ending {
            self.give_up(cx);
        }
        is_done && due.is_ending
    }

    /// Tells those who have asked for all to be written that it is.
    fn finish_syncs_async(&self, cx: &mut Cx, syncs: u64) {
        let synced = self.volume.upgrade(cx).map(|volume| volume.desk.get(cx).notes.lock(cx).synced);
        if synced.is_ok_and(|synced| synced >= syncs) {
            return;
        }
        let outcome = self.flush_disk_async(cx);
        if let Err(error) = outcome {
            self.fail(error, cx);
        }
        if let Ok(volume) = self.volume.upgrade(cx) {
            let desk = volume.desk.get(cx);
            desk.notes.lock(cx).synced = syncs;
        }
    }

    /// Runs a step until it is done.
    fn plain_async<T>(
        &self,
        cx: &mut Cx,
        mut step: impl FnMut(&Volume<F>, Option<Waker>, &Cx) -> Step<T>,
    ) -> Result<T> {
        let name = self.volume;
        loop {
            let outcome = block::wait_async(cx, |waker, cx| {
                let volume = name.upgrade(cx).map_err(|_| Errno::EIO)?;
                step(&volume, waker, cx)
            });
            match outcome {
                Err(Errno::ENOMEM) => pause_async(cx),
                outcome => return outcome,
            }
        }
    }

    /// The same for a step that may need a commit first.
    fn step_async<T>(&self, cx: &mut Cx, mut step: impl FnMut(&Volume<F>, Option<Waker>, &Cx) -> Step<T>) -> Result<T> {
        loop {
            let outcome = self.plain_async(cx, |volume, waker, cx| match step(volume, waker, cx) {
                Err(Stop::Absent(_)) if volume.must_commit(cx) => Ok(None),
                outcome => outcome.map(Some),
            });
            match outcome? {
                Some(value) => return Ok(value),
                None => self.commit_async(cx),
            }
        }
    }

    fn with_state<R>(&self, cx: &Cx, with: impl FnOnce(&mut SpinGuard<'_, State>) -> R) -> Result<R> {
        let volume = self.volume.upgrade(cx).map_err(|_| Errno::EIO)?;
        let mut state = volume.state.lock(cx);
        Ok(with(&mut state))
    }

    /// Writes what is dirty of a file.
    fn flush_async(&self, cx: &mut Cx, number: u64) {
        let mut progress = Flush::default();
        let outcome = self.step_async(cx, |volume, waker, cx| {
            let Some(inode) = volume.any_inode(number, cx) else { return Ok(()) };
            match inode.ops_as::<Node<F>>() {
                Some(node) => node.flush(&inode, &mut progress, waker, cx),
                None => Ok(()),
            }
        });
        // What could not be written of its pages, its own cache knows.
        if let Err(error) = outcome {
            crate::log!("an inode cannot be written: {error:?}");
        }
    }

    /// Deletes what has no name and is used by nobody.
    fn delete_async(&self, cx: &mut Cx) {
        loop {
            let front = self.volume.upgrade(cx).ok().and_then(|volume| {
                let desk = volume.desk.get(cx);
                let notes = desk.notes.lock(cx);
                notes
                    .doomed
                    .front()
                    .map(|doomed| (doomed.number, doomed.content.as_ref().map(|cache| cache.downgrade())))
            });
            let Some((number, content)) = front else { return };
            if let Some(content) = content {
                // Its end is the list's: it is here.
                let cut = |_: &Volume<F>, _: Option<Waker>, cx: &Cx| match content.upgrade(cx) {
                    Ok(content) => match content.cut(0..u32::MAX, cx)? {
                        Some(_) => Err(Stop::Again),
                        None => Ok(()),
                    },
                    Err(_) => Ok(()),
                };
                let _ = self.plain_async(cx, cut);
            }
            while self.step_async(cx, |volume, _, cx| {
                volume.change(cx, &Change::Delete(number), |_, _| Ok(())).map(|(done, _)| done.has_more)
            }) == Ok(true)
            {}
            let doomed = self.volume.upgrade(cx).ok().and_then(|volume| {
                let desk = volume.desk.get(cx);
                let mut notes = desk.notes.lock(cx);
                notes.nameless.remove(&number);
                notes.dirty.remove(&number);
                notes.doomed.pop_front()
            });
            drop(doomed);
        }
    }

    /// Commits what was changed.
    fn commit_async(&self, cx: &mut Cx) {
        if self.with_state(cx, |state| state.stopped.is_some() || state.journal.is_none()) != Ok(false) {
            return;
        }
        if let Err(error) = self.try_commit_async(cx) {
            self.fail(error, cx);
        }
        if let Ok(volume) = self.volume.upgrade(cx) {
            volume.desk.get(cx).progress.wake_all();
        }
    }

    fn try_commit_async(&self, cx: &mut Cx) -> Result<()> {
        let mut is_closed = false;
        loop {
            let data = self.with_state(cx, |state| {
                state.is_closed = is_closed;
                core::mem::take(&mut state.data)
            })?;
            if is_closed && data.is_empty() {
                break;
            }
            for cache in data.into_values() {
                let mut progress = SyncProgress::default();
                let mut end = None;
                self.plain_async(cx, |_, waker, cx| {
                    let Ok(cache) = cache.upgrade(cx) else { return Ok(()) };
                    let end = *end.get_or_insert(cache.size());
                    cache.sync(0..end, Depth::Written, &mut progress, waker, cx)
                })?;
            }
            is_closed = true;
        }
        loop {
            let begun = self.with_state(cx, |state| {
                let commit = state.journal.as_mut().ok_or(Errno::EIO)?.commit(now()).map_err(|_| Errno::EIO)?;
                let number = state.running;
                match &commit {
                    CommitState::Nothing => (state.is_closed, state.since) = (false, None),
                    CommitState::Commit(_) => {
                        (state.is_closed, state.since) = (false, None);
                        state.running += 1;
                    }
                    CommitState::CheckpointFirst | CommitState::Busy => {}
                }
                Ok::<_, Errno>((commit, number))
            })?;
            match begun? {
                (CommitState::Nothing, _) => return Ok(()),
                (CommitState::CheckpointFirst, _) => self.checkpoint_async(cx)?,
                (CommitState::Busy, _) => return Err(Errno::EIO),
                (CommitState::Commit(commit), number) => {
                    self.perform_async(cx, commit.ios)?;
                    return self.with_state(cx, |state| {
                        state.committed = number;
                        let Some(journal) = &mut state.journal else { return };
                        journal.commit_done();
                        if !journal.has_log() {
                            state.forget_written(number);
                        }
                    });
                }
            }
        }
    }

    /// Writes to their places what was committed.
    fn checkpoint_async(&self, cx: &mut Cx) -> Result<()> {
        let begun = self.with_state(cx, |state| {
            let committed = state.committed;
            let journal = state.journal.as_mut()?;
            Some(journal.checkpoint().map(|checkpoint| (checkpoint, committed)))
        })?;
        let Some(begun) = begun else { return Ok(()) };
        let (Some(checkpoint), committed) = begun.map_err(|_| Errno::EIO)? else { return Ok(()) };
        self.perform_async(cx, checkpoint.ios)?;
        self.with_state(cx, |state| {
            if let Some(journal) = &mut state.journal {
                journal.checkpoint_done();
            }
            state.forget_written(committed);
        })
    }

    /// Writes blocks and flushes, in order.
    fn perform_async(&self, cx: &mut Cx, ios: Vec<Io>) -> Result<()> {
        let before = self.plain_async(cx, |volume, _, cx| Ok(volume.on().disk.cache(cx).failures()))?;
        for io in ios {
            match io {
                Io::Write { block, bytes } => {
                    let mut done = 0;
                    self.plain_async(cx, |volume, _, cx| volume.write_block(block, &bytes, &mut done, cx))?;
                }
                Io::Flush => self.flush_disk_async(cx)?,
            }
        }
        let after = self.plain_async(cx, |volume, _, cx| Ok(volume.on().disk.cache(cx).failures()))?;
        if before == after { Ok(()) } else { Err(Errno::EIO) }
    }

    /// Has the disk keep what was written.
    fn flush_disk_async(&self, cx: &mut Cx) -> Result<()> {
        let mut progress = SyncProgress::default();
        let before = self.plain_async(cx, |volume, _, cx| Ok(volume.on().disk.cache(cx).failures()))?;
        let sync = |volume: &Volume<F>, waker: Option<Waker>, cx: &Cx| {
            let disk = volume.on().disk.cache(cx);
            disk.sync(0..u64::MAX, Depth::Kept, &mut progress, waker, cx)?;
            if disk.failures() == before { Ok(()) } else { Err(Errno::EIO.into()) }
        };
        self.plain_async(cx, sync)
    }

    /// Nothing is written any more.
    fn fail(&self, error: Errno, cx: &Cx) {
        let Ok(volume) = self.volume.upgrade(cx) else { return };
        {
            let mut state = volume.state.lock(cx);
            state.is_closed = false;
            if state.stopped.is_some() {
                return;
            }
            state.stopped = Some(Stopped::Failed);
        }
        crate::log!(
            "{} on {}: it cannot be written ({error:?}), and is read-only from now on",
            volume.kind,
            volume.on().name()
        );
        volume.desk.get(cx).progress.wake_all();
    }

    /// Notes on the disk that the volume is in use, lets it be changed, and goes on with what a crash has interrupted.
    fn begin_changes_async(&self, cx: &mut Cx) {
        let begun = self.plain_async(cx, |volume, _, cx| {
            let state = volume.state.lock(cx);
            let Some(journal) = state.journal.as_ref().filter(|_| state.stopped == Some(Stopped::ReadOnly)) else {
                return Ok(None);
            };
            let view = View::new(&volume.place, Some(&state), cx);
            let outcome = volume.format.change(&Change::Begin(journal.has_log()), Timestamp::now(), &view);
            outcome.map(|(_, changes)| Some(changes)).map_err(|problem| volume.stop_of(problem, &view))
        });
        let outcome = match begun {
            Ok(Some(changes)) => self.open_to_changes_async(cx, changes),
            begun => begun.map(drop),
        };
        if let Err(error) = outcome {
            self.fail(error, cx);
        }
        self.has_set_read_only(false, cx);
    }

    /// The disk says that the volume is in use when these changes are there; then it can be changed.
    fn open_to_changes_async(&self, cx: &mut Cx, changes: Changes) -> Result<()> {
        self.perform_async(cx, flushed(changes))?;
        self.with_state(cx, |state| state.stopped = None)?;
        self.recover_async(cx)
    }

    /// Goes on with what a crash has interrupted.
    fn recover_async(&self, cx: &mut Cx) -> Result<()> {
        while self.step_async(cx, |volume, _, cx| {
            volume.change(cx, &Change::Recover, |_, _| Ok(())).map(|(done, _)| done.has_more)
        })? {}
        Ok(())
    }

    /// What somebody has asked for is so, unless another has asked for something else since.
    fn has_set_read_only(&self, read_only: bool, cx: &Cx) {
        let Ok(volume) = self.volume.upgrade(cx) else { return };
        let desk = volume.desk.get(cx);
        {
            let mut notes = desk.notes.lock(cx);
            if notes.read_only == Some(read_only) {
                notes.read_only = None;
            }
        }
        desk.progress.wake_all();
    }

    /// All is written: says so on the disk, and lets the volume not be changed any more.
    fn end_changes_async(&self, cx: &mut Cx) {
        let end = self.step_async(cx, |volume, _, cx| {
            let state = volume.state.lock(cx);
            if state.stopped.is_some() {
                return Err(Errno::EIO.into());
            }
            let view = View::new(&volume.place, Some(&state), cx);
            let outcome = volume.format.change(&Change::End, Timestamp::now(), &view);
            outcome.map_err(|problem| volume.stop_of(problem, &view))
        });
        if let Ok((_, changes)) = end {
            let _ = self.perform_async(cx, flushed(changes));
            let _ = self.with_state(cx, |state| state.stopped = Some(Stopped::ReadOnly));
        }
        self.has_set_read_only(true, cx);
    }

    /// Gives the volume up.
    fn give_up(&self, cx: &Cx) {
        let Ok(volume) = self.volume.upgrade(cx) else { return };
        let file_system = volume.file_system;
        drop(volume);
        if let Ok(file_system) = file_system.upgrade(cx) {
            file_system.give_up_kept();
        }
    }
}

/// Writes blocks at their places, and has the disk keep them.
fn flushed(changes: Changes) -> Vec<Io> {
    let writes = changes.into_blocks().into_iter().map(|(block, bytes)| Io::Write { block, bytes });
    writes.chain([Io::Flush]).collect()
}

/// The present, as a journal has it.
fn now() -> Time {
    let now = Timestamp::now();
    Time { seconds: now.seconds, nanos: now.nanoseconds }
}

/// Waits for others to give memory back.
fn pause_async(cx: &mut Cx) {
    let waker = tasks::prepare(cx);
    let alarm = time::wake_at(Timeline::Boot, frame::time::now().saturating_add(MEMORY_PAUSE), waker, cx);
    tasks::park_async(cx);
    drop(alarm);
}
