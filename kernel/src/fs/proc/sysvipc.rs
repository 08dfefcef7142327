//! `/proc/sysvipc`: the objects of System V IPC, and what there may be of them in `/proc/sys/kernel`.

use core::sync::atomic::{AtomicI64, Ordering::Relaxed};

use frame::Cx;
use frame::mm::PAGE_SIZE;

use super::text::Text;
use super::{Entry, Target, text};
use crate::credentials::Capability;
use crate::current::Current;
use crate::error::{Errno, Result};
use crate::ipc::{Object, Objects, Permissions, msg, sem, shm};
use crate::sysctl::{self, Tunable};

/// The files.
pub const ENTRIES: &[Entry] = &[text("shm", segments), text("sem", sets), text("msg", queues)];

/// Adds a line for each object of a table.
fn list<T: Object>(
    text: &mut Text,
    header: &str,
    table: &'static Objects<T>,
    cx: &Cx,
    line: impl Fn(&mut Text, i32, &refs::TempRc<'_, T>),
) -> Result<()> {
    let mut from = text.part() as u32;
    if from == 0 {
        text.add_bytes(header.as_bytes());
    }
    while let Some((place, id, object)) = table.next(from, cx) {
        line(text, id, &object);
        from = place + 1;
        if text.ends_part(from.into()) {
            break;
        }
    }
    Ok(())
}

/// Key, id and mode, with which each line begins.
fn begin(text: &mut Text, id: i32, permissions: &Permissions) {
    text.add(format_args!("{:10} {id:10}  {:4o}", permissions.key, permissions.mode));
}

/// Owner and maker.
fn owners(text: &mut Text, permissions: &Permissions) {
    let Permissions { uid, gid, creator_uid, creator_gid, .. } = permissions;
    text.add(format_args!(" {uid:5} {gid:5} {creator_uid:5} {creator_gid:5}"));
}

fn segments(text: &mut Text, _target: &Target, _me: &Current, cx: &Cx) -> Result<()> {
    const HEADER: &str = concat!(
        "       key      shmid perms                  size  cpid  lpid nattch   uid   gid  cuid  cgid",
        "      atime      dtime      ctime                   rss                  swap\n"
    );
    list(text, HEADER, &shm::SEGMENTS, cx, |text, id, segment| {
        let shm::Status { permissions, bytes, attached, past } = shm::status(segment, cx);
        begin(text, id, &permissions);
        text.add(format_args!(" {bytes:21} {:5} {:5}  {attached:5}", past.creator, past.last));
        owners(text, &permissions);
        let resident = segment.resident_pages(cx) * PAGE_SIZE;
        let shm::Past { attached, detached, changed, .. } = past;
        text.add(format_args!(" {attached:10} {detached:10} {changed:10} {resident:21} {:21}\n", 0));
    })
}

fn sets(text: &mut Text, _target: &Target, _me: &Current, cx: &Cx) -> Result<()> {
    const HEADER: &str = "       key      semid perms      nsems   uid   gid  cuid  cgid      otime      ctime\n";
    list(text, HEADER, &sem::SETS, cx, |text, id, set| {
        let (permissions, past) = set.status(cx);
        begin(text, id, &permissions);
        text.add(format_args!(" {:10}", set.len));
        owners(text, &permissions);
        text.add(format_args!(" {:10} {:10}\n", past.operated, past.changed));
    })
}

fn queues(text: &mut Text, _target: &Target, _me: &Current, cx: &Cx) -> Result<()> {
    const HEADER: &str = concat!(
        "       key      msqid perms      cbytes       qnum lspid lrpid   uid   gid  cuid  cgid",
        "      stime      rtime      ctime\n"
    );
    list(text, HEADER, &msg::QUEUES, cx, |text, id, queue| {
        let (permissions, past) = queue.status(cx);
        begin(text, id, &permissions);
        text.add(format_args!("  {:10} {:10} {:5} {:5}", past.bytes, past.count, past.sender, past.receiver));
        owners(text, &permissions);
        text.add(format_args!(" {:10} {:10} {:10}\n", past.sent, past.received, past.changed));
    })
}

/// A number of `/proc/sys/kernel/sem`. As on Linux it may be any, and is shown as it was written; what counts is the nearest one that the kernel allows.
struct Limit {
    governs: &'static Tunable,
    /// By how much what was written is more; below 0: less.
    beyond: AtomicI64,
}

/// The most in a set, in all sets, at once.
static LIMITS: [Limit; 3] = [Limit::of(&sem::MOST_IN_SET), Limit::of(&sem::MOST_IN_ALL), Limit::of(&sem::MOST_AT_ONCE)];

impl Limit {
    const fn of(governs: &'static Tunable) -> Self {
        Limit { governs, beyond: AtomicI64::new(0) }
    }

    fn written(&self) -> i64 {
        self.governs.get() as i64 + self.beyond.load(Relaxed)
    }

    fn set(&self, value: i32) {
        self.governs.set_nearest(value.into());
        self.beyond.store(i64::from(value) - self.governs.get() as i64, Relaxed);
    }
}

/// `/proc/sys/kernel/sem`: the most in a set, in all sets, at once, and sets.
pub fn show_sem(text: &mut Text, _target: &Target, _me: &Current, _cx: &Cx) -> Result<()> {
    let [in_set, in_all, at_once] = [0, 1, 2].map(|number: usize| LIMITS[number].written());
    text.add(format_args!("{in_set}\t{in_all}\t{at_once}\t{}\n", sem::SETS.most.get()));
    Ok(())
}

/// Changes as many of them as are told, in their order.
pub fn set_sem(bytes: &[u8], _target: &Target, me: &Current, cx: &Cx) -> Result<()> {
    me.require(Capability::SysAdmin, cx)?;
    let mut words = sysctl::words(bytes);
    for (limit, word) in LIMITS.iter().zip(&mut words) {
        limit.set(sysctl::number(word)?);
    }
    let Some(most) = words.next() else { return Ok(()) };
    sem::SETS.most.set(u64::from(sysctl::number::<i32>(most)?.cast_unsigned())).map_err(|_| Errno::ERANGE)
}
