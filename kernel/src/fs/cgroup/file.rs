//! [`Node`], a group's file, and [`GroupFile`], what open(2) makes of it.
//!
//! A text is made when it is read from its start, and the rest of that reading sees the same text. What is written is understood as a whole. Either may take long, for it goes through all members: then it leaves off,
//! others have their turn, and it goes on where it was. How far each caller is stands in the open file.

use alloc::boxed::Box;
use alloc::collections::BTreeMap;
use alloc::vec::Vec;
use core::sync::atomic::{AtomicU64, Ordering};

use frame::Cx;
use frame::mm::{Reader, Writer};
use refs::{SpinLock, TempRc, Waker, WeakRc};

use super::Entry;
use crate::cgroup::{Cgroup, Kill};
use crate::credentials::Credentials;
use crate::current::Current;
use crate::error::{Errno, Result};
use crate::fs::access::Subject;
use crate::fs::inode_file::seek_in;
use crate::fs::proc::Text;
use crate::fs::{Events, File, FileEnd, Inode, InodeOps, Lseek, OpenFlags, VfsCaller};
use crate::process::GroupWalk;
use crate::reclaim::{Calibration, Held};
use crate::sched;
use crate::step::{Interruption, Step, Stop, TimeSlice};

/// The inode of a file.
pub struct Node {
    group: WeakRc<Cgroup>,
    entry: &'static Entry,
}

impl Node {
    pub(super) fn new(group: WeakRc<Cgroup>, entry: &'static Entry) -> Self {
        Node { group, entry }
    }
}

impl InodeOps for Node {
    fn open(
        &self,
        _this: &TempRc<'_, Inode>,
        _flags: OpenFlags,
        me: &dyn VfsCaller,
        cx: &Cx,
    ) -> Step<Option<Box<dyn File>>> {
        group(self.group, self.entry, cx)?;
        let opener = SpinLock::new(me.credentials(cx)?.lock(cx).clone());
        Ok(Some(Box::new(GroupFile {
            group: self.group,
            entry: self.entry,
            opener,
            text: SpinLock::default(),
            seen: AtomicU64::new(0),
            work: SpinLock::default(),
        })))
    }

    fn set_size(&self, _this: &Inode, _size: u64, _cx: &Cx) -> Step<()> {
        Ok(())
    }
}

/// The group, if it is there and has the file.
fn group<'cx>(name: WeakRc<Cgroup>, entry: &Entry, cx: &'cx Cx) -> Result<TempRc<'cx, Cgroup>> {
    let group = name.upgrade(cx).ok().filter(|group| !group.is_removed() && entry.is_in(group, cx));
    group.ok_or(Errno::ENODEV)
}

/// An open file of a group.
struct GroupFile {
    group: WeakRc<Cgroup>,
    entry: &'static Entry,
    /// Who has opened it, for whom it is written.
    opener: SpinLock<Credentials>,
    /// The text as it was when it was last read from the start.
    text: SpinLock<Vec<u8>>,
    /// How often what it tells had changed when it was read last.
    seen: AtomicU64,
    /// What callers, by their threads' ids, have begun and not finished.
    work: SpinLock<BTreeMap<u32, Work>>,
}

/// What was begun: reading and writing need the same.
#[derive(Default)]
pub struct Work {
    /// How far it is in going through members.
    pub walk: Option<GroupWalk>,
    time_slice: TimeSlice,
    /// What was written: what was begun with it goes on with it, whatever has become of the caller's memory.
    written: Vec<u8>,
    /// What is to be read.
    text: Text,
    /// A kill that is under way.
    pub kill: Option<Kill>,
    /// A calibration that is under way.
    pub calibration: Option<Calibration>,
    /// Times in user mode and in the kernel.
    pub times: (u64, u64),
}

impl Work {
    /// Asked after each piece: whether others must have their turn.
    ///
    /// # Errors
    /// They must.
    pub fn check_time(&mut self) -> Step<()> {
        // It has an end, and half of it could be seen.
        if self.time_slice.is_over() { Err(Stop::Pause(Interruption::Never)) } else { Ok(()) }
    }

    /// Measures how fast this machine ends objects.
    ///
    /// # Errors
    /// Others must have their turn.
    pub fn calibrate(&mut self) -> Step<()> {
        while self.calibration.get_or_insert_default().goes_on() {
            self.check_time()?;
        }
        if let Some(calibration) = self.calibration.take() {
            calibration.finish();
        }
        Ok(())
    }

    /// Appends what `format_args!` made.
    pub fn add(&mut self, arguments: core::fmt::Arguments<'_>) {
        self.text.add(arguments);
    }
}

/// A text in the making.
pub type Showing = Work;

/// What was written, and by whom.
pub struct Writing<'a> {
    /// Without the spaces around it.
    pub text: &'a [u8],
    /// Who writes.
    pub me: &'a Current,
    /// Who has opened the file.
    pub opener: &'a SpinLock<Credentials>,
    /// How far it is.
    pub work: Work,
}

