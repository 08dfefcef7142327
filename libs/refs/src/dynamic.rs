//! The same objects and names under executors that know nothing of [`Cx`](crate::Cx): the proof is made at run time.
//!
//! A future is wrapped by [`checked`]. Inside it a [`Lender`] takes the place of the context: [`Lender::upgrade`] gives a
//! [`NotedRc`] that is noted, with its type and the place that took it, until it is dropped. Whenever the future returns from
//! its poll, the wrapper checks that no note is left; else it drops the future and panics with the type and the place. The
//! notes belong to the wrapper, not to a thread: a future may go on anywhere.
//!
//! What needs no `await` in between is better done in [`Lender::with`], where everything is as in the static mode: checked by
//! the compiler, free at run time.
//!
//! Why it is sound: while a wrapped future is polled, the polling thread is a [`Core`] (see [`reclaim`](crate::reclaim)), so
//! nothing that it may borrow is freed; it leaves only when no note is left. A note that cannot be ended (somebody forgot a
//! `NotedRc`, or sent it away) keeps the core in for ever: memory is lost then, and not used after it was freed.
//!
//! Whatever else can suspend (a task with a stack, C code) uses a [`Gate`] in the same way: open while it runs, closed while it
//! does not.

use alloc::sync::Arc;
use core::any::type_name;
use core::fmt;
use core::marker::PhantomData;
use core::ops::Deref;
use core::pin::Pin;
use core::ptr::NonNull;
use core::task::{Context, Poll};

use crate::ledger::{Ledger, Note};
use crate::mode::{Anywhere, Shared};
use crate::object::Object;
use crate::reclaim::Core;
use crate::{Gone, Held, NoSuspend, WeakRc};

/// Where objects can be borrowed in the dynamic mode, for as long as the [`Gate`] that it belongs to is open.
#[derive(Debug)]
pub struct Lender {
    ledger: Arc<Ledger>,
}

impl Lender {
    /// The object, to be dropped before the next suspension.
    ///
    /// # Errors
    /// [`Gone`] from the moment the object is destroyed.
    ///
    /// # Panics
    /// If the scope's future is not being polled (its gate is not open).
    #[track_caller]
    pub fn upgrade<T: ?Sized, M: Anywhere>(&self, name: &WeakRc<T, M>) -> Result<NotedRc<'_, T, M>, Gone> {
        let note = self.note(type_name::<T>());
        let here = Here(());
        let object = NonNull::from(name.upgrade(&here)?.object());
        Ok(NotedRc { object, _note: note, _borrows: PhantomData })
    }

    /// Runs `f`, in which nothing can be awaited, with a context to borrow from as in the static mode. `f` is `Send`, and so has no
    /// [`Cx`](crate::Cx) by which it could suspend. Objects of one thread ([`Local`](crate::Local)) are not lent: whoever has that thread's
    /// context may free them at once.
    ///
    /// # Panics
    /// If the scope's future is not being polled (its gate is not open).
    #[track_caller]
    pub fn with<R>(&self, f: impl FnOnce(&Here) -> R + Send) -> R {
        let _note = self.note("what Lender::with lends");
        f(&Here(()))
    }

    #[track_caller]
    fn note(&self, type_name: &'static str) -> Note<'_> {
        self.ledger.note(type_name).expect("a Lender borrows only while its future is polled")
    }
}

/// The context inside [`Lender::with`].
#[derive(Debug)]
pub struct Here(());

// SAFETY: it exists only while `Lender::with` runs a function. A note keeps the gate open meanwhile, and with it its own core, which
// nobody has report a suspension; of another context's suspensions it is independent. It lends no objects of one thread.
unsafe impl<M: Anywhere> NoSuspend<M> for Here {}

/// An object that is borrowed and noted. It must be dropped before the next `await`, also when that does not block; the compiler
/// helps where the future must be `Send`, because this is not.
pub struct NotedRc<'lender, T: ?Sized + 'static, M: Anywhere = Shared> {
    object: NonNull<Object<T, M>>,
    _note: Note<'lender>,
    _borrows: PhantomData<(&'lender Object<T, M>, *mut ())>,
}

impl<T: ?Sized, M: Anywhere> NotedRc<'_, T, M> {
    /// The object's name.
    pub fn downgrade(&self) -> WeakRc<T, M> {
        // SAFETY: as in `deref`.
        let object = unsafe { self.object.as_ref() };
        WeakRc::new(object.header.link, object.header.generation, self.object, M::name(object.of))
    }
}

