//! What the scheduler does on a machine with several cores, as far as it is the same each time: the test plays the cores and the clock.

use alloc::boxed::Box;
use alloc::vec::Vec;

use frame::core_set::CoreSet;
use frame::cpu::pretended;
use tasks::{Body, HeapStacks, Hooks, Next, Policy, Ready, SchedWords, Why, Worker};

use super::task::Words;
use super::{Account, Class, ENDS_SLICE, FAIR_SLICE, Group, Parameters, Scheduler, group, initialise};

struct NoHooks;

impl Hooks for NoHooks {
    fn idle(&self, _worker: &Worker) -> core::ops::ControlFlow<()> {
        core::ops::ControlFlow::Break(())
    }
}

struct Nothing;

impl Body for Nothing {
    fn run_async(&mut self, _cx: &mut tasks::Cx) -> Next {
        Next::End
    }
}

/// Cores that the test tells when to look for something to do.
struct Machine {
    scheduler: &'static Scheduler,
    workers: Vec<&'static Worker>,
    running: Vec<Option<Ready>>,
    now: u64,
}

impl Machine {
    fn new(cores: usize) -> Self {
        pretended::set_count(cores);
        pretended::take_interrupted();
        let scheduler: &'static Scheduler = Box::leak(Box::new(Scheduler::new()));
        scheduler.prepare(cores);
        let stacks: &'static HeapStacks = Box::leak(Box::new(HeapStacks::new(4096)));
        let worker =
            |number| -> &'static Worker { Box::leak(Box::new(Worker::new(number, scheduler, stacks, &NoHooks))) };
        let mut machine = Machine {
            scheduler,
            workers: (0..cores).map(worker).collect(),
            running: (0..cores).map(|_| None).collect(),
            now: 1_000_000_000,
        };
        machine.passes(0);
        (0..cores).for_each(|core| machine.looks(core));
        machine
    }

    fn passes(&mut self, nanoseconds: u64) {
        self.now += nanoseconds;
        frame::time::stand_at(self.now);
    }

    fn spawn(&self, parameters: Parameters) -> &'static SchedWords {
        self.spawn_of(None, parameters)
    }

    fn spawn_of(&self, account: Option<&Account>, parameters: Parameters) -> &'static SchedWords {
        let task = tasks::spawn(self.scheduler, Box::new(Nothing), |words, _| initialise(words, parameters, account));
        task.sched().expect("it never ends")
    }

    /// The core has nothing to do any more, or was called.
    fn looks(&mut self, core: usize) {
        assert!(self.running[core].is_none());
        self.running[core] = self.scheduler.next(self.workers[core]);
    }

    /// All cores look that were called and run nothing.
    fn called_look(&mut self) {
        let called = pretended::take_interrupted();
        for core in called.iter() {
            if self.running[core].is_none() {
                self.looks(core);
            }
        }
    }

    /// The task of a core gives way, and the core looks for another.
    fn gives_way(&mut self, core: usize) {
        let ready = self.running[core].take().expect("it runs something");
        self.scheduler.enqueue(ready, Why::Yielded);
        self.looks(core);
    }

    /// The task of a core begins to wait, and the core looks for another.
    fn waits(&mut self, core: usize) -> Ready {
        let ready = self.running[core].take().expect("it runs something");
        self.looks(core);
        ready
    }

    /// The task of a core is not seen again, and the core looks for another.
    fn ends(&mut self, core: usize) {
        let _never_seen_again = self.waits(core);
    }

    fn runs(&self, core: usize) -> Option<&'static SchedWords> {
        self.running[core].as_ref().map(Ready::sched)
    }

    /// How many run and wait.
    fn tasks_on(&self, core: usize) -> usize {
        self.scheduler.cores[core].look(|queue| queue.len() + usize::from(queue.running.is_some()))
    }

    /// All tasks compute for so many slices; those of cores where others wait give way at the end of each.
    fn compute(&mut self, slices: usize) {
        for _ in 0..slices {
            self.passes(FAIR_SLICE);
            for core in 0..self.workers.len() {
                if self.tasks_on(core) > 1 && self.running[core].is_some() {
                    self.gives_way(core);
                }
                self.called_look();
            }
        }
        // Who runs alone was not charged yet.
        for core in self.scheduler.present() {
            core.look(|queue| queue.charge(self.now));
        }
    }
}

