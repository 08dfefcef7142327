//! [`Key`]: which futex is meant.

use frame::Cx;
use frame::mm::{Access, Fault};

use crate::error::Errno;
use crate::step::Step;
use crate::user_memory::{HasMemory, UserInOut};

/// Whether a futex may be waited for from other address spaces.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scope {
    /// FUTEX_PRIVATE_FLAG: only threads that share the address space use it.
    Private,
    /// Other processes may share the memory that it is in.
    Shared,
}

/// One futex.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Key {
    /// In the memory of one address space, for its own threads: which, and where.
    Private(usize, usize),
    /// In the memory of one address space, for whoever might share it: which, and where. No `Private` meets it, as on Linux.
    Own(usize, usize),
    /// In an object that is mapped: its number, which no later object gets while somebody still waits, and the offset in bytes.
    Object(u64, u64),
}

impl Key {
    /// The futex at an address of the calling thread.
    ///
    /// # Errors
    /// EINVAL if the address is not aligned; EFAULT if nothing can be there.
    pub fn new(me: &impl HasMemory, word: UserInOut<u32>, scope: Scope, cx: &Cx) -> Step<Self> {
        let address = word.address();
        if !address.is_multiple_of(4) {
            return Err(Errno::EINVAL.into());
        }
        if address >= frame::mm::USER_END {
            return Err(Errno::EFAULT.into());
        }
        let space = me.space_name().address();
        if scope == Scope::Shared {
            return match me.space(cx)?.shared_object(address, cx) {
                Ok(Some((object, offset))) => Ok(Key::Object(object, offset)),
                Ok(None) => Ok(Key::Own(space, address)),
                // As if the word were read: a stack may grow down to it.
                Err(_) => Err(Fault { address, access: Access::Read }.into()),
            };
        }
        Ok(Key::Private(space, address))
    }
}
