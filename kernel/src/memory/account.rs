//! [`Account`]: how many frames a group of programs has, and how many it may have.
//!
//! Accounts form a tree: what an account is charged for its ancestors are charged for, too. A frame in use carries the number of the account that pays for it (`frame::mm::charge_by`), each
//! level counts it until it is free, whoever has it then. So an account that is [given up](Owned) lives on until all that it was charged for is free, and its number is used again after that.
//!
//! | what | how |
//! | --- | --- |
//! | a number's account is found | in a table that grows and never shrinks, without a lock |
//! | a limit holds | each level is counted up by an exchange that does not go beyond it; what was counted below a level that refuses is taken back |
//! | who counts may be late | a core may still charge a number that was given up, or that is nobody's by now: a free account's count says so, and the frame is nobody's then |
//!
//! Everything here is atomic, so that allocations can charge with any lock held. They tell nobody of what has happened: the events are counted, and [`take_untold`](Account::take_untold) says which
//! are to be told to those who wait for them.
//!
//! Owner: [`Owned`], whose end takes as long as the tree is deep. The memory of accounts is used again for others and never freed.

use alloc::boxed::Box;
use alloc::vec::Vec;
use core::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, AtomicUsize, Ordering};

use frame::mm::{Accounts, Charged, Cores, Need, Part};
use refs::SpinLock;
use tasks::StaticRef;

use crate::error::{Errno, Result};

/// In a count: the account is nobody's, and frames must not be charged to it.
const FREE: u64 = 1 << 63;
/// In a count: it is free once nothing is charged to it any more.
const GIVEN_UP: u64 = 1 << 62;
const FLAGS: u64 = FREE | GIVEN_UP;

/// No limit, in frames.
pub const UNLIMITED: usize = usize::MAX;

/// What happens to an account, in the order of `memory.events`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AccountEvent {
    /// Its memory was taken although it had less than it was promised: never, for no page can be had back from who uses it.
    Low,
    /// It has more than `memory.high`.
    High,
    /// It was to have more than it may have.
    Max,
    /// Nothing but to end one of its programs was left.
    OutOfMemory,
    /// One of its programs was ended for that.
    Kill,
    /// All of its programs were.
    GroupKill,
}

/// All of them.
pub const EVENTS: [(AccountEvent, &str); 6] = [
    (AccountEvent::Low, "low"),
    (AccountEvent::High, "high"),
    (AccountEvent::Max, "max"),
    (AccountEvent::OutOfMemory, "oom"),
    (AccountEvent::Kill, "oom_kill"),
    (AccountEvent::GroupKill, "oom_group_kill"),
];

/// How many accounts have events that nobody was told of.
static UNTOLD: AtomicUsize = AtomicUsize::new(0);

/// Whether any account has events that nobody was told of.
#[inline(always)]
pub fn any_is_untold() -> bool {
    UNTOLD.load(Ordering::Relaxed) > 0
}

/// An account was charged beyond its `memory.high`, and no thread has looked since whether it is its own.
static OVER_HIGH: AtomicBool = AtomicBool::new(false);

/// Whether any thread has charged an account beyond its `memory.high`, perhaps the calling one just now.
#[inline(always)]
pub fn is_any_over_high() -> bool {
    OVER_HIGH.load(Ordering::Relaxed)
}

/// A thread looks whether it was the one. (If it was another, that looks when it has charged more.)
pub fn look_for_over_high() {
    OVER_HIGH.store(false, Ordering::Relaxed);
}

