//! The timers of a process: three interval timers (setitimer(2)) and any number of POSIX timers (timer_create(2)).

use alloc::boxed::Box;
use alloc::collections::BTreeMap;
use core::ops::ControlFlow;
use core::sync::atomic::{AtomicBool, AtomicU32, Ordering};

use frame::Cx;
use frame::irq::IrqCx;
use linux_raw_sys::general as abi;
use refs::{NoSuspend, SpinLock, StrongRc, TempRc, WeakRc};

use super::{Alarm, Expired, SECOND, Setting, Timeline, Timer, TimerClock};
use crate::credentials::Uid;
use crate::error::{Errno, Result};
use crate::heap::{object_bytes, slot_bytes};
use crate::memory::remains::{self, Remainder};
use crate::process::{Process, Thread};
use crate::reclaim::Held;
use crate::signal::{self, Info, Signal};

/// So many timers are taken apart at once.
const PIECE: usize = 16;

/// DELAYTIMER_MAX.
pub const MAX_OVERRUN: u32 = i32::MAX as u32;

/// Which interval timer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Interval {
    /// ITIMER_REAL: SIGALRM by time since boot.
    Real,
    /// ITIMER_VIRTUAL: SIGVTALRM by time on the processor.
    Virtual,
    /// ITIMER_PROF: SIGPROF by time on the processor.
    Profiling,
}

/// By which clock a POSIX timer goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PosixClock {
    /// The wall clock. Times from now are counted by the time since boot, so it does not matter to them when it is set.
    Wall,
    /// A clock that timers go by themselves.
    Timer(TimerClock),
}

impl PosixClock {
    fn timer_clock(self) -> TimerClock {
        match self {
            PosixClock::Wall => TimerClock::Clock(Timeline::Boot),
            PosixClock::Timer(clock) => clock,
        }
    }

    /// A time by this clock, given absolutely or from now, as the timer counts it, and by which clock it does.
    pub fn resolve(self, time: u64, absolute: bool, cx: &Cx) -> (TimerClock, u64) {
        let clock = self.timer_clock();
        match (self, absolute) {
            (PosixClock::Wall, true) => (TimerClock::Clock(Timeline::Wall), time),
            (_, true) => (clock, time),
            (_, false) => (clock, clock.now(cx).saturating_add(time)),
        }
    }
}

/// Whom a POSIX timer tells: `struct sigevent`.
#[derive(Clone, Copy)]
pub enum Target {
    /// SIGEV_NONE.
    Nobody,
    /// SIGEV_SIGNAL: the process, by a signal with a value.
    Process(Signal, u64),
    /// SIGEV_THREAD_ID: one thread.
    Thread(WeakRc<Thread>, Signal, u64),
}

/// The timers of one process.
#[derive(Default)]
pub struct ProcessTimers {
    intervals: SpinLock<[Option<StrongRc<Timer>>; 3]>,
    posix: SpinLock<PosixTimers>,
    next_id: AtomicU32,
    deletions: Deletions,
    /// Goes off when RLIMIT_CPU is reached.
    limit: SpinLock<Option<StrongRc<Timer>>>,
    /// One of these was made: most processes end without.
    had_any: AtomicBool,
}

/// Held while one of the POSIX timers tells somebody: once all were deleted none does. (A type of its own, so that it is a lock of its own where the order of locks is checked.)
#[derive(Default)]
struct Deletions(SpinLock<Generation>);

/// The POSIX timers since all were deleted.
#[derive(Default)]
struct Generation {
    /// How often that was.
    number: u32,
    /// How many of them are armed, once who arms or disarms one has said so: below 0 where it went off before.
    armed: isize,
}

/// POSIX timers by their ids.
#[derive(Default)]
struct PosixTimers {
    by_id: BTreeMap<u32, StrongRc<PosixTimer>>,
    /// Whose they are counted as, while there are any.
    user: u32,
}

/// How many timers the processes of each user have.
static USERS: SpinLock<BTreeMap<u32, u64>> = SpinLock::new(BTreeMap::new());

/// A user has one timer more.
///
/// # Errors
/// EAGAIN: there are `limit`.
fn count_for(user: u32, limit: u64) -> Result<()> {
    USERS.with(|users| {
        let count = users.get(&user).copied().unwrap_or(0);
        if count >= limit {
            return Err(Errno::EAGAIN);
        }
        users.insert(user, count + 1);
        Ok(())
    })
}

