//! Every interleaving that the memory model allows of what `frame/src/mm/tlb.rs` and `frame/src/arch/x86_64/cores.rs` do when an entry of a page table is cleared: a frame is used
//! for something else only when no core can reach it through what it remembers.
//!
//! This is the protocol and not its code: each step names the one that it stands for. A frame is a loom cell: an access by way of an entry that is not ordered with the frame's next
//! use is an error that loom finds. A processor remembers the entry that it has read until it is told to forget it, and reads it again whenever it has forgotten it.

use loom::cell::UnsafeCell;
use loom::sync::Arc;
use loom::sync::atomic::{AtomicU32, Ordering, fence};
use loom::thread;

const NONE: u32 = 0;
const ROOT: u32 = 1;
const OTHER_ROOT: u32 = 2;

const CORES: usize = 2;

/// A core: which root table it uses (`tlb::Used`), and what is asked of it and by it (`cores::Requests`).
struct Core {
    active: AtomicU32,
    next: AtomicU32,
    /// Bit c: core c has asked.
    inbox: AtomicU32,
    /// Bit c: core c has not forgotten yet.
    pending: AtomicU32,
}

struct Machine {
    cores: [Core; CORES],
    /// For each core an entry of [`ROOT`], 1 if it is present, and the page to which it leads.
    entries: [AtomicU32; CORES],
    pages: [UnsafeCell<u32>; CORES],
    /// How many pages were used for something else.
    done: AtomicU32,
}

// SAFETY: that all accesses to the pages are ordered is what the tests are about; loom checks it.
unsafe impl Sync for Machine {}
// SAFETY: as above.
unsafe impl Send for Machine {}

/// What a processor remembers: the root that it has loaded, and whether it remembers each entry as present.
struct Processor {
    number: usize,
    root: u32,
    remembered: [bool; CORES],
}

impl Machine {
    fn new() -> Arc<Self> {
        Arc::new(Machine {
            cores: core::array::from_fn(|_| Core {
                active: AtomicU32::new(NONE),
                next: AtomicU32::new(NONE),
                inbox: AtomicU32::new(0),
                pending: AtomicU32::new(0),
            }),
            entries: core::array::from_fn(|_| AtomicU32::new(1)),
            pages: core::array::from_fn(|_| UnsafeCell::new(0)),
            done: AtomicU32::new(0),
        })
    }
}

impl Processor {
    fn new(number: usize) -> Self {
        Processor { number, root: NONE, remembered: [false; CORES] }
    }

    /// `machine::set_root`: a full barrier, and nothing is remembered.
    fn set_root(&mut self, machine: &Machine, root: u32) {
        fence(Ordering::SeqCst);
        self.forget(machine);
        self.root = root;
    }

    /// Forgets what it remembers. Up to this moment it may have used that, also where no program asked it to.
    fn forget(&mut self, machine: &Machine) {
        for entry in (0..CORES).filter(|entry| core::mem::take(&mut self.remembered[*entry])) {
            // SAFETY: loom checks it.
            machine.pages[entry].with(|page| assert_eq!(unsafe { *page }, 0));
        }
    }

    /// `tlb::load`.
    fn load(&mut self, machine: &Machine, root: u32) {
        let used = &machine.cores[self.number];
        used.next.store(root, Ordering::Release);
        self.set_root(machine, root);
        used.active.store(root, Ordering::Release);
    }

    /// The program reads the page to which the entry leads, if the processor finds one.
    fn access(&mut self, machine: &Machine, entry: usize) {
        assert_eq!(self.root, ROOT);
        if !self.remembered[entry] {
            self.remembered[entry] = machine.entries[entry].load(Ordering::Acquire) == 1;
        }
        if self.remembered[entry] {
            // SAFETY: loom checks it.
            machine.pages[entry].with(|page| assert_eq!(unsafe { *page }, 0));
        }
    }

    /// `cores::answer` and `tlb::forget` of a range.
    fn answer(&mut self, machine: &Machine) {
        let own = &machine.cores[self.number];
        if own.inbox.load(Ordering::Relaxed) == 0 {
            return;
        }
        let from = own.inbox.swap(0, Ordering::AcqRel);
        for asker in (0..CORES).filter(|core| from & 1 << core != 0) {
            if own.active.load(Ordering::Relaxed) == ROOT {
                self.forget(machine);
            }
            machine.cores[asker].pending.fetch_and(!(1 << self.number), Ordering::Release);
        }
    }

    /// Clears the entry, has all forget it (`tlb::flush_page`), and uses the page for something else.
    fn unmap(&mut self, machine: &Machine, entry: usize) {
        // A locked instruction, and the fence of `tlb::other_users`.
        machine.entries[entry].swap(0, Ordering::AcqRel);
        if self.root == ROOT {
            self.remembered[entry] = false;
        }
        fence(Ordering::SeqCst);
        let uses = |core: usize| {
            let used = &machine.cores[core];
            [&used.next, &used.active].iter().any(|word| word.load(Ordering::Acquire) == ROOT)
        };
        let others =
            (0..CORES).filter(|core| *core != self.number && uses(*core)).fold(0, |mask, core| mask | 1 << core);
        if others != 0 {
            // `cores::ask`.
            machine.cores[self.number].pending.store(others, Ordering::Release);
            for core in (0..CORES).filter(|core| others & 1 << core != 0) {
                machine.cores[core].inbox.fetch_or(1 << self.number, Ordering::AcqRel);
            }
            while machine.cores[self.number].pending.load(Ordering::Acquire) != 0 {
                self.answer(machine);
                thread::yield_now();
            }
        }
        // SAFETY: loom checks it.
        machine.pages[entry].with_mut(|page| unsafe { *page = 1 });
        machine.done.fetch_add(1, Ordering::Release);
    }

    /// It does something else and answers, until so many cores have used a page for something else.
    fn answer_until(&mut self, machine: &Machine, done: u32) {
        while machine.done.load(Ordering::Acquire) < done {
            self.answer(machine);
            thread::yield_now();
        }
    }
}

#[test]
fn a_core_that_comes_forgets_or_never_sees_the_page() {
    loom::model(|| {
        let machine = Machine::new();
        let shared = machine.clone();
        let other = thread::spawn(move || {
            let mut processor = Processor::new(1);
            processor.load(&shared, ROOT);
            processor.access(&shared, 0);
            processor.answer(&shared);
            processor.access(&shared, 0);
            processor.load(&shared, OTHER_ROOT);
            processor.answer_until(&shared, 1);
        });
        Processor::new(0).unmap(&machine, 0);
        other.join().expect("the other core");
    });
}

#[test]
fn two_that_ask_each_other_answer_each_other() {
    // All interleavings are too many.
    let mut some = loom::model::Builder::new();
    some.preemption_bound = Some(3);
    some.check(|| {
        let machine = Machine::new();
        let shared = machine.clone();
        let other = thread::spawn(move || run(&shared, 1));
        run(&machine, 0);
        other.join().expect("the other core");
    });

    fn run(machine: &Machine, number: usize) {
        let mut processor = Processor::new(number);
        processor.load(machine, ROOT);
        processor.access(machine, 1 - number);
        processor.unmap(machine, number);
        processor.answer_until(machine, 2);
    }
}
