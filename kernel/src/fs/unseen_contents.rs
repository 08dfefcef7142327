//! [`UnseenContents`]: what is in the unseen files of a table of descriptors, counted together.
//!
//! When a table ends, its [unseen](super::FileEnd) files are left as they are, however many there are. Then nobody looks at what is in each of them, bytes in pipes and messages in sockets, and yet it is to
//! count as free, and what is charged for it is to be given back; so are the inotify instances that a user may have. So it is counted for all of them together where it comes and goes, and the table's end takes one sum.
//!
//! ```text
//!   Descriptors --StrongRc--> UnseenContents: bytes, charges for messages, instances
//!                                  ^  ^  ^
//!  Pipe, TimerFd: Counted ---------'  |  '------ Inbox: CountedMessages
//!                                     '--------- Inotify: UserInstance
//! ```
//!
//! A file that becomes seen counts for itself from then on ([`File::leave_contents`](super::File::leave_contents)). Where all become seen at once, as when the table is copied, the table
//! forgets these contents: nothing of what counts there is left as a whole, and it is given back file by file.
//!
//! Owner: the table, and what counts there. Destruction: some hundred instructions, which give the charges back in one turn. Nobody waits for it.
//!
//! Locks: the charges, with a socket's inbox held; then the tree of budgets.

use core::sync::atomic::{AtomicUsize, Ordering};

use refs::{SpinLock, StrongRc};

use super::notify::UserInstances;
use crate::error::Result;
use crate::reclaim::{Held, OfInbox, Payer};

/// Growth of less is not worth telling.
const WORTH_COUNTING: usize = 1024;

/// What is in the unseen files of a table.
pub struct UnseenContents {
    /// Of the kernel's, at most as many as there are.
    bytes: AtomicUsize,
    /// In how many sockets there may be messages.
    sockets: AtomicUsize,
    /// Until the table ends.
    given_back: SpinLock<Option<GivenBack>>,
}

/// What is given back when the table ends.
struct GivenBack {
    /// The messages, and who is charged for them.
    messages: OfInbox,
    instances: UserInstances,
}

/// How many sockets are left of tables that have ended.
static LEFT_SOCKETS: AtomicUsize = AtomicUsize::new(0);

/// How many sockets are left of tables that have ended: nobody has them any more.
pub fn left_sockets() -> usize {
    LEFT_SOCKETS.load(Ordering::Relaxed)
}

impl UnseenContents {
    /// Nothing; messages that come are charged to `payer`.
    pub(super) fn new(payer: &Payer) -> Self {
        let given_back = GivenBack { messages: OfInbox::of(payer), instances: UserInstances::default() };
        UnseenContents {
            bytes: AtomicUsize::new(0),
            sockets: AtomicUsize::new(0),
            given_back: SpinLock::new(Some(given_back)),
        }
    }

    /// Has somebody else charged for the messages, whatever the bound.
    pub(super) fn charge_to(&self, payer: &Payer) {
        self.with_charges(|held| held.move_to(payer));
    }

    /// The table ends: gives back what is charged; how many bytes there are.
    pub(super) fn end(&self) -> usize {
        let ended = self.given_back.with(|given_back| {
            LEFT_SOCKETS.fetch_add(self.sockets.load(Ordering::Relaxed), Ordering::Relaxed);
            given_back.take()
        });
        drop(ended);
        self.bytes.load(Ordering::Relaxed)
    }

    fn is_over(&self) -> bool {
        self.given_back.with(|given_back| given_back.is_none())
    }

    /// Changes what is charged; nothing where the table has ended.
    #[inline(always)]
    fn with_charges<R: Send>(&self, change: impl FnOnce(&mut OfInbox) -> R + Send) -> Option<R> {
        self.given_back.with(|given_back| given_back.as_mut().map(|given_back| change(&mut given_back.messages)))
    }

    /// One more socket.
    fn enter(&self) {
        self.given_back.with(|_| self.sockets.fetch_add(1, Ordering::Relaxed));
    }

    /// A socket goes, with what is in it.
    fn leave(&self, counts: [(Held, u32); 3]) {
        self.given_back.with(|given_back| {
            self.sockets.fetch_sub(1, Ordering::Relaxed);
            match given_back {
                Some(held) => counts.into_iter().for_each(|(class, count)| held.messages.remove(class, count)),
                None => _ = LEFT_SOCKETS.fetch_sub(1, Ordering::Relaxed),
            }
        });
    }

    /// One more inotify instance; false if it is another user's than the others.
    pub(super) fn enter_instance(&self, user: u32) -> bool {
        self.given_back.with(|given_back| given_back.as_mut().is_some_and(|held| held.instances.enter(user)))
    }

    /// An instance goes, or becomes seen; false if it was given back.
    pub(super) fn leave_instance(&self) -> bool {
        self.given_back.with(|given_back| given_back.as_mut().map(|held| held.instances.leave()).is_some())
    }
}

/// What is in one file, counted with the rest. Dropping it takes it out.
pub struct Counted {
    contents: StrongRc<UnseenContents>,
    bytes: usize,
}

impl Counted {
    /// Nothing yet.
    pub fn new(contents: &StrongRc<UnseenContents>) -> Self {
        Counted { contents: contents.share(), bytes: 0 }
    }

    /// How many bytes are counted.
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    /// Whether it is in a file that is left of a table that has ended.
    pub fn is_left(&self) -> bool {
        self.contents.with(UnseenContents::is_over)
    }

