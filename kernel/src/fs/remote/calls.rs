//! What steps have asked, and is not answered or not taken out yet.
//!
//! A call is known by the task that asks and by its kind, of which each task has one at most. One whose answer nobody takes out (the task was killed, or its step ended otherwise) is forgotten after [`KEPT`].

use alloc::boxed::Box;
use alloc::collections::BTreeMap;
use alloc::vec::Vec;
use core::ops::Bound;

use frame::Cx;
use frame::mm::UFrame;
use ninep::SetAttributes;
use refs::{SpinLock, StrongRc, TempRc, WaitList, WeakRc};
use tasks::TaskRef;

use crate::error::Result;
use crate::fs::{FileKind, Inode, Rename};

/// So many nanoseconds an answer is kept.
const KEPT: u64 = 10_000_000_000;
/// With each new call so many others are looked at, whether they are to be forgotten.
const LOOKED_AT: usize = 16;
/// Those who wait do so in so many lists.
const LISTS: usize = 16;

/// The number of no call.
pub const NO_CALL: u64 = 0;

/// Names an inode, whatever becomes of it.
pub type Name = WeakRc<Inode>;

/// What is asked of the server.
#[derive(Clone, PartialEq)]
pub enum Question {
    /// What a name of a directory leads to.
    Lookup { directory: Name, name: Box<[u8]> },
    /// Whether a file is still what its name leads to, and as it was; and that it be opened there.
    Open { inode: Name, writes: bool },
    /// What stat(2) tells.
    Attributes { inode: Name },
    /// The names of a directory.
    List { directory: Name },
    /// Makes a file.
    Create { directory: Name, name: Box<[u8]>, kind: FileKind, permissions: u32, owner: (u32, u32), target: Box<[u8]> },
    /// Gives a file one more name.
    Link { directory: Name, name: Box<[u8]>, target: Name },
    /// Takes a name out.
    Unlink { directory: Name, name: Box<[u8]>, is_directory: bool },
    /// Moves a name.
    Rename { from: Name, name: Box<[u8]>, to: Name, new_name: Box<[u8]>, how: Rename },
    /// Changes metadata or the length.
    Set { inode: Name, set: SetAttributes },
    /// Writes so many bytes there (`None`: at the end).
    Write { inode: Name, offset: Option<u64>, len: usize },
    /// Has what was written kept.
    Sync { inode: Name, data_only: bool },
}

/// What comes of it.
pub enum Answer {
    /// It is done.
    Done,
    /// The inode that was found or made.
    Found(StrongRc<Inode>),
    /// A name leads elsewhere by now, or nowhere: it is to be looked up anew.
    Stale,
    /// So many bytes were written, up to that offset.
    Written(usize, u64),
}

/// A name and what it led to before a change.
pub struct Before {
    directory: Name,
    name: Box<[u8]>,
    inode: Option<StrongRc<Inode>>,
}

impl Before {
    /// What `name` in `directory` leads to now.
    pub fn of(directory: &TempRc<'_, Inode>, name: &[u8], inode: Option<&TempRc<'_, Inode>>) -> Self {
        Before { directory: directory.downgrade(), name: name.into(), inode: inode.and_then(TempRc::share) }
    }
}

/// One question of a task.
struct Call {
    number: u64,
    question: Question,
    before: Vec<Before>,
    /// The answer, and since when it is there.
    outcome: Option<(Result<Answer>, u64)>,
}

/// How far a question has come.
pub enum Progress {
    /// The answer.
    Answered(Result<Answer>),
    /// It is under way, under this number.
    UnderWay(u64),
    /// It is to begin, under this number.
    New(u64),
}

/// The calls of a volume.
#[derive(Default)]
pub struct Calls {
    table: SpinLock<Table>,
    waiting: [WaitList; LISTS],
}

#[derive(Default)]
struct Table {
    next: u64,
    calls: BTreeMap<(TaskRef, u8), Call>,
    /// The last that was looked at whether it is to be forgotten.
    looked_at: Option<(TaskRef, u8)>,
}

impl Table {
    /// Takes out calls whose answers nobody wants any more: a few at a time, in turn.
    fn forget_some(&mut self, now: u64) -> Vec<Call> {
        let from = self.looked_at.map_or(Bound::Unbounded, Bound::Excluded);
        let some = self.calls.range((from, Bound::Unbounded)).take(LOOKED_AT);
        let some: Vec<_> = some.map(|(key, call)| (*key, call.is_old(now))).collect();
        self.looked_at = some.last().map(|(key, _)| *key);
        some.iter().filter(|(_, is_old)| *is_old).filter_map(|(key, _)| self.calls.remove(key)).collect()
    }
}

/// What a call needs besides its question.
pub type Payload = Vec<UFrame>;