/// How much memory a group of programs has, in frames.
pub struct Account {
    /// How many frames it and all below it are charged for, and [`FLAGS`].
    count: AtomicU64,
    /// The account above; 0: there is none.
    parent: AtomicU32,
    peak: AtomicUsize,
    /// How many of its frames are page tables.
    tables: AtomicUsize,
    /// How many are pages of objects that several can have.
    shared: AtomicUsize,
    /// `memory.max`: it never has more, but for page tables.
    pub max: AtomicUsize,
    /// `memory.high`: that it has more is counted, and who takes more has to wait.
    pub high: AtomicUsize,
    /// How many frames it was charged for beyond that for which nobody has waited yet.
    unpaid: AtomicUsize,
    /// `memory.low`, which nothing looks at.
    pub low: AtomicUsize,
    /// `memory.min`, which nothing looks at.
    pub min: AtomicUsize,
    /// How often each event has happened to it or one below.
    events: [AtomicU64; EVENTS.len()],
    /// And to itself.
    own_events: [AtomicU64; EVENTS.len()],
    /// There are events that nobody was told of.
    untold: AtomicBool,
}

impl Account {
    fn free() -> Self {
        Account {
            count: AtomicU64::new(FREE),
            parent: AtomicU32::new(0),
            peak: AtomicUsize::new(0),
            tables: AtomicUsize::new(0),
            shared: AtomicUsize::new(0),
            max: AtomicUsize::new(UNLIMITED),
            high: AtomicUsize::new(UNLIMITED),
            unpaid: AtomicUsize::new(0),
            low: AtomicUsize::new(0),
            min: AtomicUsize::new(0),
            events: Default::default(),
            own_events: Default::default(),
            untold: AtomicBool::new(false),
        }
    }

    /// How many frames it and all below it are charged for, those that cores have in stock included.
    fn charged(&self) -> usize {
        (self.count.load(Ordering::Relaxed) & !FLAGS) as usize
    }

    /// The most it had at once.
    pub fn peak(&self) -> usize {
        self.peak.load(Ordering::Relaxed)
    }

    /// How often an event has happened to it or to one below.
    pub fn event_count(&self, event: AccountEvent) -> u64 {
        self.events[event as usize].load(Ordering::Relaxed)
    }

    /// How often an event has happened to itself.
    pub fn own_event_count(&self, event: AccountEvent) -> u64 {
        self.own_events[event as usize].load(Ordering::Relaxed)
    }

    /// Counts an event, here and above.
    pub fn count_event(&self, event: AccountEvent) {
        self.own_events[event as usize].fetch_add(1, Ordering::Relaxed);
        let mut at = Some(self);
        while let Some(account) = at {
            account.events[event as usize].fetch_add(1, Ordering::Relaxed);
            if !account.untold.swap(true, Ordering::Release) {
                UNTOLD.fetch_add(1, Ordering::Relaxed);
            }
            at = find(account.parent.load(Ordering::Relaxed));
        }
    }

    /// Whether there are events, its own or of one below, that whoever waits for them is to be told of: by the caller.
    pub fn take_untold(&self) -> bool {
        let were_some = self.untold.load(Ordering::Relaxed) && self.untold.swap(false, Ordering::Acquire);
        if were_some {
            UNTOLD.fetch_sub(1, Ordering::Relaxed);
        }
        were_some
    }

    /// Counts so many frames more if they are within the limit; whether they are. Its number is `number`.
    fn try_add(&self, number: u32, frames: u32) -> core::result::Result<(), Charged> {
        let frames = u64::from(frames);
        let mut now = self.count.load(Ordering::Relaxed);
        loop {
            if now & FREE != 0 {
                return Err(Charged::Nobody);
            }
            let sum = (now & !FLAGS) + frames;
            if sum > self.max.load(Ordering::Relaxed) as u64 {
                return Err(Charged::Refused);
            }
            match self.count.compare_exchange_weak(now, now + frames, Ordering::AcqRel, Ordering::Relaxed) {
                Ok(_) => {
                    self.note(number, sum as usize, frames as usize);
                    return Ok(());
                }
                Err(other) => now = other,
            }
        }
    }

    /// As [`try_add`](Self::try_add), whatever the limit; false if it is free.
    fn add(&self, number: u32, frames: u32) -> bool {
        let mut now = self.count.load(Ordering::Relaxed);
        while now & FREE == 0 {
            match self.count.compare_exchange_weak(now, now + u64::from(frames), Ordering::AcqRel, Ordering::Relaxed) {
                Ok(_) => {
                    self.note(number, (now & !FLAGS) as usize + frames as usize, frames as usize);
                    return true;
                }
                Err(other) => now = other,
            }
        }
        false
    }

