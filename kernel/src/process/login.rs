//! Who a process works for: the user who logged in, and a number for each login. pam_loginuid(8) sets it, and children inherit it: credentials(7), auditctl(8).

use core::sync::atomic::{AtomicU32, Ordering};

/// No login, or none with a number.
const NONE: u32 = u32::MAX;

/// How many logins were counted.
static SESSIONS: AtomicU32 = AtomicU32::new(0);

/// The login that a process belongs to.
#[derive(Debug)]
pub struct Login {
    user: AtomicU32,
    session: AtomicU32,
}

impl Login {
    /// None.
    pub const fn none() -> Self {
        Login { user: AtomicU32::new(NONE), session: AtomicU32::new(NONE) }
    }

    /// The user's number; `u32::MAX` where there is none.
    pub fn user(&self) -> u32 {
        self.user.load(Ordering::Relaxed)
    }

    /// The login's number; `u32::MAX` where there is none.
    pub fn session(&self) -> u32 {
        self.session.load(Ordering::Relaxed)
    }

    /// Whether somebody has logged in.
    pub fn is_set(&self) -> bool {
        self.user() != NONE
    }

    /// Begins a login of a user; `u32::MAX` ends it.
    pub fn set(&self, user: u32) {
        let session = if user == NONE { NONE } else { SESSIONS.fetch_add(1, Ordering::Relaxed) + 1 };
        self.user.store(user, Ordering::Relaxed);
        self.session.store(session, Ordering::Relaxed);
    }

    /// Takes over that of a parent.
    pub fn inherit(&self, parent: &Login) {
        self.user.store(parent.user(), Ordering::Relaxed);
        self.session.store(parent.session(), Ordering::Relaxed);
    }
}