impl Question {
    /// The inodes it is about: one or two.
    pub fn names(&self) -> (Name, Option<Name>) {
        match self {
            Question::Lookup { directory, .. }
            | Question::List { directory }
            | Question::Create { directory, .. }
            | Question::Unlink { directory, .. } => (*directory, None),
            Question::Open { inode, .. }
            | Question::Attributes { inode }
            | Question::Set { inode, .. }
            | Question::Write { inode, .. }
            | Question::Sync { inode, .. } => (*inode, None),
            Question::Link { directory, target, .. } => (*directory, Some(*target)),
            Question::Rename { from, to, .. } => (*from, Some(*to)),
        }
    }

    fn kind(&self) -> u8 {
        match self {
            Question::Lookup { .. } => 0,
            Question::Open { .. } => 1,
            Question::Attributes { .. } => 2,
            Question::List { .. } => 3,
            Question::Create { .. } => 4,
            Question::Link { .. } => 5,
            Question::Unlink { .. } => 6,
            Question::Rename { .. } => 7,
            Question::Set { .. } => 8,
            Question::Write { .. } => 9,
            Question::Sync { .. } => 10,
        }
    }
}

impl Call {
    fn is_old(&self, now: u64) -> bool {
        self.outcome.as_ref().is_some_and(|(_, since)| now.saturating_sub(*since) > KEPT)
    }
}

impl Calls {
    /// Where those wait who wait for the call of that number.
    pub fn waiting(&self, number: u64) -> &WaitList {
        &self.waiting[number as usize % LISTS]
    }

    /// The answer to a question of the running task, if it has asked and there is one; it is taken out.
    pub fn take(&self, question: &Question, cx: &Cx) -> Option<Result<Answer>> {
        let now = frame::time::now();
        let key = (tasks::current(cx), question.kind());
        let mut table = self.table.lock(cx);
        let call = table.calls.get(&key)?;
        if call.question != *question || call.outcome.is_none() {
            return None;
        }
        let call = table.calls.remove(&key)?;
        drop(table);
        if call.is_old(now) { None } else { call.outcome.map(|(outcome, _)| outcome) }
    }

    /// Whether the running task has asked this and not taken the answer out.
    pub fn is_under_way(&self, question: &Question, cx: &Cx) -> bool {
        let key = (tasks::current(cx), question.kind());
        self.table.lock(cx).calls.get(&key).is_some_and(|call| call.question == *question)
    }

    /// Enters a question of the running task, unless it is there. `before`: what the names led to that it changes.
    pub fn enter(&self, question: &Question, before: impl FnOnce() -> Vec<Before>, cx: &Cx) -> Progress {
        if let Some(outcome) = self.take(question, cx) {
            return Progress::Answered(outcome);
        }
        let now = frame::time::now();
        let key = (tasks::current(cx), question.kind());
        let mut table = self.table.lock(cx);
        if let Some(call) = table.calls.get(&key).filter(|call| call.question == *question) {
            return Progress::UnderWay(call.number);
        }
        let old = table.forget_some(now);
        table.next += 1;
        let number = table.next;
        let call = Call { number, question: question.clone(), before: before(), outcome: None };
        let other = table.calls.insert(key, call);
        // What it owns ends with nothing locked.
        drop(table);
        drop((old, other));
        Progress::New(number)
    }

    /// The running task asks that no more.
    pub fn forget(&self, question: &Question, cx: &Cx) {
        let key = (tasks::current(cx), question.kind());
        let forgotten = self.table.lock(cx).calls.remove(&key);
        // What it owns ends with nothing locked.
        drop(forgotten);
    }

    /// The call of that number is over.
    pub fn answer(&self, asker: TaskRef, question: &Question, number: u64, outcome: Result<Answer>, cx: &Cx) {
        let mut table = self.table.lock(cx);
        let mut left = Some((outcome, frame::time::now()));
        if let Some(call) = table.calls.get_mut(&(asker, question.kind())).filter(|call| call.number == number) {
            call.outcome = left.take();
        }
        drop(table);
        self.waiting(number).wake_all();
    }

    /// What a name led to before a change that the running task has asked for and does not know the outcome of; `None` if there is no such change.
    pub fn before<'cx>(
        &self,
        directory: &TempRc<'_, Inode>,
        name: &[u8],
        cx: &'cx Cx,
    ) -> Option<Option<TempRc<'cx, Inode>>> {
        let me = tasks::current(cx);
        let now = frame::time::now();
        let directory = directory.downgrade();
        let table = self.table.lock(cx);
        let own = table.calls.range((me, 0)..=(me, u8::MAX)).filter(|(_, call)| !call.is_old(now));
        let mut names = own.flat_map(|(_, call)| &call.before);
        let before = names.find(|before| before.directory == directory && *before.name == *name)?;
        Some(before.inode.as_ref().map(|inode| inode.get(cx)))
    }
}
