//! Pseudo-terminals: see pty(7).

use alloc::boxed::Box;
use alloc::vec::Vec;

use frame::Cx;
use frame::mm::{Reader, Writer};
use linux_raw_sys::ioctl;
use refs::{SpinLock, StrongRc, Waker, WeakRc};

use super::discipline::MAX_INPUT;
use super::{Line, Slaves, TerminalState, Tty, TtyFile, control, job};
use crate::current::Current;
use crate::error::{Errno, Result};
use crate::fs::fasync::Registration;
use crate::fs::{Events, File, FileEnd, OpenFlags, VfsCaller};
use crate::radix::RadixTree;
use crate::reclaim::Held;
use crate::step::{Step, Stop};
use crate::user_memory::Argument;

/// A pseudo-terminal, as `/dev/pts` knows it.
struct Entry {
    tty: WeakRc<Tty>,
    uid: u32,
    gid: u32,
}

/// All pseudo-terminals.
struct Ptys {
    by_number: RadixTree<Entry>,
    /// All lower numbers are in use.
    lowest: u32,
}

static PTYS: SpinLock<Ptys> = SpinLock::new(Ptys { by_number: RadixTree::new(), lowest: 0 });
/// How many there may be (`/proc/sys/kernel/pty/max`).
const MAX_PTYS: u32 = 4096;
/// What the slave may leave unread in canonical mode before the master's writers wait.
const SLAVE_BACKLOG: usize = 1 << 16;
const _: () = assert!(SLAVE_BACKLOG < MAX_INPUT);

/// The master of a pseudo-terminal.
pub struct MasterFile {
    tty: StrongRc<Tty>,
}

impl Ptys {
    /// The lowest number that is free. Those that are looked at in vain are not looked at again before one below them is free.
    fn lowest_free(&mut self) -> Option<u32> {
        while self.by_number.get(self.lowest).is_some() {
            self.lowest += 1;
        }
        (self.lowest < MAX_PTYS).then_some(self.lowest)
    }

    fn remove(&mut self, number: u32) {
        self.lowest = self.lowest.min(number);
        self.by_number.remove(number);
    }
}

/// Makes a pseudo-terminal: opens `/dev/ptmx`.
///
/// # Errors
/// ENOSPC: there are too many.
pub fn open_master(me: &Current, cx: &Cx) -> Result<Box<dyn File>> {
    crate::memory::admit()?;
    let thread = me.thread(cx)?;
    let credentials = thread.credentials.lock(cx);
    let (uid, gid) = (credentials.users().file_system.number(), credentials.groups().file_system.number());
    drop(credentials);
    let mut ptys = PTYS.lock(cx);
    let number = ptys.lowest_free().ok_or(Errno::ENOSPC)?;
    let tty = Tty::new(Line::Master(number));
    ptys.by_number.insert(number, Entry { tty: tty.downgrade(), uid, gid });
    Ok(Box::new(MasterFile { tty }))
}

/// Opens the slave of a pseudo-terminal: `/dev/pts/N`.
///
/// # Errors
/// ENXIO: there is none of that number. EIO: it is locked.
pub fn open_slave(number: u32, flags: OpenFlags, me: &Current, cx: &Cx) -> Result<Box<dyn File>> {
    let tty = tty(number, cx).ok_or(Errno::ENXIO)?;
    if tty.upgrade(cx).map_err(|_| Errno::ENXIO)?.state.lock(cx).is_locked {
        return Err(Errno::EIO);
    }
    let slaves = slaves_of(tty, cx);
    Ok(Box::new(TtyFile::open(tty, slaves, flags, me, cx)?))
}

/// A share in what tells the master that its slave is open; `None` for a terminal without master.
pub(super) fn slaves_of(tty: WeakRc<Tty>, cx: &Cx) -> Option<StrongRc<Slaves>> {
    let tty = tty.upgrade(cx).ok().filter(|tty| matches!(tty.line, Line::Master(_)))?;
    let mut state = tty.state.lock(cx);
    let there = state.slaves.and_then(|slaves| slaves.upgrade(cx).ok()?.share());
    let is_new = there.is_none();
    let slaves = there.unwrap_or_else(|| StrongRc::new(Slaves));
    state.slaves = Some(slaves.downgrade());
    drop(state);
    if is_new {
        // Whoever waits at the master began when there was no slave whose end it could watch.
        tty.master.wake_all();
    }
    Some(slaves)
}

/// The pseudo-terminal of that number.
pub(super) fn tty(number: u32, cx: &Cx) -> Option<WeakRc<Tty>> {
    PTYS.lock(cx).by_number.get(number).map(|entry| entry.tty)
}

/// The number is free again.
pub(super) fn forget(number: u32) {
    PTYS.with(|ptys| ptys.remove(number));
}

/// The numbers in use, ascending: what `/dev/pts` lists.
pub fn numbers(cx: &Cx) -> Vec<u32> {
    let ptys = PTYS.lock(cx);
    let next = |from| ptys.by_number.next(from).map(|(number, _)| number);
    core::iter::successors(next(0), |number| next(number + 1)).collect()
}

/// The user and the group who own the slave of that number; `None` if there is none.
pub fn owner(number: u32, cx: &Cx) -> Option<(u32, u32)> {
    PTYS.lock(cx).by_number.get(number).map(|entry| (entry.uid, entry.gid))
}

