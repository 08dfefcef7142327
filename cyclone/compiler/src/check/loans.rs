//! Addresses inside of owned objects, and the loans that make them safe.
//!
//! An address inside of an object that a unique or counted pointer owns (`&u->x`, `u->array`, a pattern's `*x`) is worth nothing once the object
//! is freed, which its owner may do at any time. So there is none, but
//! - where it is followed at once (`u->array[i]`, `*u->array`): nothing runs in between (an index with an effect is [`super::access`]'s);
//! - below an alias, which the program makes (``let alias<`r> ..``): until its scope ends the owner cannot be used, and the address points into
//!   the alias's region, which ends with it;
//! - in an argument of a call whose parameter takes pointers into any region: for the time of the call the owner is lent as a whole argument would be
//!   ([`super::calls`]), and the address points into the loan's region. The tree has the loan around the owner, in the place whose address is taken.
//!
//! A loan needs an owner to which nothing else leads ([`crate::ownership::is_unique_path`]): otherwise what is called could take the owner out of its
//! place by another way.

use super::Checker;
use crate::diagnostics::{Code, Diagnostic};
use crate::ownership::{base_mut, owner_of_place};
use crate::source::Span;
use crate::symbol::Symbol;
use crate::tree::{Expr, ExprKind};
use crate::types::{Alias, Kind, Pointer, Ty, TyKind, TyVar, TyVarInfo};

/// The loan that the argument being checked can make.
#[derive(Clone, Copy, Debug, Default)]
pub struct Loan {
    /// Its region, once it is made.
    pub region: Option<TyVar>,
}

impl Checker<'_> {
    /// The place, of which a pointer is made that is not followed at once: the owner around it is lent, or reported.
    pub(super) fn lend_around(&mut self, mut place: Expr) -> Expr {
        let Some((steps, owner)) = owner_of_place(&mut self.types, &self.declarations, &place) else { return place };
        if self.loan.is_some() && self.is_lendable(owner) {
            let region = self.loan_region(owner);
            let owner = (0..steps).fold(&mut place, |at, _| base_mut(at));
            self.lend_in_place(owner, region);
            return place;
        }
        let message = "an address inside of what a unique or counted pointer owns is worth nothing once that is freed";
        let error = Diagnostic::error(Code::NotUnique, place.span, message);
        self.loophole(
            error.help("alias the owner for as long as the address is used: ``let alias<`r> T *`r a = owner;``"),
        );
        place
    }

    /// Checks an argument that can (or cannot) make a loan. The loan's region, where it made one.
    pub(super) fn with_loan<T>(&mut self, can_lend: bool, check: impl FnOnce(&mut Self) -> T) -> (T, Option<TyVar>) {
        let before = std::mem::replace(&mut self.loan, can_lend.then(Loan::default));
        let out = check(self);
        let loan = std::mem::replace(&mut self.loan, before);
        (out, loan.and_then(|loan| loan.region))
    }

    /// Whether the owner can be lent: it stays in a place, to which nothing else leads.
    fn is_lendable(&self, owner: &Expr) -> bool {
        let mut place = owner;
        while let ExprKind::Coerce(_, inner) = &place.kind {
            place = inner;
        }
        matches!(self.types.get(owner.ty), TyKind::Pointer(_)) && self.is_place(place) && self.is_unique_path(owner)
    }

    /// The region of the argument's loan: a fresh one, one level deeper than what is around the call.
    fn loan_region(&mut self, owner: &Expr) -> TyVar {
        if let Some(region) = self.loan.and_then(|loan| loan.region) {
            return region;
        }
        let region = self.new_loan_region(owner.span);
        self.loan = Some(Loan { region: Some(region) });
        region
    }

    /// A fresh region for a loan.
    pub(super) fn new_loan_region(&mut self, span: Span) -> TyVar {
        let level = self.level() + 1;
        let name = Symbol::new("`alias");
        self.types.new_var(TyVarInfo { name, kind: Kind::Effect, alias: Alias::Aliasable, level, span })
    }

    /// The unknown region of an argument, which may be the loan's.
    pub(super) fn region_of_argument(&mut self) -> Ty {
        let level = self.level() + 1;
        self.types.fresh(Kind::Effect, level)
    }

    /// Turns an owned pointer into its alias.
    fn lend_in_place(&mut self, owner: &mut Expr, region: TyVar) {
        let TyKind::Pointer(have) = self.types.get(owner.ty).clone() else { return };
        let region_ty = self.make(TyKind::Var(region));
        let aqual = self.make(TyKind::Aqual(Alias::Aliasable));
        let ty = self.pointer_type(Pointer { region: region_ty, aqual, ..have });
        let span = owner.span;
        let value = Box::new(std::mem::replace(owner, Expr { kind: ExprKind::Null, ty, span }));
        owner.kind = ExprKind::InferredAlias { region, value };
    }
}