    /// It is charged for so many now, `more` of them since a moment ago.
    fn note(&self, number: u32, now: usize, more: usize) {
        if now > self.peak.load(Ordering::Relaxed) {
            // What other cores have at hand counts: to look at all of that would take too long.
            self.peak.fetch_max(now.saturating_sub(in_stock(Cores::This, number)), Ordering::Relaxed);
        }
        let high = self.high.load(Ordering::Relaxed);
        if now > high && now.saturating_sub(in_stock(Cores::All, number)) > high {
            self.count_event(AccountEvent::High);
            self.unpaid.fetch_add(more, Ordering::Relaxed);
            OVER_HIGH.store(true, Ordering::Relaxed);
        }
    }

    /// So many frames less. It may be another group's when this returns.
    fn remove(&self, frames: u32) {
        let left = self.count.fetch_sub(frames.into(), Ordering::AcqRel).wrapping_sub(frames.into());
        if left == GIVEN_UP {
            self.end(left);
        }
    }

    /// It is free if its count is still this, that of one which is given up and to which nothing is charged.
    fn end(&self, count: u64) {
        let _ = self.count.compare_exchange(count, FREE, Ordering::AcqRel, Ordering::Relaxed);
    }

    /// Makes a free account one below `parent`; whether it was free.
    fn begin(&self, parent: u32) -> bool {
        // Nobody charges it as long as its count is not exactly that of an account in use.
        if self.count.compare_exchange(FREE, FREE | GIVEN_UP, Ordering::AcqRel, Ordering::Relaxed).is_err() {
            return false;
        }
        self.parent.store(parent, Ordering::Relaxed);
        for number in [&self.peak, &self.tables, &self.shared, &self.unpaid] {
            number.store(0, Ordering::Relaxed);
        }
        for limit in [&self.max, &self.high] {
            limit.store(UNLIMITED, Ordering::Relaxed);
        }
        for protection in [&self.low, &self.min] {
            protection.store(0, Ordering::Relaxed);
        }
        for events in self.events.iter().chain(&self.own_events) {
            events.store(0, Ordering::Relaxed);
        }
        self.take_untold();
        self.count.store(0, Ordering::Release);
        true
    }
}

/// Accounts in a piece of the table.
const PIECE: usize = 64;
/// Pieces: no more groups than this times [`PIECE`] have accounts at the same time.
const PIECES: usize = 1024;

/// All accounts, by their numbers. Number 0 is no account.
static TABLE: [StaticRef<Vec<Account>>; PIECES] = [const { StaticRef::none() }; PIECES];
/// Held while an account is made.
static MAKING: SpinLock<Making> = SpinLock::new(Making { len: 0, next: 1 });

struct Making {
    /// How many accounts there are, free or not.
    len: usize,
    /// Where the next free one is looked for first.
    next: usize,
}

/// The account of a number, if there is or was one. It may be a free one.
#[inline]
fn find(number: u32) -> Option<&'static Account> {
    if number == 0 {
        return None;
    }
    TABLE.get(number as usize / PIECE)?.get()?.get(number as usize % PIECE)
}

/// The numbers of an account and all above it.
fn up(number: u32) -> impl Iterator<Item = (u32, &'static Account)> {
    let mut number = number;
    core::iter::from_fn(move || {
        let now = (number, find(number)?);
        number = now.1.parent.load(Ordering::Relaxed);
        Some(now)
    })
}

/// Whether one account is another one or is below it.
fn is_within(number: u32, top: u32) -> bool {
    up(number).any(|(number, _)| number == top)
}

/// An account by its number. It says nothing of whether it is in use: what is read of one that was given up may be another group's.
#[derive(Clone, Copy)]
pub struct Named {
    number: u32,
    account: &'static Account,
}

impl core::ops::Deref for Named {
    type Target = Account;

    fn deref(&self) -> &Account {
        self.account
    }
}

