//! Who pays for the frames of user programs.
//!
//! A frame of a user program, or a page table, has an *owner*: the number of an account that the kernel keeps, or 0 for nobody. It stands in the first of the frame's words of the policies
//! that nobody else needs while the frame is in use ([`word`]). The policies leave 0 there when they hand a frame out. Safe code can write that word, so nothing relies on it but the accounts:
//! a wrong owner is counted wrongly, and that is all.
//!
//! Each core knows where the owner of what it does just now is written ([`work_for`]). A frame that is given back *keeps its owner* as long as it is at hand for the core: it stays charged, and whoever takes it next
//! for the same owner charges nobody. So a program that ends and one that begins after it cost no more than outside of a group. The owner is given back its charge when the frame goes to the frame policy, or
//! is taken for somebody else or for the kernel. Tables that are kept at hand do the same.
//!
//! Frames that come to hand where nothing was are [charged ahead](Ahead) to whom the core works for then, so that the kernel's accounts are asked once for [`BATCH`] of them. A frame that is at hand and has another
//! owner, or none, is charged out of the core's *stock*: charges for one owner at a time. Those that are not needed at once go to the frames that come next. The stock is one word, which other cores may look at
//! and empty.
//!
//! What cores have in stock or at hand is charged, so no limit is ever exceeded by it. Others may look at it ([`in_stock`]), and have it given back before they are refused anything ([`gather_all_stocks`]).
//!
//! The word of the stock also has what the accounts were not told yet of the [parts](Part) of the owner's frames. That is as long as there are charges in it: those keep the account from being another one's.

use core::sync::atomic::{AtomicBool, AtomicPtr, AtomicU32, AtomicU64, Ordering};

use super::core_local::{self, CoreLocal};
use super::metadata::{self, FrameNumber, Metadata};
use super::supply::{self, Purpose};
use crate::cpu::Named;

/// So many frames are charged at a time, and so many given back.
const BATCH: u32 = 64;
/// No stock is larger. (What one frame more makes of it fits into a byte.)
const MOST: u32 = 2 * BATCH;
/// So many charges stay in a stock when the others go to the frames that come next: then it can count parts.
const KEPT: u32 = 1;

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

/// Somebody was ever charged.
static IS_USED: AtomicBool = AtomicBool::new(false);

