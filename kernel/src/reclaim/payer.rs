//! [`Payer`]: who is charged for what a container holds.
//!
//! Most processes that end are followed by others of their group which hold about the same. So a group [keeps](Payer::keep) some charges of what has ended for what
//! [comes next](Payer::charge): no more than [`MOST_KEPT`] of each class, beside those of one table of descriptors [as they were](ChargedTable), and none as long as nobody is in it. Where many come and none ends it
//! is charged ahead for some of those that follow, for one in [`SHARE`]. All that is kept is given back before anything is refused to anybody ([`give_all_kept_back`]), and before what is charged is told.

use alloc::collections::BTreeMap;
use core::ops::Bound;
use core::sync::atomic::{AtomicBool, Ordering};

use groups::{Budget, Bundle, Class, Denied};
use refs::{SpinLock, StrongRc};

use super::Held;
use super::holdings::ChargedTable;

/// So many charges of each class a group keeps.
pub(super) const MOST_KEPT: u32 = 8;

/// For so many that hold the same as the first one a group is charged at a time, if that keeps no more.
pub(super) const AHEAD: u32 = 4;

/// Once many containers were made and none has ended, it is charged for one more for each `SHARE` of them, and for no more than `MOST_AHEAD`.
pub(super) const SHARE: u32 = 16;
const MOST_AHEAD: u32 = 32;

/// Who is charged: a budget and, once that has ended, the nearest one above it that is there; or nobody.
///
/// Owner: the group that has the budget, and all containers that are charged to it. Its end takes some instructions for each level that ends with it; nobody waits for it.
#[derive(Default)]
pub struct Payer(Option<StrongRc<Level>>);

struct Level {
    budget: Budget<'static, Held>,
    above: Payer,
    kept: SpinLock<Kept>,
    /// Something may be kept.
    keeps_any: AtomicBool,
}

/// Those who may keep charges, in the order in which they came.
static KEEPERS: SpinLock<BTreeMap<u64, Payer>> = SpinLock::new(BTreeMap::new());

/// Gives back what all groups keep; whether there was anything. Takes some instructions for each group with the controller, and some hundred for each that keeps something.
#[cold]
pub fn give_all_kept_back() -> bool {
    let mut any = false;
    let mut from = Bound::Unbounded;
    // Not all under the lock: who keeps something locks that, and the tree.
    while let Some((at, payer)) = KEEPERS.with(|keepers| {
        let mut behind = keepers.range((from, Bound::Unbounded));
        behind.find(|(_, payer)| payer.keeps_any()).map(|(&at, payer)| (at, payer.share()))
    }) {
        any |= payer.give_kept_back();
        from = Bound::Excluded(at);
    }
    any
}

/// A payer that may keep charges, and is asked for them before anything is refused.
pub struct Keeper {
    /// Who that is.
    pub payer: Payer,
    at: u64,
}

impl Keeper {
    /// It may keep charges from now on.
    pub fn new(payer: Payer) -> Self {
        let at = KEEPERS.with(|keepers| {
            let at = keepers.last_key_value().map_or(0, |(last, _)| last + 1);
            keepers.insert(at, payer.share());
            at
        });
        Keeper { payer, at }
    }
}

impl Drop for Keeper {
    /// Nothing is kept any more, whoever comes.
    fn drop(&mut self) {
        self.payer.with_kept(|kept| kept.is_over = true);
        self.payer.keep_if(|| false);
        let own = KEEPERS.with(|keepers| keepers.remove(&self.at));
        drop(own);
    }
}

/// What a group keeps.
struct Kept {
    charges: Bundle<'static, Held, 0, { <[Held]>::len(Held::ALL) }>,
    /// No more of each class than this, of what has ended.
    most: u32,
    /// So many containers were charged since one has ended.
    made: u32,
    /// Its keeper has ended, so nobody would ask for what it keeps.
    is_over: bool,
    table: ChargedTable,
}

impl Kept {
    /// Takes charges for all that `counts` says, if there are so many.
    #[inline(always)]
    fn take<const FIRST: usize, const N: usize>(
        &mut self,
        counts: [u32; N],
    ) -> Option<Bundle<'static, Held, FIRST, N>> {
        self.made = self.made.saturating_add(1);
        Bundle::take_from(&mut self.charges, counts)
    }

    /// Charges for all that `counts` says and for more that may come next: `fits` times as much at most, unless many were made.
    #[inline(never)]
    fn charge_ahead<const FIRST: usize, const N: usize>(
        &mut self,
        budget: Budget<'static, Held>,
        counts: [u32; N],
        fits: u32,
    ) -> Option<Bundle<'static, Held, FIRST, N>> {
        let times = fits.min(AHEAD).max((self.made / SHARE).min(MOST_AHEAD));
        if self.most == 0 || times < 2 {
            return None;
        }
        let mut more: Bundle<'static, Held, FIRST, N> =
            Bundle::charge_ahead(budget, counts.map(|count| count * times))?;
        let taken = Bundle::take_from(&mut more, counts);
        more.leave_to(&mut self.charges, MOST_KEPT * times);
        taken
    }
}

impl Level {
    /// Charges for all that `counts` says out of what is kept, of which there may be more behind that: see [`Kept::charge_ahead`].
    #[inline(always)]
    fn take<const FIRST: usize, const N: usize>(
        &self,
        counts: [u32; N],
        fits: u32,
    ) -> Option<Bundle<'static, Held, FIRST, N>> {
        self.kept.with(|kept| {
            let kept_ones = kept.take(counts);
            if kept_ones.is_some() {
                return kept_ones;
            }
            // First: who is refused something meanwhile waits for the lock.
            self.keeps_any.store(true, Ordering::Relaxed);
            kept.charge_ahead(self.budget, counts, fits)
        })
    }
}

