//! Who pays for the frames of user programs.
//!
//! A frame of a user program, or a page table, has an *owner*: the number of an account that the kernel keeps, or 0 for nobody. It stands in the first of the frame's words of the policies
//! that nobody else needs while the frame is in use ([`word`]). The policies leave 0 there when they hand a frame out. Safe code can write that word, so nothing relies on it but the accounts:
//! a wrong owner is counted wrongly, and that is all.
//!
//! Each core knows where the owner of what it does just now is written ([`work_for`]). What it takes for an owner it charges to a *stock* of charges that it keeps for one owner at a time,
//! so that the kernel's accounts are asked once for [`BATCH`] frames. What comes back, of whichever owner, goes to the stock as well. The stock is one word, which other cores may
//! look at and empty ([`gather_stocks`]): so what it holds keeps nobody else from memory, and nobody has to be interrupted for it.
//!
//! The word also has what the accounts were not told yet of the [parts](Part) of the owner's frames. That is as long as there are charges in it: those keep the account from being another one's.

use core::sync::atomic::{AtomicPtr, AtomicU32, AtomicU64, Ordering};

use super::core_local;
use super::metadata::Metadata;
use super::supply::Purpose;
use crate::cpu::Named;

/// So many frames are charged at a time, and so many given back.
const BATCH: u32 = 32;
/// No stock is larger.
const MOST: u32 = 2 * BATCH;

/// One table more in a stock, whose lowest bits are charges, and one shared frame more: counts of [`PART_BITS`] that begin in the middle.
const TABLE: u64 = 1 << 8;
const SHARED_FRAME: u64 = TABLE << PART_BITS;
const PART_BITS: u32 = 12;
/// No table and no shared frame more or fewer.
const NO_PARTS: u64 = (TABLE | SHARED_FRAME) << (PART_BITS - 1);

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
    /// An owner's number, and in the lower half for how many frames more it was charged, and by how much its parts have changed.
    stock: AtomicU64,
}

