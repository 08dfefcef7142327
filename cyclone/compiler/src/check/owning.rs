//! Unique and counted pointers where values are read: what may be copied, and from where.

use super::Checker;
use crate::diagnostics::Code;
use crate::ownership;
use crate::tree::Expr;
use crate::types::{Alias, Kind, Ty, TyKind};

impl Checker<'_> {
    /// Whether copying a value of this type consumes it.
    pub fn is_owned(&mut self, ty: Ty) -> bool {
        ownership::is_owned(&mut self.types, &self.declarations, ty)
    }

    /// Whether nothing but this expression leads to its value.
    pub fn is_unique_path(&self, expr: &Expr) -> bool {
        ownership::is_unique_path(&self.types, expr)
    }

    /// A pointer whose qualifier is not known becomes an aliasable one where it is shared.
    pub fn settle_alias(&mut self, ty: Ty) {
        let aqual = self.types.aquals_of(ty);
        if let TyKind::Evar(evar) = *self.types.get(aqual)
            && self.types.evar_kind(evar) == Kind::Aqual
        {
            let aliasable = self.make(TyKind::Aqual(Alias::Aliasable));
            // An unbound variable whose bound admits it takes it.
            let _ = self.try_unify(aqual, aliasable);
        }
    }

    /// A value is copied out of its place: reports if that would make a second owner.
    pub fn check_consumed(&mut self, value: &Expr) {
        if self.is_unique_path(value) {
            return;
        }
        self.settle_alias(value.ty);
        if self.is_owned(value.ty) {
            self.error(
                Code::NotUnique,
                value.span,
                "a unique or counted pointer cannot be copied from here, where other pointers may lead to; swap it out with `:=:`",
            );
        }
    }
}
