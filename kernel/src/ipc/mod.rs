//! System V IPC: shared memory, sets of semaphores and queues of messages, which processes find by number or key. See sysvipc(7). And the message queues of POSIX, which are files.
//!
//! | file | what it holds |
//! | --- | --- |
//! | here | who may use an object, and [`Objects`]: the objects of one kind by id and by key |
//! | `shm` | segments of shared memory |
//! | `sem` | sets of semaphores, and what the end of a process gives back to them (SEM_UNDO) |
//! | `msg` | queues of messages |
//! | `mq` | message queues of POSIX; nothing of what is here is about them |
//! | `place` | how one who waits is given something |
//! | `places` | which places of a table are taken |
//!
//! A table owns its objects, from the call that makes one until IPC_RMID; a segment is owned by the VMAs that show it as well, and stays until the last is gone. Nothing
//! else owns one: who waits on an object has its name. IPC_RMID marks the object as removed under its own lock before it wakes them, so who comes between the two sees the mark, and nobody sleeps for ever (EIDRM). Locks: a table's; behind that what belongs to an object, one object at a time.
//!
//! A workload cannot make more than the administrator allows (`/proc/sys/kernel/shmmni`, `sem`, `msgmni`), all workloads together. What it makes outlives it, as on Linux, so
//! its end takes no time for them: only for what it maps and what its semaphores get back.

pub mod mq;
pub mod msg;
mod place;
mod places;
pub mod sem;
pub mod shm;

use alloc::collections::BTreeMap;
use core::sync::atomic::{AtomicI32, Ordering::Relaxed};

use frame::Cx;
use refs::{SpinLock, StrongRc, TempRc, WeakRc};

use self::places::Places;
use crate::credentials::{Capability, Credentials};
use crate::error::{Errno, Result};
use crate::step::{Interruption, Step, Stop};
use crate::sysctl::Tunable;
use crate::time::clock::real_time;

/// The key of objects that have none (IPC_PRIVATE).
pub const PRIVATE: i32 = 0;
/// Make one if there is none of that key.
pub const CREATE: u32 = 0o1000;
/// With [`CREATE`]: it must be new.
pub const EXCLUSIVE: u32 = 0o2000;

/// The lower bits of an id say where in its table the object stands (Linux's IPCMNI_SHIFT).
const PLACE_BITS: u32 = 15;
/// So many objects of a kind there can be at most.
pub const MOST: u64 = 1 << PLACE_BITS;

/// So many of those that are gone are forgotten in one piece.
const FORGOTTEN_AT_ONCE: usize = 256;

/// To read an object: a bit as in a file's mode.
pub const READ: u32 = 0o4;
/// To change it.
pub const WRITE: u32 = 0o2;

/// The time, in seconds since 1970.
fn now() -> i64 {
    (real_time() / 1_000_000_000) as i64
}

/// Whose an object is, and who may use it: `struct ipc64_perm`.
#[derive(Clone, Copy, Debug)]
pub struct Permissions {
    /// Its key; [`PRIVATE`] if nobody finds it by one.
    pub key: i32,
    /// Its owner.
    pub uid: u32,
    /// Its owner's group.
    pub gid: u32,
    /// Who made it.
    pub creator_uid: u32,
    /// And that one's group.
    pub creator_gid: u32,
    /// Permission bits.
    pub mode: u32,
}

impl Permissions {
    fn new(key: i32, flags: u32, who: &Credentials) -> Self {
        let (uid, gid) = (who.users().effective.number(), who.groups().effective.number());
        Permissions { key, uid, gid, creator_uid: uid, creator_gid: gid, mode: flags & 0o777 }
    }

    /// Checks that somebody may do what bits of all three classes say (`flags` of a `get` call, or [`READ`] and [`WRITE`]).
    ///
    /// # Errors
    /// EACCES.
    pub fn check(&self, wanted: u32, who: &Credentials) -> Result<()> {
        // (Linux asks of groups what it asks of them for files.)
        let (uid, gid) = (who.users().effective.number(), who.groups().file_system.number());
        let is_in = |group: u32| gid == group || who.supplementary().contains(&group);
        let wanted = wanted >> 6 | wanted >> 3 | wanted;
        let granted = if [self.uid, self.creator_uid].contains(&uid) {
            self.mode >> 6
        } else if is_in(self.creator_gid) || is_in(self.gid) {
            self.mode >> 3
        } else {
            self.mode
        };
        if wanted & !granted & 0o7 == 0 || who.has(Capability::IpcOwner) { Ok(()) } else { Err(Errno::EACCES) }
    }

