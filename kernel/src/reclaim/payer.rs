//! [`Payer`]: who is charged for what a container holds.
//!
//! Most processes that end are followed by others of their group which hold about the same. So a group [keeps](Payer::keep) some charges of what has ended for what
//! [comes next](Payer::charge): no more than [`MOST_KEPT`] of each class, and none as long as nobody is in it. They are given back before anything is refused to who is charged there, and before what is charged is told.

use groups::{Budget, Bundle, Class, Denied};
use refs::{SpinLock, StrongRc};

use super::Held;

/// So many charges of each class a group keeps.
pub(super) const MOST_KEPT: u32 = 8;

/// For so many that hold the same as the first one a group is charged at a time, if that keeps no more.
const AHEAD: u32 = 4;

/// Who is charged: a budget and, once that has ended, the nearest one above it that is there; or nobody.
///
/// Owner: the group that has the budget, and all containers that are charged to it. Its end takes some instructions for each level that ends with it; nobody waits for it.
#[derive(Default)]
pub struct Payer(Option<StrongRc<Level>>);

struct Level {
    budget: Budget<'static, Held>,
    above: Payer,
    kept: SpinLock<Kept>,
}

/// What a group keeps.
struct Kept {
    charges: Bundle<'static, Held, 0, { <[Held]>::len(Held::ALL) }>,
    /// No more of each class than this.
    most: u32,
}

impl Kept {
    /// Takes charges for all that `counts` says. If there are not so many: charges for more, `fits` times as much at most.
    fn take<const FIRST: usize, const N: usize>(
        &mut self,
        budget: Budget<'static, Held>,
        counts: [u32; N],
        fits: u32,
    ) -> Option<Bundle<'static, Held, FIRST, N>> {
        let kept = Bundle::take_from(&mut self.charges, counts);
        let times = fits.min(AHEAD);
        if kept.is_some() || self.most == 0 || times < 2 {
            return kept;
        }
        let mut more: Bundle<'static, Held, FIRST, N> =
            Bundle::charge_ahead(budget, counts.map(|count| count * times))?;
        let taken = Bundle::take_from(&mut more, counts);
        more.leave_to(&mut self.charges, self.most);
        taken
    }
}

impl Payer {
    /// Nobody is charged.
    pub const NOBODY: Payer = Payer(None);

    /// A budget below that of `above`.
    pub fn new(budget: Budget<'static, Held>, above: Payer) -> Self {
        let kept = Kept { charges: Bundle::empty(budget), most: 0 };
        Payer(Some(StrongRc::new(Level { budget, above, kept: SpinLock::new(kept) })))
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
            && let Some(taken) = self.with_kept(|kept| kept.take(budget, counts, MOST_KEPT / most)).flatten()
        {
            return Ok(taken);
        }
        match Bundle::charge(budget, counts) {
            Err(Denied::Full { .. }) if self.give_kept_back() => Bundle::charge(budget, counts),
            charged => charged,
        }
    }

    /// Keeps some of the charges for what has ended.
    pub(super) fn keep<const FIRST: usize, const N: usize>(&self, charges: &mut Bundle<'static, Held, FIRST, N>) {
        self.with_kept(|kept| charges.leave_to(&mut kept.charges, kept.most));
    }

    /// Gives back what is kept; whether there was anything.
    pub fn give_kept_back(&self) -> bool {
        let budget = self.budget();
        let kept = budget
            .and_then(|budget| self.with_kept(|kept| core::mem::replace(&mut kept.charges, Bundle::empty(budget))));
        kept.is_some_and(|kept| !kept.is_empty())
    }

    /// From now on charges are kept if there `is_anybody` who may need them; else what is kept is given back.
    pub fn keep_if(&self, is_anybody: impl FnOnce() -> bool + Send) {
        let keeps = self.with_kept(|kept| {
            // Asked here: whoever comes last knows.
            kept.most = if is_anybody() { MOST_KEPT } else { 0 };
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
