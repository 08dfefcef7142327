//! [`Errno`]: why a system call failed.

use core::fmt;
use core::num::NonZero;

use refs::Gone;

/// A result with a Linux error number.
pub type Result<T> = core::result::Result<T, Errno>;

/// A Linux error number, or one of the four numbers above 511 that never reach a program: they say how the call is restarted
/// after a signal (see signal(7), "Interruption of system calls").
///
/// It is as wide as a register, so that a [`Result`] of a word or a reference is returned in two.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Errno(NonZero<usize>);

/// The error of a constant, which is not 0.
const fn errno(number: u32) -> Errno {
    match NonZero::new(number as usize) {
        Some(number) => Errno(number),
        None => panic!("0 is no error"),
    }
}

macro_rules! errnos {
    ($($name:ident)*) => {
        #[allow(missing_docs)]
        impl Errno {
            $(pub const $name: Errno = errno(linux_raw_sys::errno::$name);)*

            /// Its name in errno(3).
            pub fn name(self) -> &'static str {
                match self {
                    $(Errno::$name => stringify!($name),)*
                    _ => "restart",
                }
            }
        }
    };
}

errnos! {
    EPERM ENOENT ESRCH EINTR EIO ENXIO E2BIG ENOEXEC EBADF ECHILD EAGAIN ENOMEM EACCES EFAULT ENOTBLK EBUSY EEXIST EXDEV ENODEV
    ENOTDIR EISDIR EINVAL ENFILE EMFILE ENOTTY ETXTBSY EFBIG ENOSPC ESPIPE EROFS EMLINK EPIPE EDOM ERANGE EDEADLK ENAMETOOLONG
    ENOLCK ENOSYS ENOTEMPTY ELOOP ENOMSG EIDRM ENODATA ETIME EOVERFLOW ELIBBAD EILSEQ EUSERS ENOTSOCK EDESTADDRREQ EMSGSIZE EPROTOTYPE
    ENOPROTOOPT EPROTONOSUPPORT EOPNOTSUPP EAFNOSUPPORT EADDRINUSE EADDRNOTAVAIL ECONNRESET ECONNREFUSED ENOBUFS EISCONN ENOTCONN
    EBADR ENONET ENETUNREACH ECONNABORTED EHOSTDOWN EHOSTUNREACH ENETDOWN ETIMEDOUT EALREADY EINPROGRESS ESOCKTNOSUPPORT ESTALE EUCLEAN ECANCELED EOWNERDEAD ETOOMANYREFS
}

impl Errno {
    /// Restart the call if the handler was installed with SA_RESTART, else EINTR.
    pub const RESTART_SYS: Errno = errno(512);
    /// Restart the call, whatever ran.
    pub const RESTART_ALWAYS: Errno = errno(513);
    /// Restart the call if no handler ran, else EINTR.
    pub const RESTART_NO_HANDLER: Errno = errno(514);
    /// As above, but by `restart_syscall` with what the call left in `Current::restart` (a relative time-out goes on, not anew).
    pub const RESTART_BLOCK: Errno = errno(516);
    /// EINTR whatever ran. Unlike plain EINTR it keeps the mask of the call's time until what interrupted it was delivered.
    pub const RESTART_NEVER: Errno = errno(517);

    /// The error of a number that somebody else says; `None`: there is none of that number.
    pub fn of_number(number: u32) -> Option<Self> {
        NonZero::new(number as usize).map(Errno).filter(|error| error.0.get() < 512)
    }

    /// Its number.
    pub const fn number(self) -> u16 {
        self.0.get() as u16
    }

    /// As a system call's result: its negative number.
    pub const fn as_result(self) -> usize {
        self.0.get().wrapping_neg()
    }

    /// Whether it says how to restart the call.
    pub const fn is_restart(self) -> bool {
        self.0.get() >= 512
    }
}

impl fmt::Debug for Errno {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl From<Gone> for Errno {
    /// Where nothing better is known of what is gone.
    fn from(_: Gone) -> Self {
        Errno::ESRCH
    }
}

impl From<frame::mm::OutOfMemory> for Errno {
    fn from(_: frame::mm::OutOfMemory) -> Self {
        Errno::ENOMEM
    }
}
