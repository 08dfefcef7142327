//! In which order an Ebb that checks it (`--features check-locks`) takes locks while the behaviour checks run, compared with the ranks in `docs/src/locks.md`.

use crate::SystemArguments;
use crate::compare::Tally;
use crate::programs;
use crate::system::GuestSystem;
use crate::task::Outcome;
use anyhow::{Context, Result, bail};
use ebb_guest::{Accel, Cpus, Kernel, Machine, artifacts, stretch};
use std::collections::BTreeMap;
use std::path::Path;

/// The file that says it.
const FILE: &str = "/proc/ebb/locks";
/// The page with the ranks, and where the sources of its locks are.
const PAGE: &str = "docs/src/locks.md";
const SOURCES: &str = "kernel/src/";

/// Locks of this rank and below are the memory's.
const MEMORY: u32 = 11;

/// Runs the checks whose names contain one of the filters (all, if there is none). A check passes if it ends; what the kernel reports of locks ends it. Then each order of two locks
/// that was seen must agree with the page. With `times`, guest instructions are counted, on one core, and the longest time for which a lock was held is printed for each place where locks are made.
pub fn run(arguments: &SystemArguments, filters: &[String], times: bool) -> Result<Tally> {
    let tasks = programs::tasks(filters)?;
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let ranks = Ranks::read(&std::fs::read_to_string(root.join(PAGE)).context(PAGE)?);
    let mut machine = Machine::new(Kernel::open(&artifacts::KERNEL.find(arguments.kernel.as_deref())?)?);
    machine.cpus = arguments.cpus;
    if times {
        machine.cpus = Cpus::ONE;
        machine.accel = Accel::Tcg;
        machine.cpu = stretch::CPU.to_owned();
        machine.qemu_options.extend(stretch::COUNTED.map(str::to_owned));
    }
    let mut system = GuestSystem::new(machine, &tasks, arguments.on_disk.as_deref())?;
    let mut tally = Tally::default();
    let mut seen = Seen::default();
    for task in tasks {
        let outcome = system.run_task(&task)?;
        if matches!(outcome, Outcome::Ended { .. }) {
            tally.passed += 1;
        } else {
            tally.failed += 1;
            println!("{} did not end: {outcome:?}", task.name);
        }
        let told = system.run_text(&format!("cat {FILE}"))?;
        if !told.contains("held ") {
            bail!("{FILE} says nothing: is this a kernel with the feature `check-locks`?");
        }
        seen.add(&told);
    }
    for (classes, places) in &seen.orders {
        let [held, taken] = classes.each_ref().map(|class| Lock::read(&root, class));
        if let Err(why) = ranks.allow(&held, &taken) {
            tally.failed += 1;
            println!("{} {} is held and {} {} is taken {places}: {why}", held.file, held.name, taken.file, taken.name);
        }
    }
    println!("{} orders of two locks were seen", seen.orders.len());
    if times {
        let mut held: Vec<_> = seen.held.iter().collect();
        held.sort_by_key(|(_, (cycles, _))| std::cmp::Reverse(*cycles));
        for (class, (cycles, place)) in held {
            let lock = Lock::read(&root, class);
            println!("{cycles:>12} {} {}, {place}", lock.file, lock.name);
        }
    }
    Ok(tally)
}

/// What the kernel said, over all checks. Classes of locks are places in the source where locks are made, `FILE:LINE`.
#[derive(Default)]
struct Seen {
    /// Which class was held and which one taken, and where in the source that was.
    orders: BTreeMap<[String; 2], String>,
    /// The longest time for which a lock of the class was held, and where it was taken.
    held: BTreeMap<String, (u64, String)>,
}

impl Seen {
    fn add(&mut self, told: &str) {
        for line in told.lines() {
            if let Some((classes, places)) = line.strip_prefix("order ").and_then(|order| order.split_once(" at ")) {
                if let Some((first, second)) = classes.split_once(' ') {
                    self.orders.entry([first.to_owned(), second.to_owned()]).or_insert_with(|| format!("at {places}"));
                }
            } else if let Some((time, place)) = line.strip_prefix("held ").and_then(|held| held.split_once(" at "))
                && let Some((cycles, class)) = time.split_once(' ')
                && let Ok(cycles) = cycles.parse()
            {
                let longest = self.held.entry(class.to_owned()).or_default();
                if cycles >= longest.0 {
                    *longest = (cycles, format!("at {place}"));
                }
            }
        }
    }
}