impl TerminalState {
    /// Whether there is memory for what a program writes, with what the line discipline makes of it at most; true where the master has read all.
    pub(super) fn has_memory_for_output(&mut self, count: usize) -> bool {
        const MOST_FOR_A_BYTE: usize = 8;
        self.to_master.is_empty() || self.to_master.try_reserve(count * MOST_FOR_A_BYTE).is_ok()
    }

    /// Whether the slave was open and is not any more.
    fn is_slave_gone(&self) -> bool {
        self.slaves.is_some_and(|slaves| slaves.is_gone())
    }
}

impl File for MasterFile {
    fn end(&self) -> FileEnd {
        FileEnd::Seen
    }

    fn class(&self) -> Held {
        Held::Terminal
    }

    fn read(&self, _offset: u64, to: &mut Writer<'_>, _me: &dyn VfsCaller, cx: &Cx) -> Step<usize> {
        let tty = self.tty.get(cx);
        let mut state = tty.state.lock(cx);
        if to.remaining() == 0 {
            return Ok(0);
        }
        if state.to_master.is_empty() {
            return Err(if state.is_slave_gone() { Errno::EIO.into() } else { Stop::Block });
        }
        let count = to.remaining().min(state.to_master.len());
        let (first, second) = state.to_master.as_slices();
        let in_first = count.min(first.len());
        to.write(&first[..in_first])?;
        to.write(&second[..count - in_first])?;
        state.to_master.drain(..count);
        let takes_output = tty.takes_output(&state, cx);
        drop(state);
        if takes_output {
            tty.output.wake_all();
        }
        Ok(count)
    }

    fn write(&self, _offset: u64, from: &mut Reader<'_>, me: &dyn VfsCaller, cx: &Cx) -> Step<usize> {
        let tty = self.tty.get(cx);
        if from.remaining() == 0 {
            return Ok(0);
        }
        {
            let state = tty.state.lock(cx);
            state.typing.check(Current::of(me)?.thread)?;
            if state.discipline.unread() >= SLAVE_BACKLOG {
                return Err(Stop::Block);
            }
        }
        let mut chunk = [0; 1024];
        let count = from.read(&mut chunk)?;
        // There is something to read then, and whoever reads it wakes the writers.
        if !tty.state.lock(cx).discipline.make_room(&chunk[..count]) {
            return Err(Stop::Block);
        }
        tty.receive(&chunk[..count], cx);
        Ok(count)
    }

    fn writes_in_turn(&self) -> bool {
        true
    }

    fn begin_turn(&self, me: &dyn VfsCaller, cx: &Cx) -> Step<()> {
        self.tty.get(cx).state.lock(cx).typing.begin(Current::of(me)?.thread, None)
    }

    fn end_turn(&self, me: &dyn VfsCaller, cx: &Cx) {
        let tty = self.tty.get(cx);
        if let Ok(me) = Current::of(me)
            && tty.state.lock(cx).typing.end(me.thread)
        {
            tty.master.wake_all();
        }
    }

    fn poll(&self, interest: Events, waker: Option<Waker>, cx: &Cx) -> Events {
        let tty = self.tty.get(cx);
        if let Some(waker) = waker {
            tty.master.register(waker, cx);
            let slaves = tty.state.lock(cx).slaves;
            if let Some(slaves) = slaves.filter(|slaves| !slaves.is_gone()) {
                slaves.watch(waker, cx);
            }
        }
        let state = tty.state.lock(cx);
        let mut events = Events::empty();
        if !state.to_master.is_empty() {
            events |= Events::IN | Events::READ_NORMAL;
        }
        if state.discipline.unread() < SLAVE_BACKLOG {
            events |= Events::OUT | Events::WRITE_NORMAL;
        }
        if state.is_slave_gone() {
            events |= Events::HANG_UP;
        }
        events & (interest | Events::HANG_UP)
    }

    fn fasync(&self, registration: &Registration<'_>, cx: &Cx) -> bool {
        let tty = self.tty.get(cx);
        job::own_by_default(&tty, registration, cx);
        registration.apply(&tty.master_fasync, Events::IN, cx);
        true
    }

    fn ioctl(&self, request: u32, argument: Argument, me: &dyn VfsCaller, cx: &Cx) -> Step<usize> {
        let tty = self.tty.get(cx);
        let Line::Master(number) = tty.line else { return Err(Errno::ENOTTY.into()) };
        let memory = me.memory(cx)?;
        match request {
            ioctl::TIOCGPTN => memory.write(argument.output::<u32>(), &number)?,
            ioctl::TIOCSPTLCK => {
                let is_locked = memory.read(argument.input::<i32>())? != 0;
                tty.state.lock(cx).is_locked = is_locked;
            }
            ioctl::TIOCGPTLCK => {
                let is_locked = i32::from(tty.state.lock(cx).is_locked);
                memory.write(argument.output::<i32>(), &is_locked)?;
            }
            ioctl::FIONREAD => {
                let unread = tty.state.lock(cx).to_master.len() as i32;
                memory.write(argument.output::<i32>(), &unread)?;
            }
            _ => return control::ioctl(&tty, true, request, argument, Current::of(me)?, cx),
        }
        Ok(0)
    }
}