impl Payer {
    /// Nobody is charged.
    pub const NOBODY: Payer = Payer(None);

    /// A budget below that of `above`.
    pub fn new(budget: Budget<'static, Held>, above: Payer) -> Self {
        let kept = Kept { charges: Bundle::empty(budget), most: 0, made: 0, is_over: false, table: ChargedTable::NONE };
        let keeps_any = AtomicBool::new(false);
        Payer(Some(StrongRc::new(Level { budget, above, kept: SpinLock::new(kept), keeps_any })))
    }

    /// Whether nobody is charged.
    #[inline(always)]
    pub fn is_nobody(&self) -> bool {
        self.0.is_none()
    }

    /// The budget, which may have ended.
    #[inline(always)]
    pub fn budget(&self) -> Option<Budget<'static, Held>> {
        self.0.as_ref().map(|level| level.with(|level| level.budget))
    }

    /// The same, for one more container.
    #[inline(always)]
    pub fn share(&self) -> Payer {
        Payer(self.0.as_ref().map(StrongRc::share))
    }

    /// Who is charged once that budget has ended.
    pub fn above(&self) -> Payer {
        self.0.as_ref().map_or(Payer::NOBODY, |level| level.with(|level| level.above.share()))
    }

    fn keeps_any(&self) -> bool {
        self.0.as_ref().is_some_and(|level| level.with(|level| level.keeps_any.load(Ordering::Relaxed)))
    }

    #[inline(always)]
    fn with_kept<R: Send>(&self, f: impl FnOnce(&mut Kept) -> R + Send) -> Option<R> {
        Some(self.0.as_ref()?.with(|level| level.kept.with(f)))
    }

    /// Charges for all that `counts` says; those that are kept, if there are so many.
    ///
    /// # Errors
    /// As for [`Bundle::charge`]; [`Denied::Ended`] for nobody.
    pub(super) fn charge<const FIRST: usize, const N: usize>(
        &self,
        counts: [u32; N],
    ) -> Result<Bundle<'static, Held, FIRST, N>, Denied> {
        let budget = self.budget().ok_or(Denied::Ended)?;
        let most = counts.iter().fold(0, |most, &count| most.max(count));
        if most == 0 {
            return Ok(Bundle::empty(budget));
        }
        if most <= MOST_KEPT
            && let Some(level) = &self.0
            && let Some(taken) = level.with(|level| level.take(counts, MOST_KEPT / most))
        {
            return Ok(taken);
        }
        let mut charged = Bundle::charge(budget, counts);
        for give_back in [|own: &Payer| own.give_kept_back(), |_: &Payer| give_all_kept_back()] {
            if matches!(charged, Err(Denied::Full { .. })) && give_back(self) {
                charged = Bundle::charge(budget, counts);
            }
        }
        charged
    }

    /// Keeps some of the charges for what has ended.
    pub(super) fn keep<const FIRST: usize, const N: usize>(&self, charges: &mut Bundle<'static, Held, FIRST, N>) {
        self.with_level_and_kept(|kept| {
            kept.made = 0;
            charges.leave_to(&mut kept.charges, kept.most);
        });
    }

    /// Runs `f` on what is kept of a table of descriptors that has ended.
    #[inline(always)]
    pub(super) fn with_table<R: Send>(&self, f: impl FnOnce(&mut ChargedTable) -> R + Send) -> Option<R> {
        self.with_kept(|kept| f(&mut kept.table))
    }

    /// The same, where that may be something from then on; `None` if nobody is there who may need it.
    #[inline(always)]
    pub(super) fn with_table_to_keep<R: Send>(&self, f: impl FnOnce(&mut ChargedTable) -> R + Send) -> Option<R> {
        self.with_level_and_kept(|kept| if kept.most == 0 { None } else { Some(f(&mut kept.table)) })?
    }

    /// Runs `f` on what is kept, which may be something from then on.
    #[inline(always)]
    fn with_level_and_kept<R: Send>(&self, f: impl FnOnce(&mut Kept) -> R + Send) -> Option<R> {
        let with = |level: &Level| {
            level.kept.with(|kept| {
                level.keeps_any.store(true, Ordering::Relaxed);
                f(kept)
            })
        };
        Some(self.0.as_ref()?.with(with))
    }

    /// Gives back what is kept; whether there was anything.
    pub fn give_kept_back(&self) -> bool {
        let Some(level) = &self.0 else { return false };
        let (charges, table) = level.with(|level| {
            level.kept.with(|kept| {
                level.keeps_any.store(false, Ordering::Relaxed);
                (core::mem::replace(&mut kept.charges, Bundle::empty(level.budget)), kept.table.take_charges())
            })
        });
        !charges.is_empty() || table.is_some()
    }

    /// From now on charges are kept if there `is_anybody` who may need them; else what is kept is given back.
    pub fn keep_if(&self, is_anybody: impl FnOnce() -> bool + Send) {
        let keeps = self.with_kept(|kept| {
            // Asked here: whoever comes last knows.
            kept.most = if is_anybody() && !kept.is_over { MOST_KEPT } else { 0 };
            kept.most > 0
        });
        if keeps == Some(false) {
            self.give_kept_back();
        }
    }
}

impl PartialEq for Payer {
    /// Whether the same budget is charged.
    fn eq(&self, other: &Self) -> bool {
        self.budget() == other.budget()
    }
}