/// A lock by its name in the source.
#[derive(Debug, PartialEq, Eq)]
struct Lock {
    /// Its file; below `kernel/src` if it is there.
    file: String,
    /// The field or static that it is made for.
    name: String,
}

impl Lock {
    /// From `FILE:LINE`, where it is made.
    fn read(root: &Path, class: &str) -> Self {
        let (file, line) = class.rsplit_once(':').unwrap_or((class, ""));
        let text = std::fs::read_to_string(root.join(file)).unwrap_or_default();
        let lines: Vec<&str> = text.lines().collect();
        let end = line.parse::<usize>().unwrap_or(0).min(lines.len());
        let name = made_for(&lines, end).unwrap_or(line);
        Lock { file: file.strip_prefix(SOURCES).unwrap_or(file).to_owned(), name: name.to_owned() }
    }

    /// Whether it is one of the kernel's, and no library's.
    fn is_of_the_kernel(&self) -> bool {
        !self.file.starts_with("libs/") && !self.file.starts_with("frame/")
    }
}

/// What the lock is made for that stands in the line before `end`: a field (`name: SpinLock::new(...)`), a static, a variable, or, if it is the only or a default field, the type.
/// Two that are made in one line cannot be told apart; what it is for then is to have no rank.
fn made_for<'a>(lines: &[&'a str], end: usize) -> Option<&'a str> {
    let line = lines.get(end.checked_sub(1)?)?;
    if line.matches("SpinLock::").count() > 1 {
        return Some("one of the two locks that one line makes");
    }
    if line.contains("derive(") {
        let declaration = lines[end..].iter().take(4).find_map(|line| line.split_once("struct "))?.1;
        return declaration.split(|c: char| !is_of_name(c)).next();
    }
    let before = |line: &'a str| named_last(line.find("SpinLock").map_or(line, |at| &line[..at]));
    lines[..end].iter().rev().take(4).find_map(|line| before(line))
}

fn is_of_name(c: char) -> bool {
    c.is_alphanumeric() || c == '_'
}

/// The last name in the text that is followed by `:`, ` =` or `(`.
fn named_last(text: &str) -> Option<&str> {
    let mut end = text.len();
    while let Some(at) = text[..end].rfind([':', '=', '(']) {
        let name = text[..at].trim_end();
        let start = name.rfind(|c: char| !is_of_name(c)).map_or(0, |at| at + 1);
        let is_path = text[at..].starts_with("::") || name.ends_with(':');
        if !is_path && start < name.len() {
            return Some(&name[start..]);
        }
        end = at;
    }
    None
}

/// The ranks of the page: a row for each lock that is no leaf, `| rank | ... `name` ... | `file` | ... |`. A name may be written `Type::name`:
/// a lock that is a default field is known by its type.
struct Ranks(BTreeMap<(String, String), u32>);

impl Ranks {
    fn read(page: &str) -> Self {
        let mut ranks = BTreeMap::new();
        for line in page.lines() {
            let cells: Vec<&str> = line.split('|').map(str::trim).collect();
            let [_, rank, locks, files, ..] = cells[..] else { continue };
            let Ok(rank) = rank.parse() else { continue };
            for file in quoted(files) {
                for lock in quoted(locks) {
                    for name in lock.split("::") {
                        ranks.insert((file.to_owned(), name.to_owned()), rank);
                    }
                }
            }
        }
        Ranks(ranks)
    }

    fn of(&self, lock: &Lock) -> Option<u32> {
        self.0.get(&(lock.file.clone(), lock.name.clone())).copied()
    }

