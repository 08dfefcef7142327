//! Who pays for the frames of user programs.
//!
//! A frame of a user program, or a page table, has an *owner*: the number of an account that the kernel keeps, or 0 for nobody. It stands in the first of the frame's words of the policies
//! that nobody else needs while the frame is in use ([`word`]). The policies leave 0 there when they hand a frame out. Safe code can write that word, so nothing relies on it but the accounts:
//! a wrong owner is counted wrongly, and that is all.
//!
//! Each core knows where the owner of what it does just now is written ([`work_for`]). What it takes for an owner it charges to a *stock* of charges that it keeps for one owner at a time,
//! so that the kernel's accounts are asked once for [`BATCH`] frames. What comes back, of whichever owner, goes to the stock as well. The stock is one word, which other cores may
//! look at and empty ([`gather_stocks`]): so what it holds keeps nobody else from memory, and nobody has to be interrupted for it.

use core::sync::atomic::{AtomicPtr, AtomicU32, AtomicU64, Ordering};

use super::core_local;
use super::metadata::Metadata;
use super::supply::Purpose;
use crate::cpu::Named;

/// So many frames are charged at a time, and so many given back.
const BATCH: u32 = 32;
/// No stock is larger.
const MOST: u32 = 2 * BATCH;

/// This bit of a frame's word says that it was counted as [`Part::Shared`].
const SHARED: u32 = 1 << 31;

/// What the kernel's accounts do. They are called with any locks held, and take none.
#[derive(Clone, Copy)]
pub struct Accounts {
    /// Charges an owner for frames that it is about to have.
    pub charge: fn(owner: u32, frames: u32, need: Need) -> Charged,
    /// So many frames that were charged to an owner are free, or were not taken after all.
    pub give_back: fn(owner: u32, frames: u32),
    /// Of the frames that an owner has, so many more, or fewer, are such a part.
    pub count: fn(owner: u32, part: Part, change: i32),
}

/// Whether frames can be refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Need {
    /// If there are limits they hold, and then it may be fewer.
    WithinLimits,
    /// They are needed: beyond the limits it is one.
    Always,
}

/// The answer to a charge.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Charged {
    /// So many, from one to what was asked for.
    Frames(u32),
    /// None may be taken.
    Refused,
    /// There is no such owner any more: the frames are nobody's.
    Nobody,
}

/// A part of an owner's frames that is counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Part {
    /// Page tables.
    Tables,
    /// Pages of objects that several can have: files of memory, shared memory.
    Shared,
}

static CHARGE: Named<fn(u32, u32, Need) -> Charged> = Named::none();
static GIVE_BACK: Named<fn(u32, u32)> = Named::none();
static COUNT: Named<fn(u32, Part, i32)> = Named::none();

/// Says who keeps accounts. Called once, at boot.
pub fn charge_by(accounts: Accounts) {
    GIVE_BACK.set(accounts.give_back);
    COUNT.set(accounts.count);
    CHARGE.set(accounts.charge);
}

/// The owner's number for what nobody is charged for.
pub static NOBODY: AtomicU64 = AtomicU64::new(0);

/// What a core knows of owners.
pub(super) struct Payer {
    /// Where the current owner's number is.
    at: AtomicPtr<AtomicU64>,
    /// An owner's number, and in the lower half for how many frames more it was charged.
    stock: AtomicU64,
}

impl Payer {
    pub(super) const fn new() -> Self {
        Payer { at: AtomicPtr::new((&raw const NOBODY).cast_mut()), stock: AtomicU64::new(0) }
    }

    #[inline(always)]
    fn owner(&self) -> u64 {
        // SAFETY: it was `NOBODY` at first, and since then comes from references that are good for ever.
        unsafe { &*self.at.load(Ordering::Relaxed) }.load(Ordering::Relaxed)
    }

    /// Whether the core works for somebody.
    #[inline(always)]
    pub(super) fn is_any(&self) -> bool {
        self.owner() != 0
    }
}

/// From now on this core works for the owner whose number (0: nobody) is at `owner`, even when it changes. 31 bits of it count.
#[inline(always)]
pub fn work_for(owner: &'static AtomicU64) {
    core_local::here().payer.at.store(core::ptr::from_ref(owner).cast_mut(), Ordering::Relaxed);
}

/// Where a frame in use has its owner.
#[inline(always)]
pub(super) fn word(record: &Metadata) -> &AtomicU32 {
    &record.link.previous
}