/// The account of a number; `None` for 0, and if there never was one.
pub fn named(number: u32) -> Option<Named> {
    Some(Named { number, account: find(number)? })
}

/// An account in use. When it is dropped nothing more is to be charged to it; it is free when nothing is charged to it any more.
pub struct Owned(Named);

impl core::ops::Deref for Owned {
    type Target = Named;

    fn deref(&self) -> &Named {
        &self.0
    }
}

impl Owned {
    /// A new account below that of number `parent` (0: below none), which is in use.
    ///
    /// # Errors
    /// ENOMEM: no memory, or too many.
    pub fn new(parent: u32) -> Result<Self> {
        MAKING.with(|making| {
            let found = (making.next..making.len).chain(1..making.next.min(making.len)).find_map(|number| {
                let named = named(number as u32)?;
                named.account.begin(parent).then_some(named)
            });
            let named = match found {
                Some(named) => named,
                None => making.add_piece(parent)?,
            };
            making.next = named.number as usize + 1;
            Ok(Owned(named))
        })
    }
}

impl Making {
    /// Makes more accounts; the first of them is in use.
    fn add_piece(&mut self, parent: u32) -> Result<Named> {
        let place = TABLE.get(self.len / PIECE).ok_or(Errno::ENOMEM)?;
        let mut accounts = Vec::new();
        accounts.try_reserve_exact(PIECE).map_err(|_| Errno::ENOMEM)?;
        accounts.resize_with(PIECE, Account::free);
        // Number 0 is nobody's.
        let first = self.len.max(1);
        accounts[first % PIECE].begin(parent);
        let mut kept = Vec::new();
        kept.try_reserve_exact(1).map_err(|_| Errno::ENOMEM)?;
        kept.push(accounts);
        place.set(Some(&Box::leak(kept.into_boxed_slice())[0]));
        self.len += PIECE;
        named(first as u32).ok_or(Errno::ENOMEM)
    }
}

impl Named {
    /// Its number, never 0.
    pub fn number(&self) -> u32 {
        self.number
    }

    /// How many frames it and all below it have.
    pub fn current(&self) -> usize {
        self.charged().saturating_sub(in_stock(Cores::All, self.number))
    }

    /// How many of those are page tables, and how many are pages of objects that several can have. Takes back what cores have in stock.
    pub fn parts(&self) -> (usize, usize) {
        let is_wanted = |owner| is_within(owner, self.number);
        frame::mm::gather_stocks(is_wanted);
        let tables = self.tables.load(Ordering::Relaxed).saturating_sub(frame::mm::tables_in_stock(is_wanted));
        (tables, self.shared.load(Ordering::Relaxed))
    }

    /// Whether it may not have a frame more, even when what cores have in stock is given back.
    pub fn is_full(&self) -> bool {
        let is_full = || self.charged() >= self.max.load(Ordering::Relaxed);
        is_full() && {
            gather(self.number);
            is_full()
        }
    }

    /// By how many frames it has more than it may have.
    pub fn excess(&self) -> usize {
        gather(self.number);
        self.charged().saturating_sub(self.max.load(Ordering::Relaxed))
    }
}

impl Drop for Owned {
    fn drop(&mut self) {
        // What other cores have at hand for it goes back when they need that, and keeps the account until then.
        frame::mm::gather_stocks(|owner| is_within(owner, self.number));
        let before = self.account.count.fetch_or(GIVEN_UP, Ordering::AcqRel);
        if before == 0 {
            self.account.end(GIVEN_UP);
        }
    }
}

/// Whether an account, or one above it, was charged beyond its `memory.high` by somebody who has not waited for that yet.
pub fn is_unpaid(owner: u32) -> bool {
    up(owner).any(|(_, account)| account.unpaid.load(Ordering::Relaxed) > 0)
}

/// For how long whoever has charged an account has to wait, in nanoseconds, before it takes more: nobody else has to for the same.
pub fn take_penalty(owner: u32) -> u64 {
    let (mut frames, mut most) = (0, 0);
    for (number, account) in up(owner) {
        frames = account.unpaid.swap(0, Ordering::Relaxed).max(frames);
        most = overage(Named { number, account }.current(), account.high.load(Ordering::Relaxed)).max(most);
    }
    penalty(most, frames)
}

