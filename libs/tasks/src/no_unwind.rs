//! Where a panic must not unwind any further, it ends the program. The rule, and why, is in the crate's documentation.

/// While it lives no panic may pass: one that does ends the program, with a message that says where. (The panic's own message came
/// before.)
#[must_use]
pub(crate) struct NoUnwind(&'static str);

impl NoUnwind {
    /// From here on. `place` completes the sentence "a panic in ...".
    #[inline(always)]
    pub(crate) fn in_place(place: &'static str) -> Self {
        NoUnwind(place)
    }

    /// Up to here.
    #[inline(always)]
    pub(crate) fn passed(self) {
        core::mem::forget(self);
    }
}

impl Drop for NoUnwind {
    #[cold]
    #[inline(never)]
    fn drop(&mut self) {
        abort(self.0);
    }
}

/// Runs `f`; a panic that unwinds out of it ends the program, with a message that says where. Unlike [`NoUnwind`] it works where nothing else on the
/// stack would catch the panic, too: an unwinder that finds nobody who does will not begin.
#[cfg(feature = "std")]
#[inline(always)]
pub(crate) fn must_not_unwind<R>(place: &'static str, f: impl FnOnce() -> R) -> R {
    match std::panic::catch_unwind(std::panic::AssertUnwindSafe(f)) {
        Ok(value) => value,
        Err(_) => abort(place),
    }
}

/// Nothing unwinds here.
#[cfg(not(feature = "std"))]
#[inline(always)]
pub(crate) fn must_not_unwind<R>(_place: &'static str, f: impl FnOnce() -> R) -> R {
    f()
}

#[cfg(feature = "std")]
#[cold]
#[inline(never)]
fn abort(place: &str) -> ! {
    std::eprintln!("tasks: a panic in {place} can be passed on to nobody: the program ends");
    std::process::abort()
}

/// A panic in a destructor that runs during a panic ends the program.
#[cfg(not(feature = "std"))]
fn abort(place: &str) -> ! {
    panic!("tasks: a panic in {place} can be passed on to nobody: the program ends")
}