fn only(cores: u64) -> Parameters {
    Parameters { cores: CoreSet::from_words([cores]), ..Parameters::default() }
}

fn real_time(priority: u8) -> Parameters {
    Parameters { class: Class::Fifo, priority, ..Parameters::default() }
}

/// In thousandths of the time.
fn shares(tasks: &[&'static SchedWords], time: u64) -> Vec<u64> {
    tasks.iter().map(|task| Words(task).cpu_time() * 1000 / time).collect()
}

#[test]
fn of_equal_tasks_that_are_more_than_the_cores_each_gets_its_share_of_a_second() {
    for (cores, tasks) in [(2, 3), (2, 5), (3, 4), (4, 5), (4, 7), (8, 9)] {
        let mut machine = Machine::new(cores);
        let tasks: Vec<_> = (0..tasks).map(|_| machine.spawn(Parameters::default())).collect();
        machine.called_look();
        machine.compute(250);
        let (shares, fair) = (shares(&tasks, 250 * FAIR_SLICE), 1000 * cores as u64 / tasks.len() as u64);
        assert!(shares.iter().all(|share| share.abs_diff(fair) <= 60), "{shares:?} of {fair} on {cores}");
    }
}

#[test]
fn however_many_work_at_ends_they_have_the_share_of_one_in_short_turns() {
    const PIECE: u64 = 5_000;
    for nice in [-5, 0, 19] {
        let mut machine = Machine::new(1);
        let neighbour = machine.spawn(Parameters::default());
        for _ in 0..100 {
            let end = machine.spawn(Parameters { nice, ..Parameters::default() });
            Words(end).set_works_at_ends(true);
        }
        machine.looks(0);
        let (mut waited, mut longest, mut ran, mut all) = (0, 0, 0, 0);
        for step in 0..20_000 {
            let is_neighbour = machine.runs(0).is_some_and(|task| core::ptr::eq(task, neighbour));
            let time = if is_neighbour { ENDS_SLICE } else { PIECE };
            machine.passes(time);
            machine.gives_way(0);
            // At first they stand among the others.
            if step < 5_000 {
                continue;
            }
            all += time;
            if is_neighbour {
                longest = longest.max(core::mem::take(&mut waited));
                ran += time;
            } else {
                waited += time;
            }
        }
        assert!(longest <= ENDS_SLICE + PIECE, "{longest}, nice {nice}");
        assert!((450..=550).contains(&(ran * 1000 / all)), "{ran} of {all}, nice {nice}");
    }
}

#[test]
fn a_new_task_goes_to_a_core_that_idles() {
    let mut machine = Machine::new(3);
    for _ in 0..3 {
        machine.spawn(Parameters::default());
        machine.called_look();
    }
    assert!((0..3).all(|core| machine.runs(core).is_some() && machine.tasks_on(core) == 1));
}

#[test]
fn a_woken_task_goes_where_it_was_if_that_idles_else_to_another_idle_core() {
    let mut machine = Machine::new(3);
    let task = machine.spawn(only(0b100));
    machine.called_look();
    assert!(core::ptr::eq(machine.runs(2).expect("it is called"), task));
    Words(task).set_cores(CoreSet::EMPTY);
    // Nobody else is there.
    let ready = machine.waits(2);
    machine.scheduler.enqueue(ready, Why::Woken);
    machine.called_look();
    assert!(machine.runs(2).is_some());
    // Somebody else is there.
    let ready = machine.waits(2);
    machine.spawn(only(0b100));
    machine.called_look();
    machine.scheduler.enqueue(ready, Why::Woken);
    machine.called_look();
    assert!(machine.runs(2).is_some() && machine.runs(0).is_some() && machine.runs(1).is_none());
}

#[test]
fn who_was_told_where_to_run_runs_nowhere_else() {
    let mut machine = Machine::new(4);
    let first: Vec<_> = (0..3).map(|_| machine.spawn(only(0b10))).collect();
    let second = [machine.spawn(only(0b1100)), machine.spawn(only(0b1100)), machine.spawn(only(0b1100))];
    machine.called_look();
    machine.compute(250);
    let time = 250 * FAIR_SLICE;
    assert!(machine.runs(0).is_none());
    assert!(shares(&first, time).iter().all(|share| share.abs_diff(333) <= 30), "{:?}", shares(&first, time));
    assert!(shares(&second, time).iter().all(|share| share.abs_diff(667) <= 60), "{:?}", shares(&second, time));
}

#[test]
fn all_of_many_cores_run_what_there_is() {
    for cores in [64, 65, 130, 256] {
        let mut machine = Machine::new(cores);
        for _ in 0..cores {
            machine.spawn(Parameters::default());
            machine.called_look();
        }
        assert!((0..cores).all(|core| machine.runs(core).is_some() && machine.tasks_on(core) == 1), "{cores}");
        // One more, and it has its turn.
        let bound = Parameters { cores: [1, cores - 1].into_iter().collect(), ..Parameters::default() };
        let last = machine.spawn(bound);
        machine.called_look();
        machine.compute(250);
        let share = shares(&[last], 250 * FAIR_SLICE)[0];
        assert!((450..=1000).contains(&share), "{share} on {cores}");
    }
}

#[test]
fn a_task_that_is_told_to_run_on_a_core_with_a_great_number_goes_there() {
    let mut machine = Machine::new(200);
    let only = |core| Parameters { cores: CoreSet::from_iter([core]), ..Parameters::default() };
    let task = machine.spawn(only(199));
    machine.called_look();
    assert!(core::ptr::eq(machine.runs(199).expect("it is called"), task));
    let other = machine.spawn(only(199));
    machine.called_look();
    assert_eq!(machine.tasks_on(199), 2);
    // It waits there, and goes on elsewhere.
    machine.scheduler.set_cores(Words(other), CoreSet::from_iter([70]));
    machine.called_look();
    assert!(core::ptr::eq(machine.runs(70).expect("it is called"), other));
    assert!(Words(other).may_run_on(70) && !Words(other).may_run_on(6) && !Words(other).may_run_on(199));
    // All cores that there are is everywhere.
    machine.scheduler.set_cores(Words(other), CoreSet::below(200));
    assert_eq!(Words(other).cores(), CoreSet::EMPTY);
    assert!(Words(other).may_run_on(0) && Words(other).may_run_on(199));
}

#[test]
fn a_core_with_nothing_to_do_takes_from_the_longest_queue() {
    let mut machine = Machine::new(3);
    // Four tasks on the first core, two on the second; the third one's ends.
    let all: Vec<_> = [1, 1, 1, 1, 2, 2, 4].into_iter().map(|cores| machine.spawn(only(cores))).collect();
    all[..6].iter().for_each(|words| machine.scheduler.set_cores(Words(words), CoreSet::EMPTY));
    pretended::take_interrupted();
    let before: Vec<_> = (0..3).map(|core| machine.tasks_on(core)).collect();
    let _ended = all;
    assert_eq!(before.iter().sum::<usize>(), 7);
    (0..3).for_each(|core| {
        if machine.running[core].is_none() {
            machine.looks(core);
        }
    });
    let longest = (0..3).max_by_key(|core| machine.tasks_on(*core)).expect("there are cores");
    let load = machine.tasks_on(longest);
    while machine.tasks_on(2) > 1 {
        machine.ends(2);
    }
    machine.ends(2);
    assert!(machine.runs(2).is_some() && machine.tasks_on(longest) == load - 1);
}

#[test]
fn the_most_urgent_real_time_tasks_run_wherever_they_are_entered() {
    let mut machine = Machine::new(2);
    (0..3).for_each(|_| _ = machine.spawn(Parameters::default()));
    machine.called_look();
    let urgent = [10, 30, 20].map(|priority| machine.spawn(real_time(priority)));
    // Whoever is asked does, until nobody is.
    for _ in 0..4 {
        for core in 0..2 {
            if machine.workers[core].is_asked_to_yield() {
                machine.gives_way(core);
            }
        }
    }
    let running: Vec<_> = (0..2).filter_map(|core| machine.runs(core)).map(|words| Words(words).priority()).collect();
    assert!(running == [20, 30] || running == [30, 20], "{running:?}");
    assert!(urgent.iter().all(|words| Words(words).is_real_time()));
}

/// As processes do it that fork and end.
#[test]
fn tasks_that_each_begin_another_and_end_keep_nobody_from_running() {
    for chains in [1, 4] {
        let mut machine = Machine::new(1);
        let lone = machine.spawn(Parameters::default());
        machine.looks(0);
        machine.passes(3 * FAIR_SLICE);
        (0..chains).for_each(|_| _ = machine.spawn(Parameters::default()));
        machine.gives_way(0);
        let before = Words(lone).cpu_time();
        const STEP: u64 = FAIR_SLICE / 20;
        const STEPS: usize = 20_000;
        for _ in 0..STEPS {
            let is_lone = machine.runs(0).is_some_and(|running| core::ptr::eq(running, lone));
            machine.passes(STEP);
            if !is_lone {
                machine.spawn(Parameters::default());
                machine.passes(STEP);
                machine.ends(0);
            } else {
                machine.passes(FAIR_SLICE - STEP);
                machine.gives_way(0);
            }
        }
        let share = (Words(lone).cpu_time() - before) * 1000 / (machine.now - 1_000_000_000);
        let fair = 1000 / (chains + 1);
        assert!(share * 2 > fair && share < fair * 2, "{share} of {fair}");
    }
}

#[test]
fn fair_tasks_do_not_wait_behind_a_real_time_task_that_goes_on() {
    let mut machine = Machine::new(2);
    let fair: Vec<_> = (0..2).map(|_| machine.spawn(Parameters::default())).collect();
    machine.called_look();
    machine.spawn(real_time(5));
    let asked = (0..2).find(|core| machine.workers[*core].is_asked_to_yield()).expect("one gives way");
    machine.gives_way(asked);
    machine.compute(250);
    let shares = shares(&fair, 250 * FAIR_SLICE);
    assert!(shares.iter().all(|share| share.abs_diff(500) <= 60), "{shares:?}");
}

#[test]
fn a_task_that_moves_is_as_far_from_the_others_as_it_was() {
    let mut machine = Machine::new(2);
    let old = machine.spawn(only(1));
    machine.called_look();
    machine.compute(1000);
    // The other core's time has hardly begun.
    let young = machine.spawn(only(2));
    machine.called_look();
    let mover = machine.spawn(only(1));
    machine.compute(4);
    let lag = |core: usize, words| Words(words).virtual_time() as i64 - machine.scheduler.cores[core].floor() as i64;
    let before = lag(0, mover);
    assert!(Words(old).virtual_time() > Words(young).virtual_time() + 500_000_000);
    if machine.runs(0).is_some_and(|running| core::ptr::eq(running, mover)) {
        machine.gives_way(0);
    }
    machine.scheduler.set_cores(Words(mover), CoreSet::from_words([2]));
    let after = Words(mover).virtual_time() as i64 - machine.scheduler.cores[1].floor() as i64;
    assert!(after.abs_diff(before) <= 2 * FAIR_SLICE, "{before} {after}");
}

/// A group of that weight, and an account that is in it.
fn group_of(parent: u32, weight: u64) -> (Group, Account) {
    let (group, account) = (Group::new(parent).expect("there is memory"), Account::new().expect("there is memory"));
    group.set_shares(weight * 1024 / 100);
    account.set_group(group.number());
    (group, account)
}

/// How long the tasks of an account have run, in thousandths of the time.
fn share(account: &Account, time: u64) -> u64 {
    account.words().expect("it has not ended")[super::task::TIME].load(core::sync::atomic::Ordering::Relaxed) * 1000
        / time
}

#[test]
fn groups_share_a_core_by_their_weights_however_many_tasks_they_have() {
    for counts in [[1, 1], [4, 1], [1, 4], [7, 3]] {
        let mut machine = Machine::new(2);
        let groups = [group_of(0, 100), group_of(0, 300)];
        for ((_, account), count) in groups.iter().zip(counts) {
            (0..count).for_each(|_| _ = machine.spawn_of(Some(account), only(1)));
        }
        machine.called_look();
        machine.compute(400);
        let shares = groups.each_ref().map(|(_, account)| share(account, 400 * FAIR_SLICE));
        assert!(shares[0].abs_diff(250) <= 25 && shares[1].abs_diff(750) <= 25, "{shares:?} of {counts:?}");
    }
}

#[test]
fn a_task_that_is_in_no_group_counts_as_a_group_of_weight_100() {
    let mut machine = Machine::new(2);
    let (_group, account) = group_of(0, 100);
    (0..3).for_each(|_| _ = machine.spawn_of(Some(&account), only(1)));
    let outside = machine.spawn(only(1));
    machine.called_look();
    machine.compute(400);
    let shares = [share(&account, 400 * FAIR_SLICE), shares(&[outside], 400 * FAIR_SLICE)[0]];
    assert!(shares.iter().all(|share| share.abs_diff(500) <= 25), "{shares:?}");
}

#[test]
fn a_group_of_groups_has_its_own_share_on_each_level() {
    let mut machine = Machine::new(2);
    let (light, of_light) = group_of(0, 100);
    let (heavy, _) = group_of(0, 300);
    let below = [group_of(heavy.number(), 100), group_of(heavy.number(), 200)];
    (0..3).for_each(|_| _ = machine.spawn_of(Some(&of_light), only(1)));
    (0..2).for_each(|_| _ = machine.spawn_of(Some(&below[0].1), only(1)));
    machine.spawn_of(Some(&below[1].1), only(1));
    machine.called_look();
    machine.compute(600);
    let time = 600 * FAIR_SLICE;
    let shares = [share(&of_light, time), share(&below[0].1, time), share(&below[1].1, time)];
    for (share, expected) in shares.into_iter().zip([250, 250, 500]) {
        assert!(share.abs_diff(expected) <= 30, "{shares:?}");
    }
    drop(light);
}

#[test]
fn nothing_is_left_in_the_sums_when_all_wait() {
    let mut machine = Machine::new(2);
    let (heavy, _) = group_of(0, 300);
    let (below, account) = group_of(heavy.number(), 50);
    (0..5).for_each(|_| _ = machine.spawn_of(Some(&account), Parameters::default()));
    machine.called_look();
    machine.compute(30);
    assert_eq!(group::ready(below.number()), 5 * 1024);
    assert_eq!(group::ready(heavy.number()), 512);
    // Another weight, while they are ready.
    below.set_shares(2048);
    assert_eq!(group::ready(heavy.number()), 2048);
    for _ in 0..10 {
        for core in 0..2 {
            if machine.runs(core).is_some() {
                machine.ends(core);
            }
        }
        machine.called_look();
    }
    assert_eq!((group::ready(below.number()), group::ready(heavy.number())), (0, 0));
}

#[test]
fn a_piece_of_a_quota_ends_and_what_is_used_up_has_none() {
    let mut machine = Machine::new(2);
    let (group, account) = group_of(0, 100);
    group.set_quota(super::Quota { runtime: 3 * FAIR_SLICE, period: 100_000_000, burst: 0 }).tell();
    machine.spawn_of(Some(&account), only(1));
    machine.spawn_of(Some(&account), only(1));
    machine.called_look();
    assert_eq!(group.throttling().periods, 0);
    machine.compute(4);
    assert!(group::is_used_up(group.number()));
    group.set_quota(super::Quota::default()).tell();
    assert!(!group::is_used_up(group.number()));
}

#[test]
fn a_group_that_has_the_only_core_to_itself_is_counted_when_others_come() {
    let mut machine = Machine::new(1);
    let (light, of_light) = group_of(0, 100);
    let (heavy, of_heavy) = group_of(0, 300);
    machine.spawn_of(Some(&of_light), Parameters::default());
    machine.looks(0);
    (0..3).for_each(|_| _ = machine.spawn_of(Some(&of_light), Parameters::default()));
    machine.compute(20);
    assert_eq!(group::ready(light.number()), 0);
    assert_eq!(share(&of_light, 20 * FAIR_SLICE), 1000);
    machine.spawn_of(Some(&of_heavy), Parameters::default());
    assert_eq!((group::ready(light.number()), group::ready(heavy.number())), (4 * 1024, 1024));
    machine.compute(400);
    let time = 400 * FAIR_SLICE;
    let shares = [share(&of_light, time) - 50, share(&of_heavy, time)];
    assert!(shares[0].abs_diff(250) <= 25 && shares[1].abs_diff(750) <= 25, "{shares:?}");
    // One of no group; then all end.
    let outside = machine.spawn(Parameters::default());
    machine.compute(5);
    assert_eq!((group::ready(light.number()), group::ready(heavy.number())), (4 * 1024, 1024));
    assert!(Words(outside).cpu_time() > 0);
    (0..6).for_each(|_| machine.ends(0));
    assert!(machine.runs(0).is_none());
    assert_eq!((group::ready(light.number()), group::ready(heavy.number())), (0, 0));
}

#[test]
fn a_group_that_has_the_only_core_to_itself_is_counted_when_it_is_given_a_quota_or_very_many_tasks() {
    let mut machine = Machine::new(1);
    let (group, account) = group_of(0, 100);
    machine.spawn_of(Some(&account), Parameters::default());
    machine.looks(0);
    (0..64).for_each(|_| _ = machine.spawn_of(Some(&account), Parameters::default()));
    assert_eq!(group::ready(group.number()), 0);
    (0..10).for_each(|_| _ = machine.spawn_of(Some(&account), Parameters::default()));
    assert_eq!(group::ready(group.number()), 75 * 1024);
    machine.compute(80);
    assert_eq!(group::ready(group.number()), 75 * 1024);
    (0..74).for_each(|_| machine.ends(0));
    // The last one began where nobody waited.
    assert_eq!(group::ready(group.number()), 0);
    assert!(machine.runs(0).is_some());
    // The scheduler of this test is not the one that is told.
    group.set_quota(super::Quota { runtime: 3 * FAIR_SLICE, period: 100_000_000, burst: 0 }).tell();
    machine.scheduler.cores[0].look(|queue| queue.end_seclusion());
    assert_eq!(group::ready(group.number()), 1024);
    machine.passes(FAIR_SLICE);
    machine.gives_way(0);
    assert_eq!(group::ready(group.number()), 1024);
    machine.ends(0);
    assert_eq!(group::ready(group.number()), 0);
}

#[test]
fn a_task_that_moves_while_its_group_has_the_only_core_to_itself_has_the_others_counted() {
    let mut machine = Machine::new(1);
    let (group, account) = group_of(0, 100);
    let (other, moved) = group_of(0, 100);
    moved.set_group(group.number());
    machine.spawn_of(Some(&account), Parameters::default());
    machine.looks(0);
    let moving = machine.spawn_of(Some(&moved), Parameters::default());
    assert_eq!((group::ready(group.number()), group::ready(other.number())), (0, 0));
    moved.set_group(other.number());
    Words(moving).note_group();
    machine.scheduler.cores[0].look(|queue| assert!(queue.enter_anew(moving)));
    assert_eq!((group::ready(group.number()), group::ready(other.number())), (1024, 1024));
    machine.compute(10);
    (0..2).for_each(|_| machine.ends(0));
    assert_eq!((group::ready(group.number()), group::ready(other.number())), (0, 0));
}

#[test]
fn a_running_task_of_a_group_is_counted_anew_when_it_becomes_another_one() {
    let mut machine = Machine::new(1);
    let (group, account) = group_of(0, 100);
    let (other, others) = group_of(0, 100);
    let running = machine.spawn_of(Some(&account), Parameters::default());
    machine.looks(0);
    machine.spawn_of(Some(&others), Parameters::default());
    assert_eq!((group::ready(group.number()), group::ready(other.number())), (1024, 1024));
    let becomes = |machine: &Machine, parameters| {
        Words(running).set_parameters(parameters);
        machine.scheduler.cores[0].look(|queue| queue.count_running_anew(running, frame::time::now()));
        group::ready(group.number())
    };
    assert_eq!(becomes(&machine, Parameters { nice: 19, ..Parameters::default() }), 14);
    assert_eq!(becomes(&machine, Parameters { class: Class::Fifo, priority: 1, ..Parameters::default() }), 0);
    assert_eq!(becomes(&machine, Parameters::default()), 1024);
    machine.gives_way(0);
    assert_eq!((group::ready(group.number()), group::ready(other.number())), (1024, 1024));
    (0..2).for_each(|_| machine.ends(0));
    assert_eq!((group::ready(group.number()), group::ready(other.number())), (0, 0));
}