/// A user has so many fewer.
fn discount_for(user: u32, less: usize) {
    USERS.with(|users| {
        if let Some(count) = users.get_mut(&user) {
            *count = count.saturating_sub(less as u64);
            if *count == 0 {
                users.remove(&user);
            }
        }
    });
}

/// A POSIX timer.
///
/// Owner: its process. When that ends or executes a program its timers are left as a whole, however many there are: none tells anybody anything from then on, and each goes off once more at most. They are
/// taken apart when nobody else wants to run, or memory is needed ([`crate::memory::remains`]). Nobody waits for that.
pub struct PosixTimer {
    id: u32,
    /// As many deletions of all timers came before it.
    generation: u32,
    /// By which clock it goes.
    pub clock: PosixClock,
    timer: StrongRc<Timer>,
    process: WeakRc<Process>,
    target: Target,
    /// Expirations beyond the first of the signal that was taken last, and of the one that is pending or will be next.
    overruns: SpinLock<(u32, u32)>,
}

impl ProcessTimers {
    /// Sets an interval timer; what it was set to, with the time left.
    pub fn set_interval(&self, which: Interval, process: &TempRc<'_, Process>, setting: Setting, cx: &Cx) -> Setting {
        let mut intervals = self.intervals.lock(cx);
        let timer = intervals[which as usize].get_or_insert_with(|| {
            self.had_any.store(true, Ordering::Relaxed);
            let (clock, signal) = match which {
                Interval::Real => (TimerClock::Clock(Timeline::Boot), Signal::ALRM),
                Interval::Virtual => (Process::cpu_clock(process, cx), Signal::VTALRM),
                Interval::Profiling => (Process::cpu_clock(process, cx), Signal::PROF),
            };
            let process = process.downgrade();
            let tell = move |expired: Expired, cx: &IrqCx| {
                if expired.times > 0 {
                    send(process, Info::kernel(signal), cx);
                }
                ControlFlow::Continue(())
            };
            Timer::new(clock, Box::new(tell))
        });
        let timer = timer.get(cx);
        // Times are given from now.
        let next = setting.next.map(|next| timer.clock(cx).now(cx).saturating_add(next));
        timer.set(Setting { next, ..setting }, cx)
    }

    /// An interval timer's time left and its interval.
    pub fn interval(&self, which: Interval, cx: &Cx) -> Setting {
        self.intervals.lock(cx)[which as usize].as_ref().map_or(Setting::default(), |timer| timer.get(cx).remaining(cx))
    }

    /// Has RLIMIT_CPU kept, after it was set: SIGXCPU each second from the soft limit on, SIGKILL at the hard one.
    pub fn watch_limit(&self, process: &TempRc<'_, Process>, cx: &Cx) {
        let mut limit = self.limit.lock(cx);
        let soft = process.limits.lock(cx).soft(abi::RLIMIT_CPU);
        let timer = (soft != u64::MAX).then(|| {
            self.had_any.store(true, Ordering::Relaxed);
            let name = process.downgrade();
            let tell = move |expired: Expired, cx: &IrqCx| {
                if expired.times > 0 {
                    processor_time_used_up(name, cx);
                }
                ControlFlow::Continue(())
            };
            let timer = Timer::new(Process::cpu_clock(process, cx), Box::new(tell));
            // A limit of 0 is taken for 1, as on Linux.
            let next = Some(soft.max(1).saturating_mul(SECOND));
            timer.get(cx).set(Setting { next, interval: SECOND }, cx);
            timer
        });
        drop(core::mem::replace(&mut *limit, timer));
    }