/// The bits behind the point of an overage.
const OVERAGE_BITS: u32 = 20;

/// By which part of `high` more is used.
fn overage(used: usize, high: usize) -> u64 {
    (used.saturating_sub(high) as u64).min(1 << 40).saturating_mul(1 << OVERAGE_BITS) / (high as u64).max(1)
}

/// As on Linux (`calculate_high_delay` in mm/memcontrol.c): grows with the square of the overage and with the frames, up to 2 s, and what is not worth a wait is none.
fn penalty(overage: u64, frames: usize) -> u64 {
    const SECOND: u128 = 1_000_000_000;
    /// What makes the delays bearable that programs see which are beyond the limit by little.
    const SCALE_BITS: u32 = 14;
    /// For so many frames at once it is what it is.
    const FRAMES: u128 = 64;
    let overage = u128::from(overage.min(1 << 40));
    let whole = (overage * overage * SECOND) >> (OVERAGE_BITS + SCALE_BITS);
    let penalty = (whole * (frames as u128).min(1 << 20) / FRAMES).min(2 * SECOND) as u64;
    if penalty <= 10_000_000 { 0 } else { penalty }
}

/// For how many frames that nobody uses cores have charged an account and those below it.
fn in_stock(cores: Cores, number: u32) -> usize {
    frame::mm::in_stock(cores, |owner| is_within(owner, number))
}

/// Takes back what cores have in stock or at hand for an account and those below it.
fn gather(number: u32) -> bool {
    frame::mm::gather_all_stocks(|owner| is_within(owner, number))
}

/// Has all frames of user programs charged here from now on. Called once, at boot.
pub(super) fn start() {
    frame::mm::charge_by(Accounts { charge, give_back, count });
}

fn charge(owner: u32, frames: u32, need: Need) -> Charged {
    match (try_charge(owner, frames), need) {
        (Err((Charged::Refused, _)), Need::WithinLimits) => charge_last(owner),
        (Err((Charged::Refused, _)), Need::Always) => charge_always(owner),
        (Err((answer, _)), _) => answer,
        (Ok(()), _) => Charged::Frames(frames),
    }
}

/// Frames that an account is charged for though no program of its has them, until this is dropped: memory of the kernel's that it uses alone.
///
/// Owner: whatever has that memory. Its end takes as long as the tree is deep.
pub struct Charge {
    owner: u32,
    frames: u32,
}

impl Charge {
    /// Charges whom the core works for just now, if that is anybody.
    ///
    /// # Errors
    /// ENOMEM: it may not have so many more.
    pub fn new(frames: u32) -> Result<Self> {
        let owner = frame::mm::owner();
        match try_charge(owner, frames).or_else(|(answer, full)| match answer {
            // Others may have in stock what it is refused.
            Charged::Refused => {
                gather(full);
                try_charge(owner, frames)
            }
            _ => Err((answer, full)),
        }) {
            Ok(()) => Ok(Charge { owner, frames }),
            Err((Charged::Refused, full)) => {
                if let Some(full) = find(full) {
                    full.count_event(AccountEvent::Max);
                }
                Err(Errno::ENOMEM)
            }
            Err(_) => Ok(Charge { owner: 0, frames }),
        }
    }
}

impl Drop for Charge {
    fn drop(&mut self) {
        give_back(self.owner, self.frames);
    }
}

/// Charges at every level, or at none: then what the answer is, and whose it is.
fn try_charge(owner: u32, frames: u32) -> core::result::Result<(), (Charged, u32)> {
    let mut number = owner;
    while let Some(account) = find(number) {
        if let Err(answer) = account.try_add(number, frames) {
            remove_up_to(owner, number, frames);
            return Err((answer, number));
        }
        // Not before: by what was just counted it stays what it is.
        number = account.parent.load(Ordering::Relaxed);
    }
    if find(owner).is_some() { Ok(()) } else { Err((Charged::Nobody, owner)) }
}

