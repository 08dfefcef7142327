//! The store with counted references, as one writes it with `Rc`: whoever watches a value has a reference to it while it waits.
//!
//! Nothing tells a watcher that a value has gone: it is not gone, the watcher has it.

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::rc::Rc;

use refs::{Cx, WaitList};
use tasks::rt;

use super::{Payload, Store, Stored, Watched};

/// Keeps values as long as somebody has a reference to them.
#[derive(Default)]
pub struct Counted {
    values: RefCell<BTreeMap<u64, Rc<Value>>>,
}

struct Value {
    bytes: RefCell<Payload>,
    version: Cell<u64>,
    changed: WaitList,
}

/// What belongs to a client.
#[derive(Default)]
pub struct Session {
    keys: RefCell<Vec<u64>>,
    is_closed: Cell<bool>,
    closed: WaitList,
}

impl Store for Counted {
    type Session = Rc<Session>;

    fn open(&self, _cx: &Cx) -> Rc<Session> {
        Rc::default()
    }

    #[cfg_attr(false, ebb_lint::never_suspends)]
    fn close(&self, session: Rc<Session>, _cx: &mut Cx) {
        for key in session.keys.take() {
            self.values.borrow_mut().remove(&key);
        }
        session.is_closed.set(true);
        session.closed.wake_all();
    }

    fn put(&self, session: &Rc<Session>, key: u64, bytes: Payload, _cx: &Cx) -> Stored {
        let mut values = self.values.borrow_mut();
        if let Some(value) = values.get(&key) {
            value.bytes.replace(bytes);
            value.version.set(value.version.get() + 1);
            value.changed.wake_all();
        } else {
            let value = Value { bytes: RefCell::new(bytes), version: Cell::new(0), changed: WaitList::default() };
            values.insert(key, Rc::new(value));
            session.keys.borrow_mut().push(key);
        }
        Stored::Done
    }

    fn get(&self, key: u64, _cx: &Cx) -> Option<usize> {
        Some(self.values.borrow().get(&key)?.bytes.borrow().len())
    }

    fn watch_async(&self, session: &Rc<Session>, key: u64, cx: &mut Cx) -> Watched {
        let Some(value) = self.values.borrow().get(&key).cloned() else { return Watched::Gone };
        let seen = value.version.get();
        loop {
            let waker = rt::prepare(cx);
            value.changed.register(waker, cx);
            session.closed.register(waker, cx);
            let ended = if value.version.get() != seen {
                Some(Watched::Changed)
            } else {
                session.is_closed.get().then_some(Watched::Unwanted)
            };
            if let Some(ended) = ended {
                rt::finish_wait(cx);
                return ended;
            }
            rt::park_async(cx);
        }
    }
}
