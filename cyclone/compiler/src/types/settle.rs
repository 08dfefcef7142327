//! What stays unknown when a function ends gets a default.

use super::{Alias, Kind, Ty, TyKind, Types};
use crate::ast::IntSize;
use crate::types::Signedness;

/// What had been made at some time; see [`Types::mark`].
#[derive(Clone, Copy, Debug)]
pub struct Mark {
    evars: usize,
    terms: usize,
}

impl Types {
    /// Remembers what has been made so far.
    pub fn mark(&self) -> Mark {
        Mark { evars: self.evars.len(), terms: self.terms.len() }
    }

    /// Binds the inference variables made since the mark that are still unknown: types become `int`, regions the heap, qualifiers
    /// aliasable, bounds thin of one element; a pointer may be null, and is not zero-terminated.
    pub fn settle_since(&mut self, mark: Mark) {
        let yes = self.make(TyKind::True);
        for at in mark.terms..self.terms.len() {
            if let TyKind::Pointer(pointer) = &self.terms[at] {
                let nullable = pointer.nullable;
                if let TyKind::Evar(evar) = *self.get(nullable) {
                    self.bind(evar, yes);
                }
            }
        }
        for at in mark.evars..self.evars.len() {
            if self.evars[at].binding.is_none() {
                let default = self.default_of(self.evars[at].kind);
                self.bind(super::Evar(at as u32), default);
            }
        }
    }

    fn default_of(&mut self, kind: Kind) -> Ty {
        let kind = match kind {
            Kind::Any | Kind::Memory | Kind::Boxed => TyKind::Int(Signedness::Signed, IntSize::Int),
            Kind::Effect => TyKind::Heap,
            Kind::Int => TyKind::Nat(1),
            Kind::Aqual => TyKind::Aqual(Alias::Aliasable),
            Kind::Bool => TyKind::False,
            Kind::Bound => {
                let one = self.make(TyKind::Nat(1));
                TyKind::Thin(one)
            }
        };
        self.make(kind)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::types::{Pointer, Quals};

    #[test]
    fn an_unknown_pointer_may_be_null_and_points_to_one_element_of_the_heap() {
        let mut types = Types::default();
        let mark = types.mark();
        let target = types.fresh(Kind::Memory, 0);
        let region = types.fresh(Kind::Effect, 0);
        let aqual = types.fresh(Kind::Aqual, 0);
        let nullable = types.fresh(Kind::Bool, 0);
        let bound = types.fresh(Kind::Bound, 0);
        let zeroterm = types.fresh(Kind::Bool, 0);
        let quals = Quals::default();
        types.make(TyKind::Pointer(Pointer {
            target,
            quals,
            region,
            aqual,
            nullable,
            bound,
            zeroterm,
            autoreleased: zeroterm,
        }));
        types.settle_since(mark);
        assert_eq!(types.get(nullable), &TyKind::True);
        assert_eq!(types.get(zeroterm), &TyKind::False);
        assert_eq!(types.get(region), &TyKind::Heap);
        assert!(matches!(types.get(bound), TyKind::Thin(_)));
        assert!(matches!(types.get(target), TyKind::Int(..)));
    }
}