/// Charges for one frame where there was no room for more.
#[cold]
fn charge_last(owner: u32) -> Charged {
    match try_charge(owner, 1) {
        Ok(()) => return Charged::Frames(1),
        // Others may have in stock what it is refused.
        Err((Charged::Refused, full)) => gather(full),
        Err((answer, _)) => return answer,
    };
    match try_charge(owner, 1) {
        Ok(()) => Charged::Frames(1),
        Err((answer, full)) => {
            if answer == Charged::Refused
                && let Some(full) = find(full)
            {
                full.count_event(AccountEvent::Max);
            }
            answer
        }
    }
}

/// Charges for one frame, whatever the limits.
#[cold]
fn charge_always(owner: u32) -> Charged {
    let mut number = owner;
    while let Some(account) = find(number) {
        if !account.add(number, 1) {
            remove_up_to(owner, number, 1);
            return Charged::Nobody;
        }
        number = account.parent.load(Ordering::Relaxed);
    }
    Charged::Frames(1)
}

/// Takes back a charge at an account and all above it, up to below `end` (0: all).
fn remove_up_to(owner: u32, end: u32, frames: u32) {
    let mut number = owner;
    while number != end
        && let Some(account) = find(number)
    {
        // Before: once it has nothing it may be another's.
        number = account.parent.load(Ordering::Relaxed);
        account.remove(frames);
    }
}

fn give_back(owner: u32, frames: u32) {
    remove_up_to(owner, 0, frames);
}

