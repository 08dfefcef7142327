//! What charges, arenas and kills cost here, in nanoseconds of processor time: `cargo run --release -p ebb-groups --example figures`.
//!
//! With three numbers it makes one group with so many entries, objects with destructors and links, and kills it in `kill_once`, whose instructions can be
//! counted: `valgrind --tool=callgrind --toggle-collect='*kill_once*' target/release/examples/figures 1000 0 0`.
//!
//! Each figure of an operation is the best of 60 rounds of 100,000; each of a kill the median and
//! the worst of its rounds, with what it charges calibrated with cold caches.

use std::hint::black_box;

use groups::{
    Arena, Budget, Chunks, Contents, Cost, Exports, Group, Limits, Mortuary, Name, Objects, OwnedBudget, Report,
    Samples, Scrub, Stock, Tree, calibrate, classes,
};
use rustix::time::{ClockId, clock_gettime};

classes! {
    enum Held {
        Base = Cost::eager(2_000),
        Link = Cost::eager(100),
        Object = Cost::deferred(50),
    }
}

const TIMES: usize = 100_000;

/// The processor time that this thread has had: others on the machine do not count.
fn now() -> u64 {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}

/// The time of one call of `f`.
fn each(what: &str, mut f: impl FnMut(usize)) {
    let round = |_| {
        let start = now();
        (0..TIMES).for_each(&mut f);
        (now() - start) as f64 / TIMES as f64
    };
    let best = (0..60).map(round).fold(f64::INFINITY, f64::min);
    println!("{what:<64} {best:>8.2} ns");
}

fn charges() {
    let tree: Tree<Held> = Tree::new();
    let mut budgets: Vec<OwnedBudget<Held>> = Vec::new();
    for _ in 0..8 {
        let above = budgets.last().map_or(tree.root(), |budget| **budget);
        budgets.push(above.child(Limits::bound(1 << 40)).unwrap());
    }
    let mut stock = Stock::new(*budgets[7], 64);
    each("charge from a stock, give back to it", |_| {
        let charge = stock.charge(Held::Link, 1).unwrap();
        stock.give_back(black_box(charge));
    });
    let mut kept = Vec::with_capacity(1_024);
    each("charge from a stock, kept, 1,024 at a time, then given back", |n| {
        kept.push(stock.charge(Held::Link, 1).unwrap());
        if n % 1_024 == 1_023 {
            kept.drain(..).for_each(|charge| stock.give_back(charge));
        }
    });
    kept.drain(..).for_each(drop);
    let mut plain: Vec<[u64; 3]> = Vec::with_capacity(1_024);
    each("  the same with three words and no charge", |n| {
        plain.push(black_box([n as u64; 3]));
        if n % 1_024 == 1_023 {
            plain.drain(..).for_each(|words| _ = black_box(words));
        }
    });
    for depth in [1, 3, 8] {
        let budget = *budgets[depth - 1];
        each(&format!("charge a budget {depth} below the root, drop the charge"), |_| {
            drop(black_box(budget.charge(Held::Link, 1).unwrap()));
        });
    }
}

fn arenas() {
    let pool = Chunks::new(usize::MAX);
    let mut arena: Arena<[u64; 4]> = Arena::new(&pool);
    each("add an object of 32 bytes to an arena, remove it", |n| {
        let name = arena.insert([n as u64; 4]).unwrap();
        black_box(arena.remove(black_box(name)));
    });
    each("  the same with Box", |n| drop(black_box(Box::new([n as u64; 4]))));
    let names: Vec<Name<[u64; 4]>> = (0..1_000).map(|n| arena.insert([n; 4]).unwrap()).collect();
    each("read an object by its name", |n| _ = black_box(arena.get(names[n % 1_000]).unwrap()[1]));
}

/// What a client has.
struct Client<'t> {
    entries: Arena<'t, [u64; 4]>,
    links: Exports<'t, Held, Box<u64>>,
    sessions: Objects<'t, Held, Box<u64>>,
}

impl Contents for Client<'_> {
    fn scrub(&mut self, scrub: &mut Scrub) {
        self.links.scrub(scrub);
        self.entries.scrub(scrub);
        self.sessions.scrub(scrub);
    }

    fn destroy_step(&mut self, most: usize) -> usize {
        self.sessions.destroy_step(most)
    }
}

#[derive(Clone, Copy)]
struct Has {
    entries: u64,
    links: u64,
    sessions: u64,
}