impl<'a> Writing<'a> {
    /// Who has opened the file, for permissions.
    pub fn subject(&self, cx: &Cx) -> Subject<'a> {
        Subject::acting_for(self.opener, cx)
    }
}

/// The longest thing that can be written.
const MAX_WRITE: usize = 4096;

impl GroupFile {
    fn event_changes(&self, cx: &Cx) -> u64 {
        let group = self.group.upgrade(cx).ok();
        let own = self.entry.event.zip(group).map_or(0, |(event, group)| event(&group).changes());
        own + self.entry.other_event.map_or(0, |event| event(None, cx))
    }

    /// Runs `f` on what the caller has begun, which is kept if it has to pause.
    fn go_on<R>(&self, me: &Current, cx: &Cx, f: impl FnOnce(&mut Work) -> Step<R>) -> Step<R> {
        let caller = me.thread(cx)?.tid();
        let mut work = self.work.lock(cx).remove(&caller).unwrap_or_default();
        work.time_slice = TimeSlice::of_end();
        let outcome = f(&mut work);
        if matches!(outcome, Err(Stop::Pause(_))) {
            self.work.lock(cx).insert(caller, work);
        } else if work.kill.is_some() {
            sched::leave_ends(cx);
        }
        outcome
    }

    fn make_text(&self, me: &Current, cx: &Cx) -> Step<Vec<u8>> {
        let show = self.entry.show.ok_or(Errno::EINVAL)?;
        self.seen.store(self.event_changes(cx), Ordering::Relaxed);
        self.go_on(me, cx, |work| {
            show(work, &group(self.group, self.entry, cx)?, cx)?;
            Ok(core::mem::take(&mut work.text).into_bytes()?)
        })
    }
}

impl File for GroupFile {
    fn end(&self) -> FileEnd {
        FileEnd::Seen
    }

    fn class(&self) -> Held {
        Held::File
    }

    fn read(&self, offset: u64, to: &mut Writer<'_>, me: &dyn VfsCaller, cx: &Cx) -> Step<usize> {
        // A reader whose memory was missing comes again, and has it made anew.
        if offset == 0 || self.text.lock(cx).is_empty() {
            let text = self.make_text(Current::of(me)?, cx)?;
            *self.text.lock(cx) = text;
        }
        let text = self.text.lock(cx);
        let rest = usize::try_from(offset).ok().and_then(|offset| text.get(offset..)).unwrap_or(&[]);
        Ok(to.write(rest)?)
    }

    fn write(&self, _offset: u64, from: &mut Reader<'_>, me: &dyn VfsCaller, cx: &Cx) -> Step<usize> {
        let len = from.remaining();
        if len > MAX_WRITE {
            return Err(Errno::E2BIG.into());
        }
        let me = Current::of(me)?;
        let caller = me.thread(cx)?.tid();
        let begun = self.work.lock(cx).get_mut(&caller).map(|work| core::mem::take(&mut work.written));
        let bytes = match begun {
            Some(bytes) => bytes,
            None => {
                let mut bytes = alloc::vec![0; len];
                let count = from.read(&mut bytes)?;
                bytes.truncate(count);
                bytes
            }
        };
        // It ends at a zero.
        let text = bytes.split(|&byte| byte == 0).next().unwrap_or_default().trim_ascii();
        let outcome = self.go_on(me, cx, |work| {
            let group = match group(self.group, self.entry, cx) {
                // All are dead, and somebody has removed it meanwhile.
                Err(_) if work.kill.is_some() => return Ok(()),
                group => group?,
            };
            let change = self.entry.change.ok_or(Errno::EINVAL)?;
            let mut writing = Writing { text, me, opener: &self.opener, work: core::mem::take(work) };
            let outcome = change(&mut writing, &group, cx);
            *work = writing.work;
            outcome
        });
        let count = bytes.len();
        if let Some(work) = self.work.lock(cx).get_mut(&caller) {
            work.written = bytes;
        }
        outcome.map(|()| count)
    }

    fn is_seekable(&self) -> bool {
        true
    }

    fn seek(&self, to: Lseek, now: u64, cx: &Cx) -> Step<u64> {
        Ok(seek_in(|| self.text.lock(cx).len() as u64, to, now)?)
    }

    fn is_pollable(&self) -> bool {
        true
    }

    fn poll(&self, interest: Events, waker: Option<Waker>, cx: &Cx) -> Events {
        let always = Events::IN | Events::OUT | Events::READ_NORMAL | Events::WRITE_NORMAL;
        let Ok(group) = self.group.upgrade(cx) else { return interest & always };
        let Some(event) = self.entry.event else { return interest & always };
        let event = event(&group);
        if let Some(waker) = waker {
            event.watch(waker, cx);
            self.entry.other_event.map(|event| event(Some(waker), cx));
        }
        let has_changed = self.event_changes(cx) != self.seen.load(Ordering::Relaxed);
        let told = if has_changed { always | Events::ERROR | Events::PRIORITY } else { always };
        told & (interest | Events::ERROR)
    }
}