impl Payer {
    pub(super) const fn new() -> Self {
        Payer { at: AtomicPtr::new((&raw const NOBODY).cast_mut()), stock: AtomicU64::new(stock_of(0, 0)) }
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

/// The owner for whom this core works just now; 0: nobody.
pub fn owner() -> u32 {
    core_local::here().payer.owner() as u32 & !SHARED
}

/// Where a frame in use has its owner.
#[inline(always)]
pub(super) fn word(record: &Metadata) -> &AtomicU32 {
    &record.link.previous
}

/// Charges whom this core works for for a frame, whose word this is to be; `None` if it may not have it, and 0 if it is nobody's.
#[inline(always)]
pub(super) fn charge(purpose: Purpose) -> Option<u32> {
    charge_as(purpose, 0)
}

/// As [`charge`], for a frame that is a `part`: 0, or one of what a stock counts.
#[inline(always)]
fn charge_as(purpose: Purpose, part: u64) -> Option<u32> {
    let Payer { stock, .. } = &core_local::here().payer;
    let owner = core_local::here().payer.owner() as u32 & !SHARED;
    let mut now = stock.load(Ordering::Relaxed);
    while owner_of(now) == owner && count_of(now) > 0 {
        let next = now - 1 + part;
        // What is no part changes none.
        let is_kept = if part == 0 { count_of(next) > 0 } else { may_be_kept(next) };
        let kept = if is_kept { next } else { stock_of(owner, count_of(next)) };
        match stock.compare_exchange_weak(now, kept, Ordering::Relaxed, Ordering::Relaxed) {
            Ok(_) => {
                if !is_kept {
                    // This frame's charge keeps the account.
                    tell_parts(next);
                }
                return Some(owner);
            }
            Err(other) => now = other,
        }
    }
    charge_anew(owner, purpose, part)
}

#[inline(never)]
fn charge_anew(owner: u32, purpose: Purpose, part: u64) -> Option<u32> {
    let charge = CHARGE.get()?;
    let need = if purpose == Purpose::User { Need::WithinLimits } else { Need::Always };
    match charge(owner, BATCH, need) {
        Charged::Frames(1) => {
            tell_parts(stock_of(owner, 0) + part);
            Some(owner)
        }
        Charged::Frames(count) => {
            put(owner, count.saturating_sub(1), part);
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
    put(now & !SHARED, 1, if now & SHARED != 0 { SHARED_FRAME.wrapping_neg() } else { 0 });
}

/// A frame was not to be had that was charged.
#[cold]
pub(super) fn withdraw_charge(owner: u32) {
    put(owner, 1, 0);
}

/// A table is in use from now on, for whom this core works for. It is charged whatever the limits.
#[cold]
#[inline(never)]
pub(super) fn charge_table(record: &Metadata) {
    let owner = charge_as(Purpose::Kernel, TABLE).unwrap_or(0);
    word(record).store(owner, Ordering::Relaxed);
}

/// A table is in use no more that has an owner.
#[cold]
#[inline(never)]
pub(super) fn give_table_back(record: &Metadata) {
    let owner = word(record).load(Ordering::Relaxed) & !SHARED;
    word(record).store(0, Ordering::Relaxed);
    put(owner, 1, TABLE.wrapping_neg());
}

/// A frame of an object that several can have is counted as such from now on.
#[cold]
#[inline(never)]
pub(super) fn count_shared(record: &Metadata) {
    let owner = word(record).load(Ordering::Relaxed);
    if owner == 0 || owner & SHARED != 0 {
        return;
    }
    word(record).store(owner | SHARED, Ordering::Relaxed);
    let stock = &core_local::here().payer.stock;
    let now = stock.load(Ordering::Relaxed);
    let next = now + SHARED_FRAME;
    let is_kept = owner_of(now) == owner
        && may_be_kept(next)
        && stock.compare_exchange(now, next, Ordering::Relaxed, Ordering::Relaxed).is_ok();
    if !is_kept {
        tell_parts(stock_of(owner, 0) + SHARED_FRAME);
    }
}

fn owner_of(stock: u64) -> u32 {
    (stock >> 32) as u32
}

fn count_of(stock: u64) -> u32 {
    u32::from(stock as u8)
}

/// By how much a part has changed: [`TABLE`] or [`SHARED_FRAME`].
fn change_of(stock: u64, part: u64) -> i32 {
    const MIDDLE: i32 = 1 << (PART_BITS - 1);
    ((stock / part) as i32 & (2 * MIDDLE - 1)) - MIDDLE
}

const fn stock_of(owner: u32, count: u32) -> u64 {
    (owner as u64) << 32 | NO_PARTS | count as u64
}

/// Whether a core may have such a stock: there are charges in it, and no part has changed by half of what can be counted.
#[inline(always)]
fn may_be_kept(stock: u64) -> bool {
    // The highest two bits of each part are unlike.
    const HIGHEST_BUT_ONE: u64 = NO_PARTS >> 1;
    count_of(stock) > 0 && (stock ^ stock >> 1) & HIGHEST_BUT_ONE == HIGHEST_BUT_ONE
}

/// Adds charges, at least one, and changes of parts to this core's stock, which is that owner's from now on. What it cannot hold goes to the accounts.
fn put(owner: u32, more: u32, parts: u64) {
    if owner == 0 {
        return;
    }
    let stock = &core_local::here().payer.stock;
    let mut now = stock.load(Ordering::Relaxed);
    loop {
        let is_own = owner_of(now) == owner;
        let sum = (if is_own { now } else { stock_of(owner, 0) }).wrapping_add(parts) + u64::from(more);
        let is_kept = count_of(sum) <= MOST && may_be_kept(sum);
        let left = if count_of(sum) > MOST { BATCH } else { 0 };
        let kept = if is_kept { sum } else { stock_of(owner, count_of(sum) - left) };
        match stock.compare_exchange_weak(now, kept, Ordering::Relaxed, Ordering::Relaxed) {
            Ok(_) if is_own && is_kept => return,
            Ok(_) if is_own => return settle(sum - u64::from(count_of(kept))),
            Ok(_) => return settle(now),
            Err(changed) => now = changed,
        }
    }
}

/// Tells the accounts what was in a stock.
#[inline(never)]
fn settle(stock: u64) {
    // First: once the charges are given back, the account may be another one's.
    tell_parts(stock);
    if count_of(stock) > 0
        && let Some(give_back) = GIVE_BACK.get()
    {
        give_back(owner_of(stock), count_of(stock));
    }
}

/// Tells the account of a stock's owner, which is charged for something, by how much its parts have changed.
#[inline(never)]
fn tell_parts(stock: u64) {
    for (part, of_stock) in [(Part::Tables, TABLE), (Part::Shared, SHARED_FRAME)] {
        let change = change_of(stock, of_stock);
        if change != 0
            && let Some(count) = COUNT.get()
        {
            count(owner_of(stock), part, change);
        }
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
            settle(now);
            any = true;
        }
    }
    any
}