    /// Checks that somebody may remove it or give it to another.
    ///
    /// # Errors
    /// EPERM.
    pub fn check_owner(&self, who: &Credentials) -> Result<()> {
        let uid = who.users().effective.number();
        let owns = [self.uid, self.creator_uid].contains(&uid);
        if owns || who.has(Capability::SysAdmin) { Ok(()) } else { Err(Errno::EPERM) }
    }

    /// Gives it to another owner, with other permission bits (IPC_SET).
    fn set(&mut self, (uid, gid, mode): (u32, u32, u32)) {
        (self.uid, self.gid) = (uid, gid);
        self.mode = self.mode & !0o777 | mode & 0o777;
    }
}

/// An object of System V IPC.
pub trait Object: Send + Sync + 'static {
    /// Its permissions.
    fn permissions(&self) -> &SpinLock<Permissions>;

    /// Its table.
    fn table() -> &'static Objects<Self>
    where
        Self: Sized;

    /// Gives it to another owner, with other permission bits: IPC_SET.
    ///
    /// # Errors
    /// EPERM.
    fn give(&self, owner: (u32, u32, u32), who: &Credentials, cx: &Cx) -> Result<()> {
        let mut permissions = self.permissions().lock(cx);
        permissions.check_owner(who)?;
        permissions.set(owner);
        Ok(())
    }
}

/// The objects of a kind.
pub struct Objects<T: Object> {
    state: SpinLock<State<T>>,
    /// So many there may be.
    pub most: Tunable,
    /// The id that was asked for the next one; -1: none.
    asked: AtomicI32,
}

struct State<T: Object> {
    /// By place. (Nodes of a tree are small: entering one needs no large piece of memory.)
    entries: BTreeMap<u32, Entry<T>>,
    /// The places of all of them.
    places: Places,
    /// The places of those that have a key.
    keys: BTreeMap<i32, u32>,
    /// Those that are to go, or are gone, by place.
    left: BTreeMap<u32, WeakRc<T>>,
    /// The place that was given out last.
    last: Option<u32>,
    /// How many times places began again.
    sequence: u32,
}

struct Entry<T: Object> {
    id: i32,
    /// `None`: it is to go as soon as its other owners have let go of it.
    owned: Option<StrongRc<T>>,
    name: WeakRc<T>,
}

fn place_of(id: i32) -> Option<u32> {
    Some(u32::try_from(id).ok()? % MOST as u32)
}

impl<T: Object> Objects<T> {
    const fn new(most: u64) -> Self {
        let state = State {
            entries: BTreeMap::new(),
            places: Places::new(),
            keys: BTreeMap::new(),
            left: BTreeMap::new(),
            last: None,
            sequence: 0,
        };
        Objects { state: SpinLock::new(state), most: Tunable::new(most, 0..=MOST), asked: AtomicI32::new(-1) }
    }

    /// The id that the next one is to have: `/proc/sys/kernel/shm_next_id` and the like. If its place is taken it gets one behind it.
    pub fn ask_for_id(&self, id: i32) {
        self.asked.store(id, Relaxed);
    }

    /// The id that was asked for, if nothing was made since; -1: none.
    pub fn asked_id(&self) -> i32 {
        self.asked.load(Relaxed)
    }

