//! [`Actions`]: what a process does on each signal (sigaction(2)).

use alloc::sync::Arc;

use linux_raw_sys::general as abi;
use refs::{NoSuspend, SpinLock};
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout};

use super::set::DefaultAction;
use super::{Signal, SignalSet};

/// What is done on one signal: `struct sigaction` of the kernel's ABI.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
pub struct Action {
    /// The handler's address, 0 (SIG_DFL) or 1 (SIG_IGN).
    pub handler: u64,
    /// SA_*.
    pub flags: u64,
    /// Where a handler returns to.
    pub restorer: u64,
    /// What is blocked while the handler runs, besides the signal itself.
    pub mask: u64,
}

const DEFAULT: u64 = 0;
const IGNORE: u64 = 1;

impl Action {
    /// Whether all of the flags are set.
    pub fn has(&self, flags: u32) -> bool {
        self.flags as u32 & flags == flags
    }

    /// Whether there is a handler.
    pub fn is_handler(&self) -> bool {
        self.handler > IGNORE
    }

    /// What execve(2) leaves of it: a handler becomes the default, what is ignored stays so.
    fn after_exec(&self) -> Self {
        let handler = if self.handler == IGNORE { IGNORE } else { DEFAULT };
        Action { handler, ..Action::default() }
    }

    /// Whether the default applies.
    pub fn is_default(&self) -> bool {
        self.handler == DEFAULT
    }

    /// Whether the signal is thrown away, by wish or by default.
    pub fn ignores(&self, signal: Signal) -> bool {
        self.handler == IGNORE
            || (self.handler == DEFAULT
                && matches!(signal.default_action(), DefaultAction::Ignore | DefaultAction::Continue))
    }

    /// Whether children are not to become zombies (SIGCHLD's action only).
    pub fn abandons_children(&self) -> bool {
        self.handler == IGNORE || self.has(abi::SA_NOCLDWAIT)
    }
}

/// What a process does on each signal. Processes made with CLONE_SIGHAND share it.
#[derive(Default)]
pub struct Actions(SpinLock<Table>);

#[derive(Clone)]
struct Table {
    /// A table that fork has copied is the same until one of the two processes changes it.
    actions: Arc<[Action; Signal::MAX as usize]>,
    /// The signals of whose actions execve(2) leaves something else.
    changed_by_exec: SignalSet,
}

impl Default for Table {
    fn default() -> Self {
        Table { actions: Arc::new([Action::default(); Signal::MAX as usize]), changed_by_exec: SignalSet::EMPTY }
    }
}

impl Actions {
    /// A copy, for fork.
    pub fn duplicate(&self, cx: &impl NoSuspend) -> Self {
        Actions(SpinLock::new(self.0.lock(cx).clone()))
    }

    /// What is done on a signal.
    pub fn get(&self, signal: Signal, cx: &impl NoSuspend) -> Action {
        self.0.lock(cx).actions[signal.index()]
    }

    /// Changes what is done on a signal; gives back what was done before.
    pub fn set(&self, signal: Signal, mut action: Action, cx: &impl NoSuspend) -> Action {
        action.mask = SignalSet(action.mask).without(SignalSet::UNBLOCKABLE).0;
        let mut table = self.0.lock(cx);
        if action == action.after_exec() {
            table.changed_by_exec.0 &= !signal.set().0;
        } else {
            table.changed_by_exec.0 |= signal.set().0;
        }
        core::mem::replace(&mut Arc::make_mut(&mut table.actions)[signal.index()], action)
    }

    /// What execve(2) leaves of them: handlers become the default, what is ignored stays so.
    pub fn reset(&self, cx: &impl NoSuspend) {
        let mut table = self.0.lock(cx);
        if core::mem::take(&mut table.changed_by_exec) != SignalSet::EMPTY {
            Arc::make_mut(&mut table.actions).iter_mut().for_each(|action| *action = action.after_exec());
        }
    }

    /// All signals that are ignored, and all that have a handler: for `/proc/PID/status`.
    pub fn summary(&self, cx: &impl NoSuspend) -> (SignalSet, SignalSet) {
        let (mut ignored, mut handled) = (0, 0);
        for (index, action) in self.0.lock(cx).actions.iter().enumerate() {
            ignored |= u64::from(action.handler == IGNORE) << index;
            handled |= u64::from(action.is_handler()) << index;
        }
        (SignalSet(ignored), SignalSet(handled))
    }
}