    /// Whether the page lets the one be taken while the other is held.
    fn allow(&self, held: &Lock, taken: &Lock) -> Result<(), String> {
        match (self.of(held), self.of(taken)) {
            // Memory is allocated whatever is held.
            (first, Some(second)) if second >= MEMORY && first.is_none_or(|first| first < second) => Ok(()),
            // Locks of the libraries and of the framework are below all of the kernel's.
            _ if held.is_of_the_kernel() && !taken.is_of_the_kernel() => Ok(()),
            _ if !held.is_of_the_kernel() && !taken.is_of_the_kernel() => Ok(()),
            (None, _) => Err(format!("{PAGE} has it among the leaves, or not at all")),
            (Some(first), None) if first < MEMORY => Ok(()),
            (Some(_), None) => Err("nothing of the kernel's is taken while memory is allocated".to_owned()),
            (Some(first), Some(second)) if first < second || held == taken => Ok(()),
            (Some(first), Some(second)) => Err(format!("{PAGE} gives them the ranks {first} and {second}")),
        }
    }
}

/// What stands between backticks.
fn quoted(cell: &str) -> impl Iterator<Item = &str> {
    cell.split('`').skip(1).step_by(2)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lock(file: &str, name: &str) -> Lock {
        Lock { file: file.to_owned(), name: name.to_owned() }
    }

    #[test]
    fn what_a_lock_is_made_for_is_found() {
        let name = |text: &'static str, line| made_for(&text.lines().collect::<Vec<_>>(), line);
        assert_eq!(name("            state: SpinLock::new(EndpointState {", 1), Some("state"));
        assert_eq!(name("pub static NAMES: SpinLock<Names> =\n    SpinLock::new(Names {", 2), Some("NAMES"));
        assert_eq!(
            name("        Slabs { classes: [const { SpinLock::new(0) }; SizeClass::COUNT] }", 1),
            Some("classes")
        );
        assert_eq!(
            name("        Ok(Self { umask: AtomicU32::new(0), places: SpinLock::new(places) })", 1),
            Some("places")
        );
        assert_eq!(name("        Actions(SpinLock::new(0))", 1), Some("Actions"));
        assert_eq!(name("let lock = SpinLock::new(0);", 1), Some("lock"));
        assert_eq!(name("#[derive(Default)]\npub struct FileTable {", 1), Some("FileTable"));
        let two = name("Set { permissions: SpinLock::new(0), state: SpinLock::new(0) }", 1);
        assert_eq!(two, Some("one of the two locks that one line makes"));
    }

    #[test]
    fn orders_must_go_down_the_ranks() {
        let ranks = Ranks::read(
            "| rank | lock | where |\n| --- | --- | --- |\n| 0 | a file's `moving` | `fs/file.rs` | all |\n| 4 | `Inode::metadata` | `fs/inode.rs` | x |\n| 11 | `classes` | `kernel/allocators/src/slab.rs` | x |\n",
        );
        let (file, inode) = (lock("fs/file.rs", "moving"), lock("fs/inode.rs", "metadata"));
        let (leaf, library) = (lock("utsname.rs", "NAMES"), lock("libs/refs/src/wait.rs", "queue"));
        assert_eq!(ranks.allow(&file, &inode), Ok(()));
        assert!(ranks.allow(&inode, &file).is_err());
        assert_eq!(ranks.allow(&file, &leaf), Ok(()));
        assert!(ranks.allow(&leaf, &file).is_err());
        assert_eq!(ranks.allow(&leaf, &library), Ok(()));
        assert!(ranks.allow(&library, &leaf).is_err());
        let slabs = lock("kernel/allocators/src/slab.rs", "classes");
        assert_eq!(ranks.allow(&leaf, &slabs), Ok(()));
        assert!(ranks.allow(&slabs, &leaf).is_err());
    }

    #[test]
    fn what_the_kernel_says_is_read() {
        let mut seen = Seen::default();
        seen.add("order a.rs:1 b.rs:2 at c.rs:3 and d.rs:4\nheld 50 a.rs:1 at c.rs:3, 7 times\n");
        assert_eq!(seen.orders.len(), 1);
        assert_eq!(seen.held["a.rs:1"], (50, "at c.rs:3, 7 times".to_owned()));
    }
}