fn count(owner: u32, part: Part, change: i32) {
    for (_, account) in up(owner) {
        let count = match part {
            Part::Tables => &account.tables,
            Part::Shared => &account.shared,
        };
        count.fetch_add(change as isize as usize, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use std::sync::{Mutex, MutexGuard, PoisonError};

    use super::*;

    /// The table is one for all tests.
    fn alone() -> MutexGuard<'static, ()> {
        static ALONE: Mutex<()> = Mutex::new(());
        ALONE.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn account(parent: u32) -> Owned {
        Owned::new(parent).expect("there is memory")
    }

    #[test]
    fn a_charge_counts_on_each_level_and_comes_back() {
        let _alone = alone();
        let top = account(0);
        let below = account(top.number());
        assert_eq!(charge(below.number(), 5, Need::WithinLimits), Charged::Frames(5));
        assert_eq!(charge(top.number(), 2, Need::WithinLimits), Charged::Frames(2));
        assert_eq!((below.charged(), top.charged()), (5, 7));
        give_back(below.number(), 5);
        give_back(top.number(), 2);
        assert_eq!((below.charged(), top.charged(), below.peak(), top.peak()), (0, 0, 5, 7));
    }

    #[test]
    fn the_lowest_limit_on_the_way_holds_and_is_told() {
        let _alone = alone();
        let top = account(0);
        let below = account(top.number());
        top.max.store(3, Ordering::Relaxed);
        assert_eq!(charge(below.number(), 32, Need::WithinLimits), Charged::Frames(1));
        assert_eq!(charge(below.number(), 2, Need::WithinLimits), Charged::Frames(2));
        assert_eq!(charge(below.number(), 1, Need::WithinLimits), Charged::Refused);
        assert_eq!((below.charged(), top.charged()), (3, 3));
        assert_eq!((top.own_event_count(AccountEvent::Max), below.event_count(AccountEvent::Max)), (1, 0));
        assert!(top.take_untold() && !top.take_untold() && !below.take_untold());
        assert_eq!(charge(below.number(), 32, Need::Always), Charged::Frames(1));
        assert_eq!(top.charged(), 4);
        give_back(below.number(), 4);
    }

    #[test]
    fn who_goes_beyond_high_waits_the_longer_the_further_it_goes() {
        let part = |percent: usize| overage(1000 + 10 * percent, 1000);
        assert_eq!((overage(999, 1000), overage(1000, 1000), penalty(part(0), 32)), (0, 0, 0));
        // 1 %: not worth a wait; then 100 times as long for 10 times as much.
        assert_eq!(penalty(part(1), 32), 0);
        let (tenth, whole) = (penalty(part(10), 32), penalty(part(30), 32));
        assert!((300_000_000..340_000_000).contains(&tenth), "{tenth}");
        assert_eq!((whole, penalty(u64::MAX, usize::MAX)), (2_000_000_000, 2_000_000_000));
        assert_eq!(penalty(overage(5, 0), 1), 2_000_000_000);
    }

    #[test]
    fn each_waits_once_for_what_it_has_charged() {
        let _alone = alone();
        let top = account(0);
        let below = account(top.number());
        top.high.store(10, Ordering::Relaxed);
        assert_eq!(charge(below.number(), 10, Need::WithinLimits), Charged::Frames(10));
        assert!(!is_unpaid(below.number()));
        assert_eq!(charge(below.number(), 32, Need::WithinLimits), Charged::Frames(32));
        assert!(is_unpaid(below.number()) && is_any_over_high());
        assert_eq!((top.own_event_count(AccountEvent::High), below.event_count(AccountEvent::High)), (1, 0));
        assert_eq!(take_penalty(below.number()), 2_000_000_000);
        assert_eq!((is_unpaid(below.number()), take_penalty(below.number())), (false, 0));
        give_back(below.number(), 42);
    }

    #[test]
    fn a_number_is_used_again_when_nothing_is_charged_to_it() {
        let _alone = alone();
        let first = account(0);
        let number = first.number();
        charge(number, 1, Need::WithinLimits);
        drop(first);
        let second = account(0);
        assert_ne!(second.number(), number);
        // It can still be charged.
        assert_eq!(charge(number, 1, Need::WithinLimits), Charged::Frames(1));
        give_back(number, 2);
        assert_eq!(charge(number, 1, Need::WithinLimits), Charged::Nobody);
        assert_eq!(charge(number, 1, Need::Always), Charged::Nobody);
        let third = (0..=PIECE).map(|_| account(second.number())).find(|account| account.number() == number);
        assert!(third.is_some_and(|third| third.charged() == 0 && third.peak() == 0));
    }

    #[test]
    fn an_owner_that_never_was_is_nobody() {
        let _alone = alone();
        for owner in [0, 64 * 1024, u32::MAX >> 1] {
            assert_eq!(charge(owner, 1, Need::WithinLimits), Charged::Nobody);
            give_back(owner, 1);
            count(owner, Part::Tables, 1);
        }
    }

    #[test]
    fn what_is_charged_stays_with_those_above_when_a_group_is_gone() {
        let _alone = alone();
        let top = account(0);
        let below = account(top.number());
        let number = below.number();
        charge(number, 4, Need::WithinLimits);
        drop(below);
        assert_eq!(top.charged(), 4);
        give_back(number, 3);
        assert_eq!(top.charged(), 1);
        give_back(number, 1);
        assert_eq!(top.charged(), 0);
        assert_eq!(charge(number, 1, Need::WithinLimits), Charged::Nobody);
    }

    /// A group of the model.
    struct Model {
        owned: Option<Owned>,
        number: u32,
        parent: Option<usize>,
        own: u32,
        max: usize,
    }

    fn total(groups: &[Model], at: usize) -> usize {
        let below = (0..groups.len()).filter(|&index| groups[index].parent == Some(at));
        groups[at].own as usize + below.map(|index| total(groups, index)).sum::<usize>()
    }

    #[test]
    fn a_tree_of_accounts_counts_as_a_plain_one_does() {
        let _alone = alone();
        for seed in 1..=20_u64 {
            let mut state = seed;
            let mut random = |below: u64| {
                state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
                (state >> 33) % below
            };
            let mut groups: Vec<Model> = Vec::new();
            for _ in 0..2000 {
                let chosen = (!groups.is_empty()).then(|| random(groups.len() as u64) as usize);
                match (random(10), chosen) {
                    (0, _) if groups.len() < 12 => {
                        let parent = chosen.filter(|&parent| groups[parent].owned.is_some() && random(4) > 0);
                        let owned = account(parent.map_or(0, |parent| groups[parent].number));
                        let number = owned.number();
                        groups.push(Model { owned: Some(owned), number, parent, own: 0, max: UNLIMITED });
                    }
                    (1, Some(at)) => {
                        if let Some(owned) = &groups[at].owned {
                            let max = if random(3) == 0 { UNLIMITED } else { random(60) as usize };
                            owned.max.store(max, Ordering::Relaxed);
                            groups[at].max = max;
                        }
                    }
                    (2, Some(at))
                        if groups[at].owned.is_some() && groups.iter().all(|group| group.parent != Some(at)) =>
                    {
                        // It goes, and what it has is freed after that.
                        groups[at].owned = None;
                        let (number, own) = (groups[at].number, groups[at].own);
                        give_back(number, own);
                        assert_eq!(charge(number, 1, Need::Always), Charged::Nobody);
                        groups[at].own = 0;
                        groups[at].parent = Some(usize::MAX);
                        groups[at].max = UNLIMITED;
                    }
                    (3..=6, Some(at)) if groups[at].owned.is_some() => {
                        let mut path = Vec::from([at]);
                        while let Some(parent) = groups[path[path.len() - 1]].parent {
                            path.push(parent);
                        }
                        let wanted = random(8) as u32 + 1;
                        let fits =
                            |count: u32| path.iter().all(|&at| total(&groups, at) + count as usize <= groups[at].max);
                        let expected = if fits(wanted) {
                            Charged::Frames(wanted)
                        } else if fits(1) {
                            Charged::Frames(1)
                        } else {
                            Charged::Refused
                        };
                        assert_eq!(charge(groups[at].number, wanted, Need::WithinLimits), expected);
                        if let Charged::Frames(count) = expected {
                            groups[at].own += count;
                        }
                    }
                    (_, Some(at)) if groups[at].own > 0 => {
                        let count = random(groups[at].own.into()) as u32 + 1;
                        give_back(groups[at].number, count);
                        groups[at].own -= count;
                    }
                    _ => {}
                }
                for (at, group) in groups.iter().enumerate() {
                    if let Some(owned) = &group.owned {
                        assert_eq!(owned.charged(), total(&groups, at), "seed {seed}");
                    }
                }
            }
            groups.iter().for_each(|group| give_back(group.number, group.own));
        }
    }

    #[test]
    fn limits_hold_where_several_charge_at_the_same_time_and_groups_come_and_go() {
        let _alone = alone();
        let top = account(0);
        top.max.store(100, Ordering::Relaxed);
        let numbers = [top.number(), account(top.number()).number()];
        std::thread::scope(|scope| {
            for seed in 0..4_u64 {
                let top = &top;
                scope.spawn(move || {
                    let mut state = seed;
                    let mut random = |below: u64| {
                        state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
                        (state >> 33) % below
                    };
                    let (mut own, mut had) = (account(top.number()), Vec::new());
                    for _ in 0..20_000 {
                        match random(8) {
                            0 => own = account(top.number()),
                            1..=4 => {
                                // One of those may be given up, free, or another thread's by now.
                                let owner = if random(2) == 0 { own.number() } else { numbers[random(2) as usize] };
                                if let Charged::Frames(count) = charge(owner, random(40) as u32 + 1, Need::WithinLimits)
                                {
                                    had.push((owner, count));
                                }
                            }
                            _ if !had.is_empty() => {
                                let (owner, count) = had.swap_remove(random(had.len() as u64) as usize);
                                give_back(owner, count);
                            }
                            _ => {}
                        }
                        assert!(top.charged() <= 100);
                    }
                    had.into_iter().for_each(|(owner, count)| give_back(owner, count));
                });
            }
        });
        assert_eq!(top.charged(), 0);
        for number in 1..MAKING.with(|making| making.len) as u32 {
            let count = find(number).map_or(FREE, |account| account.count.load(Ordering::Relaxed));
            assert!(number == top.number() || count == FREE, "{number}: {count:x}");
        }
    }
}
