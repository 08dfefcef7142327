//! How many message queues there may be, and how large: `/proc/sys/fs/mqueue`, and RLIMIT_MSGQUEUE of getrlimit(2).

use alloc::collections::BTreeMap;
use core::sync::atomic::{AtomicU64, Ordering::Relaxed};

use refs::SpinLock;

use crate::error::{Errno, Result};
use crate::sysctl::Tunable;

/// Nobody makes queues for more messages, or for longer ones.
const HARD_MESSAGES: u64 = 65_536;
const HARD_BYTES: u64 = 16 << 20;
const FEWEST_BYTES: u64 = 128;

/// So many queues there may be: `queues_max`.
pub static MOST_QUEUES: Tunable = Tunable::new(256, 0..=i32::MAX as u64);
/// For so many messages a queue may be: `msg_max`.
pub static MOST_MESSAGES: Tunable = Tunable::new(10, 1..=HARD_MESSAGES);
/// So long messages may be: `msgsize_max`.
pub static MOST_BYTES: Tunable = Tunable::new(8192, FEWEST_BYTES..=HARD_BYTES);
/// For so many messages a queue is whose maker does not say: `msg_default`.
pub static DEFAULT_MESSAGES: Tunable = Tunable::new(10, 1..=HARD_MESSAGES);
/// And for messages so long: `msgsize_default`.
pub static DEFAULT_BYTES: Tunable = Tunable::new(8192, FEWEST_BYTES..=HARD_BYTES);

/// What a message, and a priority of messages, count as beside the text: as much as Linux has for them (mq_overview(7)).
const MESSAGE_BYTES: u64 = 48;
const PRIORITY_BYTES: u64 = 48;

/// How much a queue holds: `struct mq_attr`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Size {
    /// So many messages.
    pub messages: usize,
    /// Each of so many bytes at most.
    pub bytes: usize,
}

/// What who makes a queue may do.
#[derive(Clone, Copy, Debug)]
pub struct Maker {
    /// Its user.
    pub user: u32,
    /// Its RLIMIT_MSGQUEUE.
    pub limit: u64,
    /// CAP_SYS_RESOURCE.
    pub is_privileged: bool,
}

impl Size {
    /// That of a queue whose maker does not say.
    fn of_default() -> Self {
        let messages = DEFAULT_MESSAGES.get().min(MOST_MESSAGES.get());
        let bytes = DEFAULT_BYTES.get().min(MOST_BYTES.get());
        Size { messages: messages as usize, bytes: bytes as usize }
    }

    /// What is asked for, if it may be had.
    ///
    /// # Errors
    /// EINVAL.
    fn asked((messages, bytes): (i64, i64), is_privileged: bool) -> Result<Self> {
        let (most, longest) =
            if is_privileged { (HARD_MESSAGES, HARD_BYTES) } else { (MOST_MESSAGES.get(), MOST_BYTES.get()) };
        let within = |asked: i64, most| u64::try_from(asked).ok().filter(|asked| (1..=most).contains(asked));
        match (within(messages, most), within(bytes, longest)) {
            (Some(messages), Some(bytes)) => Ok(Size { messages: messages as usize, bytes: bytes as usize }),
            _ => Err(Errno::EINVAL),
        }
    }

    /// What it counts for.
    fn counts(self) -> u64 {
        let messages = self.messages as u64;
        let priorities = messages.min(super::PRIORITIES.into());
        messages * (MESSAGE_BYTES + self.bytes as u64) + priorities * PRIORITY_BYTES
    }
}

/// How many queues there are, and how many bytes count for each user.
static COUNT: AtomicU64 = AtomicU64::new(0);
static USERS: SpinLock<BTreeMap<u32, u64>> = SpinLock::new(BTreeMap::new());

/// One queue that counts for its maker, until this is dropped.
pub struct Share {
    user: u32,
    bytes: u64,
    _one: Counted,
}

impl Share {
    /// For a new queue, of the size that is asked for, and how large that is.
    ///
    /// # Errors
    /// ENOSPC: there are too many queues; EINVAL: of this size there is none; EMFILE: the user has too much.
    pub fn take(asked: Option<(i64, i64)>, maker: &Maker) -> Result<(Share, Size)> {
        let one = Counted::take(maker.is_privileged)?;
        let size = asked.map_or(Ok(Size::of_default()), |asked| Size::asked(asked, maker.is_privileged))?;
        let bytes = size.counts();
        USERS.with(|users| {
            let before = users.get(&maker.user).copied().unwrap_or(0);
            if before.saturating_add(bytes) > maker.limit {
                return Err(Errno::EMFILE);
            }
            users.insert(maker.user, before + bytes);
            Ok(())
        })?;
        Ok((Share { user: maker.user, bytes, _one: one }, size))
    }
}

impl Drop for Share {
    fn drop(&mut self) {
        USERS.with(|users| {
            let left = users.get(&self.user).copied().unwrap_or(0).saturating_sub(self.bytes);
            if left > 0 {
                users.insert(self.user, left)
            } else {
                users.remove(&self.user)
            };
        });
    }
}

/// One of the queues that there are.
struct Counted;

impl Counted {
    fn take(is_privileged: bool) -> Result<Self> {
        let before = COUNT.fetch_add(1, Relaxed);
        // Dropped, and so taken back, where it is one too many.
        let one = Counted;
        if before >= MOST_QUEUES.get() && !is_privileged { Err(Errno::ENOSPC) } else { Ok(one) }
    }
}

impl Drop for Counted {
    fn drop(&mut self) {
        COUNT.fetch_sub(1, Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_queue_counts_for_its_maker_until_it_ends() {
        let maker = Maker { user: 4731, limit: 100_000, is_privileged: false };
        let (first, size) = Share::take(None, &maker).unwrap();
        assert_eq!(size, Size { messages: 10, bytes: 8192 });
        assert_eq!(first.bytes, 10 * (48 + 48 + 8192));
        assert_eq!(Share::take(None, &maker).err(), Some(Errno::EMFILE));
        let (second, size) = Share::take(Some((1, 100)), &maker).unwrap();
        assert_eq!((size.messages, size.bytes, second.bytes), (1, 100, 196));
        drop(first);
        assert!(Share::take(None, &maker).is_ok());
        drop(second);
        assert!(USERS.with(|users| !users.contains_key(&4731)));
    }

    #[test]
    fn only_the_privileged_make_larger_queues() {
        let mut maker = Maker { user: 4732, limit: u64::MAX, is_privileged: false };
        for asked in [(0, 1), (1, 0), (-1, 1), (1, -1), (11, 1), (1, 8193)] {
            assert_eq!(Share::take(Some(asked), &maker).err(), Some(Errno::EINVAL));
        }
        maker.is_privileged = true;
        let (share, _) = Share::take(Some((65_536, 8193)), &maker).unwrap();
        assert_eq!(share.bytes, 65_536 * (48 + 8193) + 32_768 * 48);
        assert_eq!(Share::take(Some((65_537, 1)), &maker).err(), Some(Errno::EINVAL));
        assert_eq!(Share::take(Some((1, (16 << 20) + 1)), &maker).err(), Some(Errno::EINVAL));
    }
}
