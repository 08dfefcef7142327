//! [`Payer`]: who is charged for what a container holds.

use groups::Budget;
use refs::StrongRc;

use super::Held;

/// Who is charged: a budget and, once that has ended, the nearest one above it that is there; or nobody.
///
/// Owner: the group that has the budget, and all containers that are charged to it. Its end takes some instructions for each level that ends with it; nobody waits for it.
#[derive(Default)]
pub struct Payer(Option<StrongRc<Level>>);

struct Level {
    budget: Budget<'static, Held>,
    above: Payer,
}

impl Payer {
    /// Nobody is charged.
    pub const NOBODY: Payer = Payer(None);

    /// A budget below that of `above`.
    pub fn new(budget: Budget<'static, Held>, above: Payer) -> Self {
        Payer(Some(StrongRc::new(Level { budget, above })))
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
}

impl PartialEq for Payer {
    /// Whether the same budget is charged.
    fn eq(&self, other: &Self) -> bool {
        self.budget() == other.budget()
    }
}