    /// Makes a POSIX timer; its id. Whom it tells may depend on the id.
    ///
    /// # Errors
    /// EAGAIN if its user has as many as he may (RLIMIT_SIGPENDING: each may have a signal pending), or the budget of the process's group has no room.
    pub fn create(
        &self,
        process: WeakRc<Process>,
        clock: PosixClock,
        target: impl FnOnce(u32) -> Target,
        user: Uid,
        cx: &Cx,
    ) -> Result<u32> {
        crate::memory::admit()?;
        let id = self.next_id.fetch_add(1, Ordering::Relaxed) & i32::MAX as u32;
        let generation = self.deletions.0.lock(cx).number;
        let made = StrongRc::new_cyclic(|name: WeakRc<PosixTimer>| {
            let timer = Timer::new(
                clock.timer_clock(),
                Box::new(move |expired, cx| match name.upgrade(cx) {
                    Ok(timer) => timer.tell(expired, cx),
                    Err(_) => ControlFlow::Break(()),
                }),
            );
            PosixTimer { id, generation, clock, timer, process, target: target(id), overruns: SpinLock::default() }
        });
        let process = process.upgrade(cx)?;
        let limit = process.limits.lock(cx).soft(abi::RLIMIT_SIGPENDING);
        let mut timers = self.posix.lock(cx);
        if timers.by_id.is_empty() {
            timers.user = user.number();
        }
        if timers.by_id.contains_key(&id) {
            // Two thousand million were made since: the next number may be free.
            return Err(Errno::EAGAIN);
        }
        count_for(timers.user, limit)?;
        if process.hold(Held::Timer, 1, cx).is_err() {
            discount_for(timers.user, 1);
            return Err(Errno::EAGAIN);
        }
        self.had_any.store(true, Ordering::Relaxed);
        timers.by_id.insert(id, made);
        Ok(id)
    }

    /// How many bytes of the kernel's its POSIX timers take.
    pub fn kernel_bytes(&self, cx: &Cx) -> usize {
        self.posix.lock(cx).by_id.len() * TIMER_BYTES
    }

    /// Runs `f` on the POSIX timer of that id.
    ///
    /// # Errors
    /// EINVAL if there is none.
    pub fn with<R>(&self, id: u32, cx: &Cx, f: impl FnOnce(&PosixTimer) -> R) -> Result<R> {
        let name = self.posix.lock(cx).by_id.get(&id).map(StrongRc::downgrade).ok_or(Errno::EINVAL)?;
        Ok(f(&*name.upgrade(cx).map_err(|_| Errno::EINVAL)?))
    }

    /// Deletes a POSIX timer.
    ///
    /// # Errors
    /// EINVAL if there is none.
    pub fn delete(&self, process: &Process, id: u32, cx: &Cx) -> Result<()> {
        let removed = {
            let mut timers = self.posix.lock(cx);
            let removed = timers.by_id.remove(&id).ok_or(Errno::EINVAL)?;
            discount_for(timers.user, 1);
            removed
        };
        process.let_go(Held::Timer, 1, cx);
        // It may go off just now: it has told whom it tells when it is disarmed.
        let timer = removed.get(cx);
        let old = timer.timer.get(cx).set(Setting::default(), cx);
        self.count_armed(&timer, old, Setting::default(), cx);
        drop(timer);
        drop(removed);
        Ok(())
    }

    /// Deletes the POSIX timers: execve(2) keeps only the interval timers.
    pub fn delete_all_posix(&self, process: &Process, cx: &impl NoSuspend) {
        if !self.had_any.load(Ordering::Relaxed) {
            return;
        }
        let PosixTimers { by_id: removed, user } = core::mem::take(&mut *self.posix.lock(cx));
        let armed = {
            // Who tells somebody just now has done so from here on.
            let mut generation = self.deletions.0.lock(cx);
            generation.number += 1;
            core::mem::take(&mut generation.armed)
        };
        discount_for(user, removed.len());
        process.let_go(Held::Timer, removed.len() as u32, cx);
        if removed.len() > PIECE {
            let armed = usize::try_from(armed).unwrap_or(0).min(removed.len());
            let bytes = removed.len() * TIMER_BYTES + armed * Alarm::BYTES;
            remains::leave_objects(TimerRemains(removed), bytes);
        }
    }

    /// One of them was set.
    fn count_armed(&self, timer: &PosixTimer, old: Setting, new: Setting, cx: &Cx) {
        let mut generation = self.deletions.0.lock(cx);
        if generation.number == timer.generation {
            generation.armed += isize::from(new.next.is_some()) - isize::from(old.next.is_some());
        }
    }

    /// Stops all timers: the process has ended.
    pub fn stop(&self, process: &Process, cx: &impl NoSuspend) {
        if !self.had_any.load(Ordering::Relaxed) {
            return;
        }
        self.delete_all_posix(process, cx);
        let removed = core::mem::take(&mut *self.intervals.lock(cx));
        drop(removed);
        let removed = self.limit.lock(cx).take();
        drop(removed);
    }
}