/// Charges whom this core works for for a frame, whose word this is to be; `None` if it may not have it, and 0 if it is nobody's.
#[inline(never)]
pub(super) fn charge(purpose: Purpose) -> Option<u32> {
    let Payer { stock, .. } = &core_local::here().payer;
    let owner = core_local::here().payer.owner() as u32 & !SHARED;
    let mut now = stock.load(Ordering::Relaxed);
    while owner_of(now) == owner && count_of(now) > 0 {
        match stock.compare_exchange_weak(now, now - 1, Ordering::Relaxed, Ordering::Relaxed) {
            Ok(_) => return Some(owner),
            Err(other) => now = other,
        }
    }
    let charge = CHARGE.get()?;
    let need = if purpose == Purpose::User { Need::WithinLimits } else { Need::Always };
    match charge(owner, BATCH, need) {
        Charged::Frames(count) => {
            put(owner, count.saturating_sub(1));
            Some(owner)
        }
        Charged::Refused => None,
        Charged::Nobody => Some(0),
    }
}

/// A frame is about to be free that has an owner.
#[cold]
#[inline(never)]
pub(super) fn give_back(record: &Metadata) {
    let now = word(record).load(Ordering::Relaxed);
    word(record).store(0, Ordering::Relaxed);
    if now & SHARED != 0 {
        count(now & !SHARED, Part::Shared, -1);
    }
    put(now & !SHARED, 1);
}

/// A frame was not to be had that was charged.
#[cold]
pub(super) fn withdraw_charge(owner: u32) {
    put(owner, 1);
}

/// So many more, or fewer, of an owner's frames are such a part.
pub(super) fn count(owner: u32, part: Part, change: i32) {
    if let Some(count) = COUNT.get() {
        count(owner, part, change);
    }
}

/// A table is in use from now on, for whom this core works for. It is charged whatever the limits.
#[cold]
#[inline(never)]
pub(super) fn charge_table(record: &Metadata) {
    let owner = charge(Purpose::Kernel).unwrap_or(0);
    word(record).store(owner, Ordering::Relaxed);
    if owner != 0 {
        count(owner, Part::Tables, 1);
    }
}

/// A table is in use no more that has an owner.
#[cold]
#[inline(never)]
pub(super) fn give_table_back(record: &Metadata) {
    count(word(record).load(Ordering::Relaxed) & !SHARED, Part::Tables, -1);
    give_back(record);
}

/// A frame of an object that several can have is counted as such from now on.
#[cold]
#[inline(never)]
pub(super) fn count_shared(record: &Metadata) {
    let owner = word(record).load(Ordering::Relaxed);
    if owner != 0 && owner & SHARED == 0 {
        word(record).store(owner | SHARED, Ordering::Relaxed);
        count(owner, Part::Shared, 1);
    }
}

fn owner_of(stock: u64) -> u32 {
    (stock >> 32) as u32
}

fn count_of(stock: u64) -> u32 {
    stock as u32
}

fn stock_of(owner: u32, count: u32) -> u64 {
    u64::from(owner) << 32 | u64::from(count)
}

/// Adds to this core's stock, which is that owner's from now on. What it cannot hold goes back to the accounts.
fn put(owner: u32, count: u32) {
    if owner == 0 {
        return;
    }
    let stock = &core_local::here().payer.stock;
    let mut now = stock.load(Ordering::Relaxed);
    loop {
        let (other, left, kept) = if owner_of(now) == owner {
            let sum = count_of(now).saturating_add(count);
            let left = if sum > MOST { sum - BATCH } else { 0 };
            (owner, left, sum - left)
        } else {
            (owner_of(now), count_of(now), count)
        };
        match stock.compare_exchange_weak(now, stock_of(owner, kept), Ordering::Relaxed, Ordering::Relaxed) {
            Ok(_) => return settle(other, left),
            Err(changed) => now = changed,
        }
    }
}

fn settle(owner: u32, count: u32) {
    if count > 0
        && let Some(give_back) = GIVE_BACK.get()
    {
        give_back(owner, count);
    }
}

/// The stocks of all cores: owners, and for how many frames that they do not have each was charged. As they were a moment ago.
pub fn stocks() -> impl Iterator<Item = (u32, u32)> {
    core_local::all().map(|core| {
        let stock = core.payer.stock.load(Ordering::Relaxed);
        (owner_of(stock), count_of(stock))
    })
}

/// Gives back to the accounts what cores have in stock for owners that are `wanted`; whether there was anything.
#[cold]
pub fn gather_stocks(wanted: impl Fn(u32) -> bool) -> bool {
    let mut any = false;
    for core in core_local::all() {
        let stock = &core.payer.stock;
        let now = stock.load(Ordering::Relaxed);
        if count_of(now) > 0
            && wanted(owner_of(now))
            && stock.compare_exchange(now, stock_of(owner_of(now), 0), Ordering::Relaxed, Ordering::Relaxed).is_ok()
        {
            settle(owner_of(now), count_of(now));
            any = true;
        }
    }
    any
}
