//! What the scheduler knows of a task, in the words that the task keeps for it.

use core::sync::atomic::{AtomicU64, Ordering::Relaxed};

use frame::core_set::{CoreSet, WORDS};
use tasks::SchedWords;

use super::group::{self, Counted};

/// The highest real-time priority.
pub const MAX_PRIORITY: u8 = 99;

/// The real-time priority of the kernel's own tasks that go before all programs.
pub const ABOVE_ALL: u8 = MAX_PRIORITY + 1;

/// The scheduling policies of sched(7).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Class {
    /// SCHED_OTHER.
    #[default]
    Other,
    /// SCHED_FIFO.
    Fifo,
    /// SCHED_RR.
    RoundRobin,
    /// SCHED_BATCH: as `Other`, never preempts another by waking up.
    Batch,
    /// SCHED_IDLE: as `Other` with next to no weight.
    Idle,
}

/// What a task is told to be.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Parameters {
    /// Its policy.
    pub class: Class,
    /// Its nice value, from -20 to 19.
    pub nice: i8,
    /// Its real-time priority, from 1 to [`MAX_PRIORITY`], or [`ABOVE_ALL`]; 0 for the fair policies.
    pub priority: u8,
    /// SCHED_RESET_ON_FORK: its children have neither a real-time policy nor a nice value below 0.
    pub reset_on_fork: bool,
    /// Where it may run; [none](CoreSet::EMPTY): everywhere.
    pub cores: CoreSet,
}

impl Parameters {
    /// What a child of the thread starts with.
    pub fn inherited(self) -> Self {
        if !self.reset_on_fork {
            return self;
        }
        let class = match self.class {
            Class::Fifo | Class::RoundRobin => Class::Other,
            other => other,
        };
        Parameters { class, nice: self.nice.max(0), priority: 0, reset_on_fork: false, cores: self.cores }
    }
}

/// Where in the word KIND what stands: the class, the nice value, flags; and behind them the [tag](Tag).
const NICE: u32 = 8;
const RESET_ON_FORK: u64 = 1 << 16;
const TAG: u32 = 24;
/// Of a real-time task.
const PRIORITY: u64 = 0xff << TAG;
/// It is in a group, or once was.
const IN_GROUP: u64 = 1 << 32;
/// It works at ends.
const WORKS_AT_ENDS: u64 = 1 << 33;
/// In which group it was when that was last [looked at](Words::note_group).
const GROUP_NUMBER: u32 = 34;

/// What tells tasks apart that queues treat differently. It is the same for all fair tasks of a group that do not work at ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Tag(u64);

impl Tag {
    /// That of a fair task that is in no group and never was, and does not work at ends: of most tasks.
    pub const NO_GROUP: Tag = Tag(0);

    /// Whether it is that of a fair task of a group that does not work at ends.
    pub fn is_of_group(self) -> bool {
        self.0 & (PRIORITY | WORKS_AT_ENDS) >> TAG == 0 && self.0 >> (GROUP_NUMBER - TAG) != 0
    }
}

/// The words of an account, by their meaning.
pub(super) type AccountWords = [AtomicU64; 3];
/// Whom the frames are charged to that its tasks take.
pub(super) const PAYER: usize = 0;
/// How long they have run.
pub(super) const TIME: usize = 1;
/// With whom they share the processor: the number of a [`super::group`], 0 for none.
pub(super) const GROUP: usize = 2;

/// Which word is what.
const KIND: usize = 0;
const VIRTUAL_TIME: usize = 1;
const CPU_TIME: usize = 2;
const SWITCHES: usize = 3;
/// 2^32 · 1024 / weight: virtual time is run time multiplied by this and shifted.
const INVERSE_WEIGHT: usize = 4;
const GO_LAST: usize = 5;
/// The core that runs it, or in whose queue it is, or that ran it last.
const CORE: usize = 6;
/// Where it may run: the words of a set.
const CORES: usize = 7;
/// As what it is counted in its group while it waits in a queue.
const COUNTED: usize = CORES + WORDS;

