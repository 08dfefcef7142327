//! [`Memory`]: what the controller memory keeps of a group.

use alloc::boxed::Box;
use core::any::Any;
use core::sync::atomic::{AtomicBool, AtomicU32, Ordering};

use refs::{NoSuspend, SpinLock, StrongRc};

use super::{Cgroup, Event, Limit};
use crate::error::{Errno, Result};
use crate::memory::account::{self, Account, AccountEvent, Named, Owned};

/// What the controller memory keeps of a group. While it is enabled the group has an account of its own; else its members are charged to the nearest group above that has one.
pub struct Memory {
    account: SpinLock<Option<Owned>>,
    /// Its number; 0: there is none.
    number: AtomicU32,
    /// `memory.oom.group`.
    pub kills_all: AtomicBool,
    /// `memory.swap.max`. There is no swap.
    pub swap_max: Limit,
    /// How far the search for a member that is ended for want of memory is: the room of processes keeps it here.
    pub search: SpinLock<Option<Box<dyn Any + Send + Sync>>>,
    /// Somebody goes on with it just now, and has taken it out.
    pub is_searched: AtomicBool,
    /// `memory.events`.
    pub event: Event,
    /// `memory.events.local`.
    pub local_event: Event,
}

// Not derived: each lock is made at a place of its own, by which it is known where the order of locks is checked.
impl Default for Memory {
    fn default() -> Self {
        Memory {
            account: SpinLock::new(None),
            number: AtomicU32::new(0),
            kills_all: AtomicBool::new(false),
            swap_max: Limit::default(),
            search: SpinLock::new(None),
            is_searched: AtomicBool::new(false),
            event: Event::default(),
            local_event: Event::default(),
        }
    }
}

impl Memory {
    /// The account, if the controller is enabled.
    pub fn account(&self) -> Option<Named> {
        account::named(self.number.load(Ordering::Acquire))
    }

    /// Changes the account, which is the group's as long as `f` runs. `f` takes no locks.
    ///
    /// # Errors
    /// ENODEV: the controller is not enabled any more.
    pub fn change(&self, f: impl FnOnce(&Account) + Send) -> Result<()> {
        self.account.with(|account| account.as_ref().map(|account| f(account)).ok_or(Errno::ENODEV))
    }

    /// The controller is enabled for the group.
    ///
    /// # Errors
    /// ENOMEM.
    pub(super) fn begin(group: &Cgroup) -> Result<()> {
        let above = group.parent.as_ref().map_or(0, |parent| parent.with(|parent| parent.memory_payer()));
        let account = Owned::new(above)?;
        let number = account.number();
        group.memory.account.with(|own| *own = Some(account));
        group.memory.number.store(number, Ordering::Release);
        Ok(())
    }

    /// The controller is disabled. What is charged to the group stays so, and counts for those above, until it is freed.
    pub(super) fn end(&self) {
        self.number.store(0, Ordering::Release);
        let account = self.account.with(Option::take);
        drop(account);
        self.kills_all.store(false, Ordering::Relaxed);
        self.swap_max.lift();
    }
}

impl Cgroup {
    /// The number of the account that its members' memory is charged to; 0: none.
    pub fn memory_payer(&self) -> u32 {
        let own = self.memory.number.load(Ordering::Acquire);
        if own != 0 {
            return own;
        }
        let mut above = self.parent.as_ref().map(StrongRc::share);
        while let Some(group) = above {
            let number = group.with(|group| group.memory.number.load(Ordering::Acquire));
            if number != 0 {
                return number;
            }
            above = group.with(|group| group.parent.as_ref().map(StrongRc::share));
        }
        0
    }

    /// Whether it may not have more memory. What cores have in stock was given back by then.
    pub fn is_full_of_memory(&self) -> bool {
        self.memory.account().is_some_and(|account| account.is_full())
    }

    /// Counts an event of the controller memory, of it and of those above.
    pub fn count_memory_event(&self, event: AccountEvent) {
        if let Some(account) = account::named(self.memory_payer()) {
            account.count_event(event);
        }
    }

    /// Tells those who wait for events of memory, its own and of those above, that there were some. The caller holds no lock that who waits may take.
    pub fn tell_memory_events(&self, cx: &impl NoSuspend) {
        for group in self.up(cx) {
            if group.memory.account().is_some_and(|account| account.take_untold()) {
                group.memory.event.notify();
                group.memory.local_event.notify();
            }
        }
    }
}
