//! [`Signal`] and [`SignalSet`]: signal numbers that are known to be valid, and sets of them as the ABI has them.

use linux_raw_sys::general as abi;

use crate::error::{Errno, Result};

/// A signal number, 1 to 64: holding one tells that it is in this range.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Signal(u8);

/// What a signal does that has no handler: see signal(7).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DefaultAction {
    /// Ends the process.
    Terminate,
    /// Ends the process; Linux would also write its memory to a file.
    Core,
    /// Nothing.
    Ignore,
    /// Stops the process.
    Stop,
    /// Continues the process if it is stopped, else nothing.
    Continue,
}

macro_rules! signals {
    ($($name:ident = $number:ident)*) => {
        #[allow(missing_docs)]
        impl Signal {
            $(pub const $name: Signal = Signal(abi::$number as u8);)*
        }
    };
}

signals! {
    HUP = SIGHUP INT = SIGINT QUIT = SIGQUIT ILL = SIGILL TRAP = SIGTRAP ABRT = SIGABRT BUS = SIGBUS FPE = SIGFPE KILL = SIGKILL
    USR1 = SIGUSR1 SEGV = SIGSEGV USR2 = SIGUSR2 PIPE = SIGPIPE ALRM = SIGALRM TERM = SIGTERM CHLD = SIGCHLD CONT = SIGCONT
    STOP = SIGSTOP TSTP = SIGTSTP TTIN = SIGTTIN TTOU = SIGTTOU URG = SIGURG XCPU = SIGXCPU XFSZ = SIGXFSZ VTALRM = SIGVTALRM
    PROF = SIGPROF WINCH = SIGWINCH IO = SIGIO PWR = SIGPWR SYS = SIGSYS
}

impl Signal {
    /// The highest number.
    pub const MAX: u32 = 64;

    /// The signal of a number that a program gave.
    ///
    /// # Errors
    /// EINVAL if there is none.
    pub fn new(number: i32) -> Result<Self> {
        if (1..=Self::MAX as i32).contains(&number) { Ok(Signal(number as u8)) } else { Err(Errno::EINVAL) }
    }

    /// Its number.
    #[inline(always)]
    pub const fn number(self) -> u32 {
        self.0 as u32
    }

    /// Its place in a table of all signals, from 0.
    #[inline(always)]
    pub const fn index(self) -> usize {
        self.0 as usize - 1
    }

    /// The set of this signal alone.
    #[inline(always)]
    pub const fn set(self) -> SignalSet {
        SignalSet(1 << (self.0 - 1))
    }

    /// Whether several of it are queued (all from SIGRTMIN on).
    pub fn is_real_time(self) -> bool {
        u32::from(self.0) >= abi::SIGRTMIN
    }

    /// What it does without a handler.
    pub fn default_action(self) -> DefaultAction {
        if SignalSet::STOPS.contains(self) {
            return DefaultAction::Stop;
        }
        match self {
            Signal::CONT => DefaultAction::Continue,
            Signal::CHLD | Signal::URG | Signal::WINCH => DefaultAction::Ignore,
            Signal::QUIT
            | Signal::ILL
            | Signal::TRAP
            | Signal::ABRT
            | Signal::BUS
            | Signal::FPE
            | Signal::SEGV
            | Signal::XCPU
            | Signal::XFSZ
            | Signal::SYS => DefaultAction::Core,
            _ => DefaultAction::Terminate,
        }
    }
}

/// A set of signals: bit `n - 1` stands for signal `n`, as in the kernel's `sigset_t`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SignalSet(pub u64);

impl SignalSet {
    /// No signal.
    pub const EMPTY: SignalSet = SignalSet(0);
    /// Those that can be neither blocked, ignored nor handled.
    pub const UNBLOCKABLE: SignalSet = Signal::KILL.set().union(Signal::STOP.set());
    /// Those that stop.
    pub const STOPS: SignalSet =
        Signal::STOP.set().union(Signal::TSTP.set()).union(Signal::TTIN.set()).union(Signal::TTOU.set());
    /// Those by which the processor reports the thread's own faults; they are taken first.
    pub const FAULTS: SignalSet = Signal::SEGV
        .set()
        .union(Signal::BUS.set())
        .union(Signal::ILL.set())
        .union(Signal::TRAP.set())
        .union(Signal::FPE.set())
        .union(Signal::SYS.set());

    /// Both.
    pub const fn union(self, other: SignalSet) -> SignalSet {
        SignalSet(self.0 | other.0)
    }

    /// What is here and not there.
    pub const fn without(self, other: SignalSet) -> SignalSet {
        SignalSet(self.0 & !other.0)
    }

    /// What is in both.
    pub const fn intersection(self, other: SignalSet) -> SignalSet {
        SignalSet(self.0 & other.0)
    }

    /// Whether the signal is in it.
    pub const fn contains(self, signal: Signal) -> bool {
        self.0 & signal.set().0 != 0
    }

    /// Whether there is none.
    pub const fn is_empty(self) -> bool {
        self.0 == 0
    }

    /// The lowest signal.
    pub fn first(self) -> Option<Signal> {
        (self.0 != 0).then(|| Signal(self.0.trailing_zeros() as u8 + 1))
    }
}