/// The words of one task, by their meaning.
#[derive(Clone, Copy)]
pub(super) struct Words<'a>(pub &'a SchedWords);

impl Words<'_> {
    #[inline(always)]
    fn word(&self, index: usize) -> &AtomicU64 {
        &self.0.words[index]
    }

    #[inline(always)]
    pub fn class(self) -> Class {
        match self.word(KIND).load(Relaxed) & 0xff {
            1 => Class::Fifo,
            2 => Class::RoundRobin,
            3 => Class::Batch,
            4 => Class::Idle,
            _ => Class::Other,
        }
    }

    #[inline(always)]
    pub fn is_real_time(self) -> bool {
        self.priority() != 0
    }

    #[inline(always)]
    pub fn priority(self) -> u8 {
        (self.word(KIND).load(Relaxed) >> TAG) as u8
    }

    #[inline(always)]
    pub fn tag(self) -> Tag {
        Tag(self.word(KIND).load(Relaxed) >> TAG)
    }

    /// Whether it is a fair task that does not work at ends, in a group or not.
    #[inline(always)]
    pub fn is_fair_and_no_end(self) -> bool {
        self.word(KIND).load(Relaxed) & (PRIORITY | WORKS_AT_ENDS) == 0
    }

    /// Its account may have come into another group. (One that has left all of them stays what once was in one: it may be counted in it still.)
    pub fn note_group(self) {
        let number = u64::from(self.group()) << GROUP_NUMBER;
        let kind = self.word(KIND);
        if number != 0 || kind.load(Relaxed) & IN_GROUP != 0 {
            let _ = kind
                .fetch_update(Relaxed, Relaxed, |kind| Some(kind & !(u64::MAX << GROUP_NUMBER) | number | IN_GROUP));
        }
    }

    pub fn parameters(self) -> Parameters {
        let nice = (self.word(KIND).load(Relaxed) >> NICE) as i8;
        let reset_on_fork = self.word(KIND).load(Relaxed) & RESET_ON_FORK != 0;
        Parameters { class: self.class(), nice, priority: self.priority(), reset_on_fork, cores: self.cores() }
    }

    /// All but where it may run: that is changed by [`set_cores`](Self::set_cores).
    pub fn set_parameters(self, parameters: Parameters) {
        let Parameters { class, nice, priority, reset_on_fork, cores: _ } = parameters;
        let class_number = match class {
            Class::Other => 0,
            Class::Fifo => 1,
            Class::RoundRobin => 2,
            Class::Batch => 3,
            Class::Idle => 4,
        };
        let real_time = matches!(class, Class::Fifo | Class::RoundRobin);
        let priority = if real_time { priority.clamp(1, ABOVE_ALL) } else { 0 };
        let flag = if reset_on_fork { RESET_ON_FORK } else { 0 };
        let kind = class_number | u64::from(priority) << TAG | u64::from(nice as u8) << NICE | flag;
        // The caller may be on another core than who says that it is in a group, or works at ends.
        let kept = u64::MAX << GROUP_NUMBER | IN_GROUP | WORKS_AT_ENDS;
        let _ = self.word(KIND).fetch_update(Relaxed, Relaxed, |before| Some(kind | before & kept));
        let weight = if class == Class::Idle { 3 } else { weight(nice) };
        self.word(INVERSE_WEIGHT).store((1024 << 32) / weight, Relaxed);
    }

    /// Whether it works at ends: see [`super::work_at_ends`].
    #[inline(always)]
    pub fn works_at_ends(self) -> bool {
        self.word(KIND).load(Relaxed) & WORKS_AT_ENDS != 0
    }

    /// Whether it is a fair task that works at ends.
    #[inline(always)]
    pub fn is_fair_end(self) -> bool {
        self.word(KIND).load(Relaxed) & (PRIORITY | WORKS_AT_ENDS) == WORKS_AT_ENDS
    }

    pub fn set_works_at_ends(self, does: bool) {
        if does {
            self.word(KIND).fetch_or(WORKS_AT_ENDS, Relaxed);
        } else {
            self.word(KIND).fetch_and(!WORKS_AT_ENDS, Relaxed);
        }
    }

    /// Where it may run, as in [`Parameters::cores`].
    #[inline(always)]
    pub fn cores(self) -> CoreSet {
        CoreSet::from_words(self.words_of_cores().iter().map(|word| word.load(Relaxed)))
    }

    /// Who looks meanwhile may see a set that it never was: see [`super::Scheduler::set_cores`] for what sets that right.
    pub fn set_cores(self, cores: CoreSet) {
        self.words_of_cores().iter().zip(cores.words()).for_each(|(word, bits)| word.store(bits, Relaxed));
    }

    #[inline(always)]
    fn words_of_cores(&self) -> &[AtomicU64] {
        &self.0.words[CORES..CORES + WORDS]
    }

    /// Whether it may run on a core.
    pub fn may_run_on(self, core: usize) -> bool {
        let cores = self.cores();
        cores.is_empty() || cores.contains(core)
    }

    #[inline(always)]
    pub fn virtual_time(self) -> u64 {
        self.word(VIRTUAL_TIME).load(Relaxed)
    }

    #[inline(always)]
    pub fn set_virtual_time(self, time: u64) {
        self.word(VIRTUAL_TIME).store(time, Relaxed);
    }

    /// Raises the virtual time to at least `least`; the result.
    #[inline(always)]
    pub fn raise_virtual_time(self, least: u64) -> u64 {
        let time = self.virtual_time().max(least);
        self.set_virtual_time(time);
        time
    }

    pub fn add_virtual_time(self, time: u64) {
        self.set_virtual_time(self.virtual_time().saturating_add(time));
    }

    /// Charges run time, to the task and its account; the task is in no group. By the core that runs it, or with the lock of that one's queue.
    #[inline(always)]
    pub fn charge(self, nanoseconds: u64) {
        self.add_cpu_time(nanoseconds);
        let scaled = (u128::from(nanoseconds) * u128::from(self.word(INVERSE_WEIGHT).load(Relaxed))) >> 32;
        self.add_virtual_time(scaled as u64);
    }

    /// As `charge`, without virtual time.
    #[inline(always)]
    pub fn add_cpu_time(self, nanoseconds: u64) {
        if let Some(account) = self.account() {
            account[TIME].fetch_add(nanoseconds, Relaxed);
        }
        let cpu_time = self.word(CPU_TIME);
        cpu_time.store(cpu_time.load(Relaxed) + nanoseconds, Relaxed);
    }

    /// The number of the group in which it is; 0: in none.
    #[inline(always)]
    pub fn group(self) -> u32 {
        self.account().map_or(0, |account| account[GROUP].load(Relaxed) as u32)
    }

    /// A fair task is entered in a queue, whose core has last charged this one for what it ran: counts it in its group.
    #[inline(always)]
    pub fn count(self, charged: Option<&group::Charged>) {
        if !self.counted().is_nothing() {
            return;
        }
        let number = self.group();
        if number != 0 && !self.is_real_time() {
            let weight = ((1024 << 32) / self.word(INVERSE_WEIGHT).load(Relaxed).max(1)).min(u32::MAX.into());
            self.set_counted(match charged {
                Some(charged) if charged.counted().is_of(number) => charged.count(weight),
                _ => group::count(number, weight),
            });
        }
    }

    /// It was taken out of a queue, and does not run: it is counted no more.
    #[inline(always)]
    pub fn discount(self) {
        let counted = self.counted();
        if !counted.is_nothing() {
            self.set_counted(Counted::NOTHING);
            group::discount(counted);
        }
    }

    /// It begins to run: what it is counted as.
    #[inline(always)]
    pub fn take_counted(self) -> Counted {
        let counted = self.counted();
        if !counted.is_nothing() {
            self.set_counted(Counted::NOTHING);
        }
        counted
    }

    /// Whether it is counted in its group, as what waits.
    #[inline(always)]
    pub fn is_counted(self) -> bool {
        !self.counted().is_nothing()
    }

    #[inline(always)]
    fn counted(self) -> Counted {
        Counted(self.word(COUNTED).load(Relaxed))
    }

    /// It is counted so: it was while it ran.
    pub fn set_counted(self, counted: Counted) {
        self.word(COUNTED).store(counted.0, Relaxed);
    }

    pub fn cpu_time(self) -> u64 {
        self.word(CPU_TIME).load(Relaxed)
    }

    /// Switches by waiting, and by giving way.
    pub fn switches(self) -> (u32, u32) {
        let both = self.word(SWITCHES).load(Relaxed);
        (both as u32, (both >> 32) as u32)
    }

    /// Counts a switch.
    #[inline(always)]
    pub fn count_switch(self, gave_way: bool) {
        let word = self.word(SWITCHES);
        word.store(word.load(Relaxed).wrapping_add(if gave_way { 1 << 32 } else { 1 }), Relaxed);
    }

    /// Which account it is charged to, if any.
    #[inline(always)]
    pub fn account(self) -> Option<&'static AccountWords> {
        self.0.shared.get()
    }

    /// Where the number of the owner stands that frames are charged to which it takes.
    #[inline(always)]
    pub fn payer(self) -> &'static AtomicU64 {
        self.account().map_or(&frame::mm::NOBODY, |account| &account[PAYER])
    }

    pub fn set_account(self, account: Option<&'static AccountWords>) {
        self.0.shared.set(account);
    }

    /// The core that runs it, or in whose queue it is, or that ran it last. Of a real-time task that is in no core's queue, the last.
    #[inline(always)]
    pub fn core(self) -> usize {
        self.word(CORE).load(Relaxed) as usize
    }

    /// Written by who has the task's `Ready`.
    #[inline(always)]
    pub fn set_core(self, core: usize) {
        self.word(CORE).store(core as u64, Relaxed);
    }

    /// A real-time task asks to be entered behind those of its priority when it gives way.
    pub fn go_last(self) {
        self.word(GO_LAST).store(1, Relaxed);
    }

    /// A real-time task that gives way to a higher one stays first of its priority; one whose slice is over, or that asked, goes last.
    pub fn is_first_again(self) -> bool {
        let asked = self.word(GO_LAST).swap(0, Relaxed) != 0;
        !asked && self.class() == Class::Fifo
    }
}