fn make<'t>(parent: Budget<'t, Held>, pool: &'t Chunks, has: Has) -> Group<'t, 't, Held, Client<'t>> {
    let contents = |budget| Client {
        entries: Arena::new(pool),
        links: Exports::new(budget, Held::Link),
        sessions: Objects::new(budget, Held::Object),
    };
    let mut group = Group::new(parent, Limits::bound(1 << 40), Held::Base, contents).unwrap();
    let mut stock = Stock::new(group.budget(), 64);
    (0..has.entries).for_each(|n| _ = group.entries.insert([n; 4]).unwrap());
    (0..has.links).for_each(|n| _ = group.links.export(&mut stock, || Box::new(n)).unwrap());
    (0..has.sessions).for_each(|n| _ = group.sessions.insert(&mut stock, || Box::new(n)).unwrap());
    drop(stock);
    group.names();
    group
}

/// Has nothing of what the program uses in the caches of its core.
fn chill() {
    thread_local! {
        static MEMORY: std::cell::RefCell<Vec<u64>> = std::cell::RefCell::new(vec![1; 40 << 17]);
    }
    MEMORY.with_borrow_mut(|memory| memory.iter_mut().step_by(8).for_each(|word| *word = black_box(*word + 1)));
}

fn kills(what: &str, of: impl Fn(u64) -> Has) {
    let (tree, pool) = (Tree::new(), Chunks::new(usize::MAX));
    let mortuary = Mortuary::new();
    // What this machine takes for the two classes that count at the kill.
    let none = Has { entries: 0, links: 0, sessions: 0 };
    let samples = Samples { rounds: 200, objects: 1 };
    let cold = |has| {
        let group = make(tree.root(), &pool, has);
        chill();
        group
    };
    let base = calibrate(samples, &now, |_| cold(none), |group| _ = group.kill(&mortuary, &now));
    let many = Samples { rounds: 200, objects: 64 };
    let make_links = |count| {
        let mut links = Exports::new(tree.root(), Held::Link);
        (0..count).for_each(|n| _ = links.export(&mut tree.root(), || Box::new(u64::from(n))).unwrap());
        chill();
        links
    };
    let link = calibrate(many, &now, make_links, |mut links| links.scrub(&mut Scrub::default()));
    tree.set_cost(Held::Base, Cost::eager(base));
    tree.set_cost(Held::Link, Cost::eager(link));
    while mortuary.step(1_000) == 1_000 {}
    println!("\nkill of a group with so many {what} (calibrated: {base} ns for itself, {link} ns a link)");
    for count in [1, 1_000, 100_000, 1_000_000] {
        let rounds = if count > 10_000 { 25 } else { 400 };
        let mut overruns = 0;
        let mut measured: Vec<u64> = Vec::new();
        let (mut charged, mut later) = (0, 0.0);
        for _ in 0..rounds {
            let report = make(tree.root(), &pool, of(count)).kill(&mortuary, &now);
            overruns += u32::from(report.is_overrun());
            measured.push(report.measured);
            charged = report.charged;
            let start = now();
            while mortuary.step(100) == 100 {}
            later = (now() - start) as f64;
        }
        measured.sort_unstable();
        let (median, worst) = (measured[measured.len() / 2], measured[measured.len() - 1]);
        println!(
            "{count:>10} median {median:>10} ns  worst {worst:>10} ns  charged {charged:>10} ns  overruns {overruns}/{rounds}  afterwards {later:>10} ns"
        );
    }
}

/// One kill alone, for tools that count the instructions of this function.
#[inline(never)]
fn kill_once<'t>(group: Group<'t, 't, Held, Client<'t>>, mortuary: &Mortuary<'t>) -> Report {
    group.kill(mortuary, &|| 0)
}

fn main() {
    let counts: Vec<u64> = std::env::args().skip(1).map(|count| count.parse().expect("a number")).collect();
    if let [entries, sessions, links] = counts[..] {
        let (tree, pool) = (Tree::new(), Chunks::new(usize::MAX));
        let mortuary = Mortuary::new();
        println!("{:?}", kill_once(make(tree.root(), &pool, Has { entries, links, sessions }), &mortuary));
        return;
    }
    charges();
    arenas();
    kills("entries of an arena", |entries| Has { entries, links: 0, sessions: 0 });
    kills("objects with destructors", |sessions| Has { entries: 0, links: 0, sessions });
    kills("links to the outside", |links| Has { entries: 0, links, sessions: 0 });
}