impl<T: ?Sized, M: Anywhere> Deref for NotedRc<'_, T, M> {
    type Target = T;
    #[inline]
    fn deref(&self) -> &T {
        // SAFETY: the object lived when it was noted, and its memory stays until the note is gone (module comment).
        unsafe { &self.object.as_ref().value }
    }
}

impl<T: ?Sized + fmt::Debug, M: Anywhere> fmt::Debug for NotedRc<'_, T, M> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        (**self).fmt(f)
    }
}

/// What must be open while objects are borrowed through its scopes, and is closed while whoever borrows is suspended.
#[derive(Debug)]
pub struct Gate {
    ledger: Arc<Ledger>,
}

impl Default for Gate {
    fn default() -> Self {
        Self::new()
    }
}

impl Gate {
    /// A closed gate.
    pub fn new() -> Self {
        Gate { ledger: Arc::new(Ledger::new(false)) }
    }

    /// Where objects are borrowed while the gate is open.
    pub fn lender(&self) -> Lender {
        Lender { ledger: self.ledger.clone() }
    }

    /// Whoever uses the scopes runs now, on this thread. A gate that several have opened is open until the last of them has closed it.
    pub fn open(&self) -> Open {
        // SAFETY: it is dropped when nothing is noted any more.
        let core = unsafe { Core::register() };
        self.ledger.open();
        Open { ledger: self.ledger.clone(), core: Some(core) }
    }
}

/// A gate that is open. Dropping it closes the gate.
#[derive(Debug)]
pub struct Open {
    ledger: Arc<Ledger>,
    /// None once it is closed.
    core: Option<Core>,
}

impl Open {
    /// Whoever uses the scopes is about to suspend.
    ///
    /// # Errors
    /// The gate, still open, and what is borrowed.
    pub fn close(mut self) -> Result<(), (Self, Held)> {
        match self.ledger.close() {
            Ok(()) => {
                self.core = None;
                Ok(())
            }
            Err(held) => Err((self, held)),
        }
    }
}

impl Drop for Open {
    fn drop(&mut self) {
        let Some(core) = self.core.take() else { return };
        if self.ledger.close().is_err() {
            // What is still borrowed stays borrowed for ever: so does this core.
            core::mem::forget(core);
        }
    }
}

/// Wraps the future that `make` makes: see the module's documentation.
pub fn checked<F: Future>(make: impl FnOnce(Lender) -> F) -> Checked<F> {
    let gate = Gate::new();
    Checked { future: Some(make(gate.lender())), gate }
}

/// A future that is checked at each suspension.
#[must_use = "futures do nothing unless they are awaited"]
pub struct Checked<F> {
    /// None once it has ended.
    future: Option<F>,
    gate: Gate,
}

impl<F> fmt::Debug for Checked<F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Checked").field("has_ended", &self.future.is_none()).finish_non_exhaustive()
    }
}

impl<F> Checked<F> {
    fn parts(self: Pin<&mut Self>) -> (Pin<&mut Option<F>>, &Gate) {
        // SAFETY: the future is not moved out of the wrapper, which drops it in place; the gate is not pinned.
        unsafe {
            let this = self.get_unchecked_mut();
            (Pin::new_unchecked(&mut this.future), &this.gate)
        }
    }
}

impl<F: Future> Future for Checked<F> {
    type Output = F::Output;

    /// # Panics
    /// If the future returned and a [`NotedRc`] of its is left; the message has its type and the place that took it. And if it is
    /// polled after it ended.
    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<F::Output> {
        let (future, gate) = self.parts();
        let mut visit = Visit { future, open: Some(gate.open()) };
        let result = visit.future.as_mut().as_pin_mut().expect("a future that ended is not polled again").poll(cx);
        if result.is_ready() {
            visit.future.set(None);
        }
        if let Some(Err((open, held))) = visit.open.take().map(Open::close) {
            visit.open = Some(open);
            drop(visit);
            panic!("a future suspends while it holds {held}");
        }
        result
    }
}

/// One poll. If it ends badly, the future ends with it, before the gate is closed.
struct Visit<'a, F> {
    future: Pin<&'a mut Option<F>>,
    open: Option<Open>,
}

impl<F> Drop for Visit<'_, F> {
    fn drop(&mut self) {
        if let Some(open) = self.open.take() {
            self.future.set(None);
            drop(open);
        }
    }
}

impl<F> Drop for Checked<F> {
    fn drop(&mut self) {
        if self.future.is_some() {
            // SAFETY: as in `parts`; it is not used after this.
            let (mut future, gate) = unsafe { Pin::new_unchecked(self) }.parts();
            let open = gate.open();
            future.set(None);
            drop(open);
        }
    }
}
