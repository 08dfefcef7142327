//! The store with Ebb's references: values and sessions are objects in tables, and whoever waits keeps only their names.

use refs::{Cx, List, Map, Position, SpinLock, StrongRc, WaitList, WeakRc};
use tasks::rt;

use super::{Payload, Store, Stored, Watched};

/// Keeps values as long as their sessions last, whoever watches them.
#[derive(Default)]
pub struct Immediate {
    values: SpinLock<Map<u64, Value>>,
    sessions: SpinLock<List<Session>>,
}

struct Value {
    bytes: SpinLock<Payload>,
    version: SpinLock<u64>,
    changed: WaitList,
}

/// What belongs to a client.
#[derive(Default)]
pub struct Session {
    keys: SpinLock<Vec<u64>>,
}

/// A session by name, and where it stands in the list of all.
#[derive(Clone)]
pub struct SessionName {
    session: WeakRc<Session>,
    place: Position,
}

impl Store for Immediate {
    type Session = SessionName;

    fn open(&self, cx: &Cx) -> SessionName {
        let session = StrongRc::new(Session::default());
        let name = session.downgrade();
        SessionName { session: name, place: self.sessions.lock(cx).push_back(session) }
    }

    #[cfg_attr(false, ebb_lint::never_suspends)]
    fn close(&self, name: SessionName, cx: &mut Cx) {
        let session = self.sessions.lock(cx).remove(name.place);
        let Some(session) = session else { return };
        let keys = core::mem::take(&mut *session.get(cx).keys.lock(cx));
        session.destroy(cx);
        for key in keys {
            let value = self.values.lock(cx).remove(&key);
            if let Some(value) = value {
                value.destroy(cx);
            }
        }
    }

    fn put(&self, name: &SessionName, key: u64, bytes: Payload, cx: &Cx) -> Stored {
        let Ok(session) = name.session.upgrade(cx) else { return Stored::Refused };
        let mut values = self.values.lock(cx);
        if let Some(value) = values.get(&key, cx) {
            drop(values);
            *value.bytes.lock(cx) = bytes;
            *value.version.lock(cx) += 1;
            value.changed.wake_all();
        } else {
            let value = Value { bytes: SpinLock::new(bytes), version: SpinLock::new(0), changed: WaitList::default() };
            values.insert(key, StrongRc::new(value));
            session.keys.lock(cx).push(key);
        }
        Stored::Done
    }

    fn get(&self, key: u64, cx: &Cx) -> Option<usize> {
        let value = self.values.lock(cx).get(&key, cx)?;
        Some(value.bytes.lock(cx).len())
    }

    fn watch_async(&self, name: &SessionName, key: u64, cx: &mut Cx) -> Watched {
        let found = self.values.lock(cx).get(&key, cx);
        let Some((value, seen)) = found.map(|value| (value.downgrade(), *value.version.lock(cx))) else {
            return Watched::Gone;
        };
        // The names of the value and of the session: the wait ends with either of them, and holds neither.
        let changed = rt::wait_async(
            cx,
            |cx, waker| {
                let value = value.upgrade(cx).ok()?;
                value.changed.register(waker, cx);
                (*value.version.lock(cx) != seen).then_some(())
            },
            &[&value, &name.session],
        );
        match changed {
            Ok(()) => Watched::Changed,
            Err(_) if name.session.is_gone() => Watched::Unwanted,
            Err(_) => Watched::Gone,
        }
    }
}
