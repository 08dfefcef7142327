//! Sizes and alignments, as the C ABI of 64-bit Linux has them (LP64), of what C makes of a type.

use super::{AggregateId, Kind, Ty, TyKind, Types};
use crate::ast::{FloatSize, IntSize};

/// Size and alignment in bytes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Layout {
    /// A multiple of the alignment.
    pub size: u64,
    /// A power of two.
    pub align: u64,
}

const WORD: Layout = Layout { size: 8, align: 8 };
const FAT: Layout = Layout { size: 24, align: 8 };
const VA_LIST: Layout = Layout { size: 24, align: 8 };

impl Layout {
    fn both(bytes: u64) -> Layout {
        Layout { size: bytes, align: bytes }
    }
}

/// A member for [`struct_layout`]: its layout, and its width if it is a bit-field.
#[derive(Clone, Copy, Debug)]
pub struct Part {
    /// Of its type.
    pub layout: Layout,
    /// In bits.
    pub width: Option<u32>,
}

/// The layout of a structure, and the offsets of its members in bytes; `None` if it is larger than can be counted.
pub fn struct_layout(parts: &[Part]) -> Option<(Layout, Vec<u64>)> {
    let mut bits: u64 = 0;
    let mut align = 1;
    let mut offsets = Vec::with_capacity(parts.len());
    for part in parts {
        let (size_bits, align_bits) = (part.layout.size.checked_mul(8)?, part.layout.align * 8);
        match part.width {
            Some(0) => {
                bits = bits.checked_next_multiple_of(align_bits)?;
                offsets.push(bits / 8);
                continue;
            }
            Some(width) => {
                let width = u64::from(width);
                if size_bits > 0 && bits / size_bits != bits.checked_add(width - 1)? / size_bits {
                    bits = bits.checked_next_multiple_of(align_bits)?;
                }
                offsets.push(bits / 8);
                bits = bits.checked_add(width)?;
            }
            None => {
                bits = bits.checked_next_multiple_of(align_bits)?;
                offsets.push(bits / 8);
                bits = bits.checked_add(size_bits)?;
            }
        }
        align = align.max(part.layout.align);
    }
    let size = bits.checked_next_multiple_of(align * 8)? / 8;
    Some((Layout { size, align }, offsets))
}

/// The layout of a union.
pub fn union_layout(parts: &[Part]) -> Option<Layout> {
    let align = parts.iter().map(|part| part.layout.align).max().unwrap_or(1);
    let size = parts.iter().map(|part| part.layout.size).max().unwrap_or(0);
    Some(Layout { size: size.checked_next_multiple_of(align)?, align })
}

impl Types {
    /// Size and alignment of a type; `None` for what has none, or whose size only C knows (attributes), or that is abstract.
    /// A type variable of kind [`Kind::Boxed`] is a word.
    pub fn layout(&self, ty: Ty) -> Option<Layout> {
        match self.get(ty) {
            TyKind::Bool => Some(Layout::both(1)),
            TyKind::Int(_, size) => Some(Layout::both(match size {
                IntSize::Char => 1,
                IntSize::Short => 2,
                IntSize::Int => 4,
                IntSize::Long | IntSize::LongLong => 8,
            })),
            TyKind::Float(size) => Some(Layout::both(float_bytes(*size))),
            TyKind::Complex(size) => {
                let bytes = float_bytes(*size);
                Some(Layout { size: 2 * bytes, align: bytes })
            }
            TyKind::VaList => Some(VA_LIST),
            TyKind::Enum(_) => Some(Layout::both(4)),
            TyKind::Pointer(pointer) => match self.get(pointer.bound) {
                TyKind::Fat => Some(FAT),
                _ => Some(WORD),
            },
            TyKind::RegionHandle(_) | TyKind::TagHandle(_) | TyKind::AqualHandle(_) => Some(WORD),
            TyKind::Array(array) => {
                let element = self.layout(array.element)?;
                let TyKind::Nat(len) = *self.get(array.len?) else { return None };
                Some(Layout { size: element.size.checked_mul(len)?, align: element.align })
            }
            TyKind::Tuple(members) => {
                let part = |ty: Ty| Some(Part { layout: self.component_layout(ty)?, width: None });
                let parts: Option<Vec<Part>> = members.iter().map(|member| part(member.ty)).collect();
                Some(struct_layout(&parts?)?.0)
            }
            TyKind::Aggregate(id, _) => self.layouts.get(id).copied(),
            TyKind::Subset(_, base) => self.layout(*base),
            TyKind::Var(_) | TyKind::Evar(_) if self.kind(ty) == Kind::Boxed => Some(WORD),
            _ => None,
        }
    }