    /// The id of the object of a key, as a `get` call finds it: `check` is asked of one that is there, `make` makes one.
    ///
    /// # Errors
    /// ENOENT, EEXIST, EACCES; ENOSPC: there are too many, among which are those that are gone until they are [forgotten](Self::forget_some_gone). Those of `check`, which come before EACCES, and
    /// of `make`.
    pub fn get(
        &self,
        (key, flags): (i32, u32),
        who: &Credentials,
        cx: &Cx,
        check: impl FnOnce(&T) -> Result<()>,
        make: impl FnOnce(Permissions, i32) -> Result<T>,
    ) -> Result<i32> {
        let mut state = self.state.lock(cx);
        if key != PRIVATE
            && let Some(entry) = state.keys.get(&key).and_then(|place| state.entries.get(place))
            && let Some(object) = &entry.owned
        {
            if flags & CREATE != 0 && flags & EXCLUSIVE != 0 {
                return Err(Errno::EEXIST);
            }
            let object = object.get(cx);
            check(&object)?;
            object.permissions().lock(cx).check(flags, who)?;
            return Ok(entry.id);
        }
        if key != PRIVATE && flags & CREATE == 0 {
            return Err(Errno::ENOENT);
        }
        if state.entries.len() as u64 >= self.most.get() {
            return Err(Errno::ENOSPC);
        }
        let asked = self.asked.load(Relaxed);
        let id = state.enter(key, asked, |id| make(Permissions::new(key, flags, who), id))?;
        // Unless another was asked for meanwhile.
        let _ = self.asked.compare_exchange(asked, -1, Relaxed, Relaxed);
        Ok(id)
    }

    /// The object of an id.
    ///
    /// # Errors
    /// EINVAL: there is none.
    pub fn find<'cx>(&self, id: i32, cx: &'cx Cx) -> Result<TempRc<'cx, T>> {
        let place = place_of(id).ok_or(Errno::EINVAL)?;
        let state = self.state.lock(cx);
        let name = state.entries.get(&place).filter(|entry| entry.id == id).map(|entry| entry.name);
        drop(state);
        name.and_then(|name| name.upgrade(cx).ok()).ok_or(Errno::EINVAL)
    }

    /// The object at a place, and its id: for SHM_STAT and the like.
    ///
    /// # Errors
    /// EINVAL: there is none.
    pub fn at<'cx>(&self, place: i32, cx: &'cx Cx) -> Result<(i32, TempRc<'cx, T>)> {
        let place = u32::try_from(place).map_err(|_| Errno::EINVAL)?;
        let found = self.state.lock(cx).entries.get(&place).map(|entry| (entry.id, entry.name));
        let (id, name) = found.ok_or(Errno::EINVAL)?;
        Ok((id, name.upgrade(cx).map_err(|_| Errno::EINVAL)?))
    }

    /// The first object from a place on, with that and its id.
    pub fn next<'cx>(&self, from: u32, cx: &'cx Cx) -> Option<(u32, i32, TempRc<'cx, T>)> {
        let state = self.state.lock(cx);
        state.entries.range(from..).find_map(|(place, entry)| Some((*place, entry.id, entry.name.upgrade(cx).ok()?)))
    }

    /// The place of the last one; 0 if there is none, too.
    ///
    /// # Errors
    /// `Pause`: there are very many behind it that are gone.
    pub fn last_place(&self, cx: &Cx) -> Step<u32> {
        let mut state = self.state.lock(cx);
        for _ in 0..FORGOTTEN_AT_ONCE {
            let Some((&place, entry)) = state.entries.last_key_value() else { return Ok(0) };
            if entry.owned.is_some() || !entry.name.is_gone() {
                return Ok(place);
            }
            state.forget(place);
        }
        Err(Stop::Pause(Interruption::KillOnly))
    }

    /// How many there are. Of those that can stay behind when they are taken out, some may be gone.
    pub fn count(&self, cx: &Cx) -> usize {
        self.state.lock(cx).entries.len()
    }

    /// Forgets some of those that were to go and are gone, from a place on; whether there may be more.
    pub fn forget_some_gone(&self, from: &mut u32, cx: &Cx) -> bool {
        let mut state = self.state.lock(cx);
        let mut gone = [None; FORGOTTEN_AT_ONCE];
        let mut next = None;
        for ((place, name), gone) in state.left.range(*from..).zip(&mut gone) {
            next = Some(place + 1);
            *gone = name.is_gone().then_some(*place);
        }
        gone.into_iter().flatten().for_each(|place| state.forget(place));
        *from = next.unwrap_or(*from);
        next.is_some()
    }

    /// A share in the object of an id, if `check` allows it. What [`take_out`](Self::take_out) decides meanwhile comes before or after.
    ///
    /// # Errors
    /// EINVAL: there is none, or it goes. Those of `check`.
    fn share(&self, id: i32, cx: &Cx, check: impl FnOnce(&T) -> Result<()>) -> Result<StrongRc<T>> {
        let place = place_of(id).ok_or(Errno::EINVAL)?;
        let state = self.state.lock(cx);
        let entry = state.entries.get(&place).filter(|entry| entry.id == id).ok_or(Errno::EINVAL)?;
        let object = entry.name.upgrade(cx).map_err(|_| Errno::EINVAL)?;
        check(&object)?;
        object.share().ok_or(Errno::EINVAL)
    }

    /// Takes an object out that nobody else owns.
    ///
    /// # Errors
    /// EIDRM: somebody else has.
    fn remove(&self, id: i32, cx: &Cx) -> Result<StrongRc<T>> {
        self.take_out(id, cx, |_| false)
    }

    /// Takes an object out; the caller drops what it owned, with nothing locked. `stays` says whether others own it as well: it can be found by its id as long as they do.
    ///
    /// # Errors
    /// EIDRM: somebody else has.
    fn take_out(&self, id: i32, cx: &Cx, stays: impl FnOnce(&TempRc<'_, T>) -> bool) -> Result<StrongRc<T>> {
        let place = place_of(id).ok_or(Errno::EINVAL)?;
        let mut state = self.state.lock(cx);
        let State { entries, keys, left, .. } = &mut *state;
        let entry = entries.get_mut(&place).filter(|entry| entry.id == id).ok_or(Errno::EIDRM)?;
        let owned = entry.owned.take().ok_or(Errno::EIDRM)?;
        let object = owned.get(cx);
        let key = object.permissions().lock(cx).key;
        if keys.get(&key) == Some(&place) {
            keys.remove(&key);
        }
        if stays(&object) {
            left.insert(place, entry.name);
        } else {
            state.forget(place);
        }
        Ok(owned)
    }
}