impl PosixTimer {
    /// Arms or disarms it, by what [`PosixClock::resolve`] says; what it was set to, with the time left.
    pub fn set(&self, clock: TimerClock, setting: Setting, cx: &Cx) -> Setting {
        *self.overruns.lock(cx) = (0, 0);
        let old = self.timer.get(cx).set_by(clock, setting, cx);
        if let Ok(process) = self.process.upgrade(cx) {
            process.timers.count_armed(self, old, setting, cx);
        }
        old
    }

    /// The time left and the interval.
    pub fn remaining(&self, cx: &Cx) -> Setting {
        self.timer.get(cx).remaining(cx)
    }

    /// How often more than once it had expired when its last signal was taken.
    pub fn overrun(&self, cx: &Cx) -> u32 {
        let (last, current) = *self.overruns.lock(cx);
        if self.is_signal_pending(0, cx) { last } else { current }
    }

    fn tell(&self, Expired { times, is_last }: Expired, cx: &IrqCx) -> ControlFlow<()> {
        let Ok(process) = self.process.upgrade(cx) else { return ControlFlow::Break(()) };
        let mut generation = process.timers.deletions.0.lock(cx);
        if generation.number != self.generation {
            return ControlFlow::Break(());
        }
        if is_last {
            generation.armed -= 1;
        }
        if times == 0 {
            return ControlFlow::Continue(());
        }
        // One expiration is the signal's own; Linux counts up to DELAYTIMER_MAX more.
        let times = times.min(MAX_OVERRUN as u64 + 1) as u32;
        if self.is_signal_pending(times, cx) {
            let mut overruns = self.overruns.lock(cx);
            overruns.1 = overruns.1.saturating_add(times).min(MAX_OVERRUN);
            return ControlFlow::Continue(());
        }
        {
            let mut overruns = self.overruns.lock(cx);
            *overruns = (overruns.1, times - 1);
        }
        match self.target {
            Target::Nobody => {}
            Target::Process(signal, value) => send(self.process, Info::timer(signal, self.id, times - 1, value), cx),
            Target::Thread(thread, signal, value) => {
                if let Ok(thread) = thread.upgrade(cx) {
                    // A queue that is full loses the signal, as on Linux.
                    let _ = signal::send::send_to_thread(
                        &process,
                        &thread,
                        Info::timer(signal, self.id, times - 1, value),
                        cx,
                    );
                }
            }
        }
        ControlFlow::Continue(())
    }

    /// Whether its signal was sent and not taken yet; if so, counts further expirations.
    fn is_signal_pending(&self, times: u32, cx: &impl NoSuspend) -> bool {
        match self.target {
            Target::Nobody => false,
            Target::Process(..) => {
                self.process.upgrade(cx).is_ok_and(|process| process.pending.add_overrun(self.id, times, cx))
            }
            Target::Thread(thread, ..) => {
                thread.upgrade(cx).is_ok_and(|thread| thread.signals.pending.add_overrun(self.id, times, cx))
            }
        }
    }
}

/// What one takes at least.
const TIMER_BYTES: usize = object_bytes::<PosixTimer>()
    + object_bytes::<Timer>()
    + slot_bytes(size_of::<WeakRc<PosixTimer>>())
    + size_of::<(u32, StrongRc<PosixTimer>)>();

/// What is left of the timers of a process that has ended, or executes another program.
struct TimerRemains(BTreeMap<u32, StrongRc<PosixTimer>>);

impl Remainder for TimerRemains {
    fn give_back(&mut self) -> Option<usize> {
        None
    }

    fn free_piece(&mut self) -> Option<usize> {
        let ended = (0..PIECE).map_while(|_| self.0.pop_first()).count();
        (ended > 0).then_some(ended * TIMER_BYTES)
    }
}

/// A process has used the processor for as long as RLIMIT_CPU says, or a whole number of seconds longer.
fn processor_time_used_up(name: WeakRc<Process>, cx: &IrqCx) {
    let Ok(process) = name.upgrade(cx) else { return };
    let hard = process.limits.lock(cx).get(abi::RLIMIT_CPU).map_or(u64::MAX, |limit| limit.hard);
    let used_up = process.cpu_time() >= hard.saturating_mul(SECOND);
    send(name, Info::kernel(if used_up { Signal::KILL } else { Signal::XCPU }), cx);
}

fn send(process: WeakRc<Process>, info: Info, cx: &IrqCx) {
    if let Ok(process) = process.upgrade(cx) {
        // A queue that is full loses the signal, as on Linux.
        let _ = signal::send::send_to_process(&process, info, cx);
    }
}