/// The weight of a nice value: 1024 for 0, and a quarter more for each step below.
const fn weight(nice: i8) -> u64 {
    let mut weight = 1024 << 10;
    let mut step = if nice < 0 { -nice } else { nice };
    while step > 0 {
        weight = if nice < 0 { weight * 5 / 4 } else { weight * 4 / 5 };
        step -= 1;
    }
    weight >> 10
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_step_of_nice_is_a_quarter_of_weight() {
        assert_eq!(weight(0), 1024);
        assert_eq!(weight(-1), 1280);
        assert_eq!(weight(1), 819);
        assert!((14..=16).contains(&weight(19)));
        assert!((85_000..=92_000).contains(&weight(-20)));
    }

    #[test]
    fn parameters_come_back_as_they_were_set() {
        let words = SchedWords::default();
        for (class, nice, priority) in
            [(Class::Other, -20, 0), (Class::Idle, 19, 0), (Class::Fifo, 3, 99), (Class::RoundRobin, 0, 1)]
        {
            let parameters =
                Parameters { class, nice, priority, reset_on_fork: false, cores: CoreSet::from_words([5, 1]) };
            Words(&words).set_parameters(parameters);
            Words(&words).set_cores(parameters.cores);
            assert_eq!(Words(&words).parameters(), parameters);
        }
    }

    #[test]
    fn lighter_tasks_age_faster() {
        let (light, heavy) = (SchedWords::default(), SchedWords::default());
        Words(&light).set_parameters(Parameters { nice: 10, ..Parameters::default() });
        Words(&heavy).set_parameters(Parameters { nice: -10, ..Parameters::default() });
        Words(&light).charge(1_000_000);
        Words(&heavy).charge(1_000_000);
        let ratio = Words(&light).virtual_time() / Words(&heavy).virtual_time();
        assert!((80..=90).contains(&ratio), "{ratio}");
        assert_eq!(Words(&light).cpu_time(), 1_000_000);
    }
}