impl<T: Object> State<T> {
    fn enter(&mut self, key: i32, asked: i32, make: impl FnOnce(i32) -> Result<T>) -> Result<i32> {
        let (place, sequence, next) = match u32::try_from(asked) {
            Ok(asked) => {
                let place = self.places.first_free(asked % MOST as u32..MOST as u32).ok_or(Errno::ENOSPC)?;
                (place, asked >> PLACE_BITS, (self.last, self.sequence))
            }
            Err(_) => {
                let (place, sequence) = self.next_place()?;
                (place, sequence, (Some(place), sequence))
            }
        };
        let id = (sequence << PLACE_BITS | place) as i32;
        let object = StrongRc::new(make(id)?);
        (self.last, self.sequence) = next;
        let name = object.downgrade();
        self.places.take(place);
        self.entries.insert(place, Entry { id, owned: Some(object), name });
        if key != PRIVATE {
            self.keys.insert(key, place);
        }
        Ok(id)
    }

    /// Where the next one is to stand, and how many times places will have begun again then.
    fn next_place(&self) -> Result<(u32, u32)> {
        // From behind the last one, so that an id is not soon another's, and near the beginning, so that who goes through all places finds few that are empty.
        let behind = self.last.map_or(0, |last| last + 1);
        let wrap = (self.entries.len() as u32 * 3 / 2).max(64).min(MOST as u32);
        let free = self.places.first_free(behind..wrap).or_else(|| self.places.first_free(0..MOST as u32));
        let place = free.ok_or(Errno::ENOSPC)?;
        let again = u32::from(self.last.is_some_and(|last| place <= last));
        Ok((place, (self.sequence + again) % (1 << 16)))
    }

    /// Nothing stands at a place any more.
    fn forget(&mut self, place: u32) {
        self.entries.remove(&place);
        self.left.remove(&place);
        self.places.free(place);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_class_of_whoever_asks_decides() {
        let root = Credentials::default();
        let own = Permissions::new(5, 0o1640, &root);
        assert_eq!((own.key, own.mode), (5, 0o640));
        assert_eq!(own.check(0o600, &root), Ok(()));
        let foreign = Permissions { uid: 7, creator_uid: 7, ..own };
        // The creator's group is the caller's.
        assert_eq!(foreign.check(READ, &root), Ok(()));
    }

    #[test]
    fn an_id_says_the_place() {
        assert_eq!(place_of(3 << PLACE_BITS | 17), Some(17));
        assert_eq!(place_of(-1), None);
    }
}
