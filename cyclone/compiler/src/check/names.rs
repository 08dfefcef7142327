//! What names mean: namespaces, `using`, scopes of blocks, type variables.
//!
//! A global name is kept under its full name, parts joined by `::`. A name as written is looked for in the scopes of blocks (if it is
//! not qualified), then in the namespace being declared and those around it, and in each in what it uses. A name that two used
//! namespaces have is ambiguous, which is reported.

/// All names of a translation unit.
#[derive(Debug, Default)]
pub struct Names {}