    /// The layout of a component of a tuple: what fits a word is a word there, because polymorphic functions see it as one.
    pub fn component_layout(&self, ty: Ty) -> Option<Layout> {
        if self.kind(ty) == Kind::Boxed { Some(WORD) } else { self.layout(ty) }
    }

    /// The same if it is one in all copies of generic code: see `crate::elements`.
    pub fn fixed_layout(&self, ty: Ty) -> Option<Layout> {
        let mut inner = ty;
        while let TyKind::Array(array) = self.get(inner) {
            inner = array.element;
        }
        if matches!(self.get(inner), TyKind::Var(_)) { None } else { self.layout(ty) }
    }

    /// Notes the layout of an aggregate once its members are known. It does not depend on the aggregate's arguments.
    pub fn set_layout(&mut self, id: AggregateId, layout: Layout) {
        self.layouts.insert(id, layout);
    }

    /// Takes back [`Types::set_layout`].
    pub fn forget_layout(&mut self, id: AggregateId) {
        self.layouts.remove(&id);
    }

    /// The size of a type as a number of the level of types; that of a type variable depends on what it becomes.
    pub fn size_number(&mut self, ty: Ty) -> Ty {
        let unknown = matches!(self.get(ty), TyKind::Var(_) | TyKind::Evar(_));
        match self.layout(ty) {
            Some(layout) if !unknown => self.make(TyKind::Nat(layout.size)),
            _ => {
                let ty = self.head(ty);
                self.make(TyKind::SizeOf(ty))
            }
        }
    }
}

fn float_bytes(size: FloatSize) -> u64 {
    match size {
        FloatSize::Float => 4,
        FloatSize::Double => 8,
        FloatSize::LongDouble => 16,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn part(bytes: u64, width: Option<u32>) -> Part {
        Part { layout: Layout::both(bytes), width }
    }

    #[test]
    fn members_are_aligned_and_the_end_is_padded() {
        let (layout, offsets) = struct_layout(&[part(1, None), part(8, None), part(2, None)]).unwrap();
        assert_eq!(layout, Layout { size: 24, align: 8 });
        assert_eq!(offsets, [0, 8, 16]);
    }

    #[test]
    fn bit_fields_share_a_unit_unless_they_would_cross_its_end() {
        let (layout, _) = struct_layout(&[part(4, Some(3)), part(4, Some(29)), part(4, Some(1))]).unwrap();
        assert_eq!(layout, Layout { size: 8, align: 4 });
        let (layout, _) = struct_layout(&[part(4, Some(3)), part(4, Some(0)), part(4, Some(1))]).unwrap();
        assert_eq!(layout, Layout { size: 8, align: 4 });
    }

    #[test]
    fn a_union_is_as_large_as_its_largest_member() {
        assert_eq!(union_layout(&[part(1, None), part(4, None)]), Some(Layout { size: 4, align: 4 }));
    }

    #[test]
    fn a_structure_too_large_to_count_has_no_layout() {
        let huge = Part { layout: Layout { size: u64::MAX / 2, align: 1 }, width: None };
        assert_eq!(struct_layout(&[huge, huge, huge]), None);
    }
}
