//! Types as written become [`Ty`](crate::types::Ty)s, with the defaults of their position filled in.

/// Where a type stands: what the parts that are not written become.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Position {
    /// A parameter: a region that is not written is a fresh type parameter of the function.
    Parameter,
    /// A result, a member, a global, a typedef, a type argument outside of bodies: the heap.
    Heap,
    /// In a body: to be inferred.
    Body,
}