/// Whether any free frame may have an owner.
pub(super) fn is_used() -> bool {
    IS_USED.load(Ordering::Relaxed)
}

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

    /// Whether a frame, whose record this is, is charged to whom the core works for; or to nobody, if that is nobody.
    #[inline(always)]
    pub(super) fn pays_for(&self, record: &Metadata) -> bool {
        word(record).load(Ordering::Relaxed) == self.owner() as u32
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

/// Charges whom this core works for for a free frame, which is charged to nobody; `None` if he may not have it, 0 if it is nobody's.
pub(super) fn charge(record: &Metadata, purpose: Purpose) -> Option<u32> {
    let owner = charge_as(purpose, 0)?;
    word(record).store(owner, Ordering::Relaxed);
    Some(owner)
}

/// Gives most of what this core has in stock for an owner to frames at hand that come next: `attach` is told how many it may have pay for, and says how many it has.
pub(super) fn spread(owner: u32, attach: impl FnOnce(u32) -> u32) {
    let mut ahead = Ahead { owner, frames: take_stock(owner) };
    if ahead.frames > 0 {
        ahead.frames -= attach(ahead.frames);
    }
}

/// For how many frames more an owner is charged by this core's stock.
fn in_own_stock(owner: u32) -> u32 {
    let stock = core_local::here().payer.stock.load(Ordering::Relaxed);
    if owner_of(stock) == owner { count_of(stock) } else { 0 }
}

/// Takes most of what this core has in stock for an owner: how many.
fn take_stock(owner: u32) -> u32 {
    let stock = &core_local::here().payer.stock;
    let now = stock.load(Ordering::Relaxed);
    let more = count_of(now).saturating_sub(KEPT);
    let is_taken = more > 0
        && owner_of(now) == owner
        && stock.compare_exchange(now, now - u64::from(more), Ordering::Relaxed, Ordering::Relaxed).is_ok();
    if is_taken { more } else { 0 }
}

/// Charges for frames that are about to be at hand; those that it pays for have their owner then. What is left when it is dropped goes to the stock.
pub(super) struct Ahead {
    owner: u32,
    frames: u32,
}

impl Ahead {
    /// For no frame.
    #[inline(always)]
    pub(super) fn none() -> Self {
        Ahead { owner: 0, frames: 0 }
    }

    /// Charges whom this core works for for [`BATCH`] frames at least, if he may have so many; `None` if he may not have any.
    pub(super) fn charge(purpose: Purpose) -> Option<Self> {
        let owner = owner();
        if owner == 0 {
            return Some(Ahead::none());
        }
        let mut first = 0;
        if in_own_stock(owner) < BATCH {
            match charge_anew(owner, purpose, 0) {
                Some(0) => return Some(Ahead::none()),
                // That was for one frame, and the others are in stock.
                Some(_) => first = 1,
                None if in_own_stock(owner) == 0 => return None,
                None => {}
            }
        }
        Some(Ahead { owner, frames: first + take_stock(owner) })
    }

    /// Pays for as many of these unused frames as it can, the last ones first: they have an owner from then on.
    ///
    /// # Safety
    /// They have numbers in range.
    pub(super) unsafe fn pay_for(&mut self, frames: &[FrameNumber]) {
        let paid = frames.len().min(self.frames as usize);
        let records = metadata::records();
        for frame in &frames[frames.len() - paid..] {
            // SAFETY: the caller's promise.
            word(unsafe { records.of(*frame) }).store(self.owner, Ordering::Relaxed);
        }
        self.frames -= paid as u32;
    }
}

impl Drop for Ahead {
    fn drop(&mut self) {
        if self.frames > 0 {
            put(self.owner, self.frames, 0);
        }
    }
}

/// Charges whom this core works for for a frame that is a `part`: 0, or one of what a stock counts. `None` if it may not have it, and 0 if it is nobody's.
fn charge_as(purpose: Purpose, part: u64) -> Option<u32> {
    let Payer { stock, .. } = &core_local::here().payer;
    let owner = owner();
    if owner == 0 {
        return Some(0);
    }
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
    IS_USED.store(true, Ordering::Relaxed);
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

/// A frame is about to be free that [is counted](Part::Shared) among those that several can have. It is still its owner's.
#[cold]
#[inline(never)]
pub(super) fn end_shared(record: &Metadata) {
    let owner = owner_at(record);
    word(record).store(owner, Ordering::Relaxed);
    count_part(owner, SHARED_FRAME.wrapping_neg());
}

/// Whether a frame about to be free [is counted](Part::Shared) among those that several can have.
#[inline(always)]
pub(super) fn is_shared(record: &Metadata) -> bool {
    word(record).load(Ordering::Relaxed) & SHARED != 0
}

fn owner_at(record: &Metadata) -> u32 {
    word(record).load(Ordering::Relaxed) & !SHARED
}

/// Whether a frame has an owner.
#[inline(always)]
pub(super) fn is_any(record: &Metadata) -> bool {
    word(record).load(Ordering::Relaxed) != 0
}

/// A free frame has no owner any more; it had one.
#[cold]
#[inline(never)]
pub(super) fn discharge(record: &Metadata) {
    put(word(record).swap(0, Ordering::Relaxed) & !SHARED, 1, 0);
}

/// A table is in use from now on, for whom this core works for, who does not pay for it yet. It is charged whatever the limits.
#[cold]
#[inline(never)]
pub(super) fn charge_table(record: &Metadata) {
    discharge_table(record);
    let owner = charge_as(Purpose::Kernel, TABLE).unwrap_or(0);
    word(record).store(owner, Ordering::Relaxed);
}

/// A table that is not in use has no owner any more, if it had one.
#[cold]
#[inline(never)]
pub(super) fn discharge_table(record: &Metadata) {
    put(word(record).swap(0, Ordering::Relaxed) & !SHARED, 1, TABLE.wrapping_neg());
}

/// Charges that come back from frames which are at hand, one after the other, and go to the accounts together as long as they are of the same owner.
pub(super) struct Returned {
    owner: u32,
    frames: u32,
    tables: u32,
}

impl Returned {
    pub(super) const fn new() -> Self {
        Returned { owner: 0, frames: 0, tables: 0 }
    }

    /// If the owner of a free frame is `wanted` it has none any more.
    #[inline(always)]
    pub(super) fn add(&mut self, record: &Metadata, wanted: impl FnOnce(u32) -> bool) {
        if is_any(record) {
            self.add_any(record, 0, wanted);
        }
    }

    /// As [`add`](Self::add), for a table that is not in use.
    pub(super) fn add_table(&mut self, record: &Metadata, wanted: impl FnOnce(u32) -> bool) {
        if is_any(record) {
            self.add_any(record, 1, wanted);
        }
    }

    fn add_any(&mut self, record: &Metadata, tables: u32, wanted: impl FnOnce(u32) -> bool) {
        let owner = owner_at(record);
        if self.owner != owner {
            if !wanted(owner) {
                return;
            }
            self.tell();
            self.owner = owner;
        }
        word(record).store(0, Ordering::Relaxed);
        self.frames += 1;
        self.tables += tables;
    }

    fn tell(&mut self) {
        let (frames, tables) = (core::mem::take(&mut self.frames), core::mem::take(&mut self.tables));
        // In this order: once the charges are given back, the account may be another one's.
        if tables > 0
            && let Some(count) = COUNT.get()
        {
            count(self.owner, Part::Tables, -(tables as i32));
        }
        if frames > 0
            && let Some(give_back) = GIVE_BACK.get()
        {
            give_back(self.owner, frames);
        }
    }
}

impl Drop for Returned {
    fn drop(&mut self) {
        self.tell();
    }
}

/// A frame of an object that several can have is counted as such from now on.
#[inline(always)]
pub(super) fn count_shared(record: &Metadata) {
    let owner = word(record).load(Ordering::Relaxed);
    // Nobody's, or counted already.
    if owner.wrapping_sub(1) < SHARED - 1 {
        word(record).store(owner | SHARED, Ordering::Relaxed);
        count_part(owner, SHARED_FRAME);
    }
}

/// A frame that has an owner is a table from now on.
#[inline(always)]
pub(super) fn count_table(record: &Metadata) {
    count_part(word(record).load(Ordering::Relaxed), TABLE);
}

/// A part of what is charged to an owner has changed; a frame's charge keeps its account.
#[inline(always)]
fn count_part(owner: u32, change: u64) {
    let stock = &core_local::here().payer.stock;
    let now = stock.load(Ordering::Relaxed);
    let next = now.wrapping_add(change);
    let is_kept = owner_of(now) == owner
        && may_be_kept(next)
        && stock.compare_exchange(now, next, Ordering::Relaxed, Ordering::Relaxed).is_ok();
    if !is_kept {
        tell_change(owner, change);
    }
}

/// Tells the account of a change that the stock cannot have, and of all that it has for this owner.
#[cold]
#[inline(never)]
fn tell_change(owner: u32, change: u64) {
    let stock = &core_local::here().payer.stock;
    let now = stock.load(Ordering::Relaxed);
    let untold = stock_of(owner, count_of(now));
    let is_told = owner_of(now) == owner
        && count_of(now) > 0
        && stock.compare_exchange(now, untold, Ordering::Relaxed, Ordering::Relaxed).is_ok();
    tell_parts(if is_told { now } else { stock_of(owner, 0) }.wrapping_add(change));
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

/// Which cores are meant.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Cores {
    /// The one that asks.
    This,
    /// All of them.
    All,
}

fn those(cores: Cores) -> impl Iterator<Item = &'static CoreLocal> {
    let here = core_local::here();
    core_local::all().filter(move |core| cores == Cores::All || core::ptr::eq(*core, here))
}

/// Counts owners that are wanted. Many that follow each other are the same.
struct Count<W> {
    wanted: W,
    last: Option<(u32, bool)>,
    count: usize,
}

impl<W: FnMut(u32) -> bool> Count<W> {
    fn new(wanted: W) -> Self {
        Count { wanted, last: None, count: 0 }
    }

    fn add(&mut self, owner: u32, count: u32) {
        if count == 0 || owner == 0 {
            return;
        }
        let is_wanted = match self.last {
            Some((last, is_wanted)) if last == owner => is_wanted,
            _ => (self.wanted)(owner),
        };
        self.last = Some((owner, is_wanted));
        self.count += if is_wanted { count as usize } else { 0 };
    }

    fn add_at_hand(&mut self, core: &CoreLocal) {
        supply::each_at_hand(core, |record| self.add(owner_at(record), 1));
        self.add_tables(core);
    }

    fn add_tables(&mut self, core: &CoreLocal) {
        core.each_table(|record| self.add(owner_at(record), 1));
    }
}

/// For how many frames that are not in use owners are charged that are `wanted`: what cores have in stock or at hand, as it was a moment ago.
pub fn in_stock(cores: Cores, wanted: impl FnMut(u32) -> bool) -> usize {
    let mut count = Count::new(wanted);
    for core in those(cores) {
        let stock = core.payer.stock.load(Ordering::Relaxed);
        count.add(owner_of(stock), count_of(stock));
        count.add_at_hand(core);
    }
    count.count
}

/// How many of those are tables.
pub fn tables_in_stock(wanted: impl FnMut(u32) -> bool) -> usize {
    let mut count = Count::new(wanted);
    core_local::all().for_each(|core| count.add_tables(core));
    count.count
}

/// Gives back to the accounts what cores have in stock for owners that are `wanted`, and what this one has at hand; whether there was anything. Behind that the accounts know how many of the frames are which
/// part, but for [`tables_in_stock`].
#[cold]
pub fn gather_stocks(wanted: impl Fn(u32) -> bool) -> bool {
    let here = core_local::here();
    let before = in_stock(Cores::This, &wanted);
    let mut returned = Returned::new();
    supply::each_at_hand(here, |record| returned.add(record, &wanted));
    here.each_table(|record| returned.add_table(record, &wanted));
    drop(returned);
    let mut any = before > 0;
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

/// As [`gather_stocks`]; and where other cores have something at hand for those owners, has them give all back that they have at hand. The caller, as they, may hold any lock but the frame policy's.
#[cold]
pub fn gather_all_stocks(wanted: impl Fn(u32) -> bool) -> bool {
    let at_hand = |cores| {
        let mut count = Count::new(&wanted);
        those(cores).for_each(|core| count.add_at_hand(core));
        count.count
    };
    let do_others = at_hand(Cores::All) > at_hand(Cores::This) && supply::gather(1);
    gather_stocks(&wanted) | do_others
}