    /// There are so many now. Some more may stay uncounted, but never fewer.
    #[inline(always)]
    pub fn set_bytes(&mut self, bytes: usize) {
        if bytes < self.bytes || bytes >= self.bytes + WORTH_COUNTING {
            self.count(bytes);
        }
    }

    /// There are so many now, however few that is.
    #[inline(always)]
    pub fn set_exactly(&mut self, bytes: usize) {
        if bytes != self.bytes {
            self.count(bytes);
        }
    }

    fn count(&mut self, bytes: usize) {
        // Wraps where it is fewer.
        let more = bytes.wrapping_sub(self.bytes);
        self.contents.with(|contents| contents.bytes.fetch_add(more, Ordering::Relaxed));
        self.bytes = bytes;
    }
}

impl Drop for Counted {
    fn drop(&mut self) {
        self.count(0);
    }
}

/// The messages in one socket, counted with the rest. Dropping it takes them out.
pub struct CountedMessages {
    /// Their bytes.
    pub memory: Counted,
    /// How many there are, charged to nobody.
    counts: OfInbox,
}

impl CountedMessages {
    /// None yet.
    pub fn new(contents: &StrongRc<UnseenContents>) -> Self {
        contents.with(UnseenContents::enter);
        CountedMessages { memory: Counted::new(contents), counts: OfInbox::default() }
    }

    fn with_charges<R: Send>(&self, change: impl FnOnce(&mut OfInbox) -> R + Send) -> Option<R> {
        self.memory.contents.with(|contents| contents.with_charges(change))
    }

    /// How many there are of a class.
    pub fn count(&self, class: Held) -> u32 {
        self.counts.count(class)
    }

    /// How many there are of all classes, in the order in which an inbox has them.
    fn all(&self) -> [(Held, u32); 3] {
        [Held::Socket, Held::Message, Held::InFlight].map(|class| (class, self.count(class)))
    }

    /// Who is charged.
    pub fn payer(&self) -> Payer {
        self.with_charges(|held| held.payer().share()).unwrap_or_default()
    }

    /// So many of a class are to come.
    ///
    /// # Errors
    /// ENOMEM: the budget has no room for them.
    pub fn add(&mut self, class: Held, more: u32) -> Result<()> {
        self.with_charges(|held| held.add(class, more)).transpose()?;
        self.counts.add(class, more)
    }

    /// One comes back, whatever the bound.
    pub fn add_always(&mut self, class: Held) {
        let _ = self.with_charges(|held| held.add_always(class));
        self.counts.add_always(class);
    }

    /// So many of a class are gone.
    pub fn remove(&mut self, class: Held, less: u32) {
        let _ = self.with_charges(|held| held.remove(class, less));
        self.counts.remove(class, less);
    }

    /// The same, for an inbox that counts for itself from now on, whatever the bound.
    pub fn leave(self) -> OfInbox {
        let mut alone = OfInbox::of_nobody(self.all().map(|(_, count)| count));
        let payer = self.payer();
        drop(self);
        alone.move_to_nearest(&payer);
        alone
    }
}

impl Drop for CountedMessages {
    fn drop(&mut self) {
        let counts = self.all();
        self.memory.contents.with(|contents| contents.leave(counts));
    }
}

#[cfg(test)]
mod tests {
    use groups::{Limits, Tree};

    use super::*;

    fn contents(payer: &Payer) -> StrongRc<UnseenContents> {
        StrongRc::new(UnseenContents::new(payer))
    }

    #[test]
    fn bytes_of_all_files_are_one_sum_that_is_never_too_large() {
        let all = contents(&Payer::NOBODY);
        let (mut one, mut other) = (Counted::new(&all), Counted::new(&all));
        one.set_bytes(5000);
        other.set_bytes(WORTH_COUNTING - 1);
        assert_eq!((one.bytes(), other.bytes(), all.with(UnseenContents::end)), (5000, 0, 5000));
        one.set_bytes(5001);
        other.set_bytes(WORTH_COUNTING);
        assert_eq!(all.with(UnseenContents::end), 5000 + WORTH_COUNTING);
        one.set_bytes(4999);
        drop(other);
        assert_eq!(all.with(UnseenContents::end), 4999);
    }

    #[test]
    fn messages_are_charged_until_the_table_ends_and_alone_once_they_are_seen() {
        let tree: &'static Tree<Held> = alloc::boxed::Box::leak(alloc::boxed::Box::new(Tree::new()));
        let budget = tree.root().child(Limits::bound(100 * crate::reclaim::assumed(Held::Message))).expect("a budget");
        let payer = Payer::new(*budget, Payer::NOBODY);
        // With some to spare in each container.
        let charged = || budget.usage().map_or(0, |usage| usage.count(Held::Message));
        let all = contents(&payer);
        let (mut one, mut other) = (CountedMessages::new(&all), CountedMessages::new(&all));
        one.add(Held::Message, 30).expect("room");
        other.add(Held::Message, 40).expect("room");
        assert!(one.payer() == payer && (70..=80).contains(&charged()), "{}", charged());
        assert!(other.add(Held::Message, 60).is_err());
        let alone = other.leave();
        assert!(alone.count(Held::Message) == 40 && (70..=90).contains(&charged()), "{}", charged());
        all.with(UnseenContents::end);
        assert!((40..=50).contains(&charged()), "{}", charged());
        one.remove(Held::Message, 10);
        one.add(Held::Message, 1000).expect("nobody is charged any more");
        assert!(one.payer().is_nobody() && one.count(Held::Message) == 1020);
        drop((one, alone));
        assert_eq!(charged(), 0);
    }
}
