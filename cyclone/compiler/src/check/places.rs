//! Regions of the old dialect, which come with the alias qualifier of the pointers into them.
//!
//! In 0.8 `` `U `` and `` `RC `` are regions, and a kind says how pointers into a region may be aliased: `R` freely, `UR` not at all, `TR`
//! nobody knows. A variable of one of the last two is a *place* here ([`Types::is_place`]); what it becomes is a region with a
//! qualifier ([`TyKind::Place`]), and a pointer into it has that qualifier: ``aquals(`r)`` while the variable is not known.
//!
//! [`Types::is_place`]: crate::types::Types::is_place

use super::{Checker, Dialect};
use crate::ast;
use crate::types::{Alias, Kind, Ty, TyKind, TyVar};

impl Checker<'_> {
    /// Whether what is read now follows the rules of 0.8. The library's headers never do.
    pub(super) fn is_old(&self) -> bool {
        self.rules.dialect == Dialect::Paper && !self.of_present_dialect
    }

    /// The kind of a variable is known: notes whether it is a place.
    pub(super) fn note_place(&mut self, var: TyVar) {
        let info = self.types.var(var);
        let is_place = self.is_old() && info.kind == Kind::Effect && info.alias != Alias::Aliasable;
        self.types.set_place(var, is_place);
    }

    /// The qualifier of a pointer that is written with this region and without one, where the region decides.
    pub(super) fn aqual_by_region(&mut self, region: Ty) -> Option<Ty> {
        match *self.types.get(region) {
            TyKind::Place(_, aqual) => Some(aqual),
            // Its kind may be written further on in the prototype.
            TyKind::Var(var) if self.is_old() && self.is_open(var) => Some(self.make(TyKind::AqualsOf(region))),
            TyKind::Var(var) if self.types.is_place(var) => Some(self.types.aquals_of(region)),
            _ => None,
        }
    }

    /// An abstract region of a kind that says how pointers into it may be aliased.
    pub(super) fn opaque_place(&mut self, opaque: Ty, alias: Option<Alias>) -> Ty {
        match alias {
            Some(alias) if alias != Alias::Aliasable && self.types.kind(opaque) == Kind::Effect => {
                let aqual = self.make(TyKind::Aqual(alias));
                self.make(TyKind::Place(opaque, aqual))
            }
            _ => opaque,
        }
    }

    /// A type whose type variables have got their kinds.
    pub(super) fn with_known_kinds(&mut self, ty: Ty) -> Ty {
        if self.is_old() { self.types.resolve(ty) } else { ty }
    }

    /// The region of a handle: `` `U `` and `` `RC `` have handles in the old dialect.
    pub(super) fn read_handle(&mut self, region: &ast::Type, position: super::types::Position) -> Ty {
        let (read, _) = self.read(region, Kind::Effect, position);
        match self.types.get(read) {
            TyKind::Place(..) if self.rules.dialect == Dialect::Paper => read,
            _ => self.plain_effect(read, region.span),
        }
    }

    /// A region and its qualifier, if it has one.
    pub(super) fn split_region(&mut self, region: Ty) -> (Ty, Option<Ty>) {
        match *self.types.get(region) {
            TyKind::Place(region, aqual) => (region, Some(aqual)),
            TyKind::Var(var) if self.types.is_place(var) => (region, Some(self.types.aquals_of(region))),
            _ => (region, None),
        }
    }

    /// Region and qualifier of what is allocated with a handle.
    pub(super) fn place_of_handle(&mut self, of: Ty) -> (Ty, Option<Ty>) {
        let (region, aqual) = self.split_region(of);
        if let Some(aqual) = aqual {
            // The object is made now: its qualifier cannot be found out later.
            self.settle_alias(aqual);
        }
        (region, aqual)
    }

    /// Whether a region's handle may be taken for another's. The one of counted pointers says so at run time, and stays what it is.
    pub(super) fn handle_fits(&mut self, from: Ty, to: Ty) -> bool {
        if self.split_region(from).1.is_some() || self.split_region(to).1.is_some() {
            return self.try_unify(from, to).is_ok();
        }
        // In 0.8 the heap's handle may stand for that of any region, which ends before the heap.
        self.region_fits(from, to) || self.is_old() && matches!(self.types.get(from), TyKind::Heap)
    }
}
