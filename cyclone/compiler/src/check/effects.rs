//! Which regions are live, and what is known of effects and qualifiers.

/// The regions and effects that may be accessed at a place.
#[derive(Debug, Default, Clone)]
pub struct Capability {}

/// What is decided at the end of a function, when types are known.
#[derive(Debug)]
pub enum Pending {}
