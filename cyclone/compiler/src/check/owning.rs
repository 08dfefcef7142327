//! Unique and counted pointers where values are read: what may be copied, and from where.

use super::Checker;
use crate::diagnostics::{Code, Diagnostic};
use crate::ownership;
use crate::source::Span;
use crate::tree::{Expr, ExprKind, StmtKind};
use crate::types::{Alias, Kind, Pointer, Ty, TyKind, TyVar};

impl Checker<'_> {
    /// Whether copying a value of this type consumes it.
    pub fn is_owned(&mut self, ty: Ty) -> bool {
        ownership::is_owned(&mut self.types, &self.declarations, ty)
    }

    /// Whether nothing but this expression leads to its value.
    pub fn is_unique_path(&self, expr: &Expr) -> bool {
        let locals = self.body.as_ref().map_or(&[][..], |body| &body.locals);
        ownership::is_unique_path(&self.types, locals, expr)
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

    /// Compares types while the owned pointers of what is looked at count as aliases in this region.
    pub(super) fn lent_as<T>(&mut self, region: TyVar, compare: impl FnOnce(&mut Self) -> T) -> T {
        let before = self.lent.replace(region);
        let out = compare(self);
        self.lent = before;
        out
    }

    /// Whether an owned pointer into the heap, below an alias, is wanted as one into the alias's region. It is asked for only where the pointer itself
    /// is constant: nothing can be stored in its place, which gets its owner back when the alias ends.
    pub(super) fn lent_below(&mut self, have: &Pointer, want: &Pointer) -> bool {
        let Some((region, aqual)) = self.lends_below(have) else { return false };
        self.try_unify(want.aqual, aqual).is_ok() && self.try_unify(want.region, region).is_ok()
    }

    /// The same where nothing is known of what is wanted: it becomes the alias.
    pub(super) fn lent_as_unknown(&mut self, have: &Pointer, want: Ty) -> bool {
        let Some((region, aqual)) = self.lends_below(have) else { return false };
        let alias = self.pointer_type(Pointer { region, aqual, ..have.clone() });
        self.try_unify(want, alias).is_ok()
    }

    /// The region and qualifier of an owned pointer below an alias.
    fn lends_below(&mut self, have: &Pointer) -> Option<(Ty, Ty)> {
        let region = self.lent?;
        let owned = !matches!(self.types.get(have.aqual), TyKind::Evar(_))
            && self.types.alias_bound(have.aqual) != Alias::Aliasable
            && matches!(self.types.get(have.region), TyKind::Heap);
        owned.then(|| (self.make(TyKind::Var(region)), self.make(TyKind::Aqual(Alias::Aliasable))))
    }

    /// A value is copied out of its place, or lent: reports if that would make a second owner, or if the owner could be freed while the alias is used.
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
        } else if let Some(owner) = self.shared_owner_below(value) {
            let message = "a unique or counted pointer cannot be lent from here, where other pointers may lead to: who uses the alias could free its owner";
            let error = Diagnostic::error(Code::NotUnique, owner, message);
            self.loophole(error.help("swap it out with `:=:`, and back when the alias is not used any more"));
        }
    }

    /// Where a value that can be copied is an owned pointer as an alias, to which other pointers may lead.
    fn shared_owner_below(&mut self, value: &Expr) -> Option<Span> {
        if self.is_unique_path(value) {
            return None;
        }
        if self.is_owned(value.ty) {
            return Some(value.span);
        }
        match &value.kind {
            ExprKind::Coerce(coercion, inner) if coercion.gives_same_object() => self.shared_owner_below(inner),
            ExprKind::Comma(_, last) => self.shared_owner_below(last),
            ExprKind::Conditional(_, then, other) => {
                self.shared_owner_below(then).or_else(|| self.shared_owner_below(other))
            }
            ExprKind::Statements(block) => match block.statements.last().map(|last| &last.kind) {
                Some(StmtKind::Expr(last)) => self.shared_owner_below(last),
                _ => None,
            },
            _ => None,
        }
    }
}
