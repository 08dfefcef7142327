//! [`Journal`]: what gathers the changes of a volume until they are on its disk, as the volume's format does that.

use alloc::sync::Arc;
use alloc::vec::Vec;

use ext::{Checkpoint, Commit, CommitState, Error, Io, Time};

use super::exfat::Effects;

/// What a change has changed.
pub enum Changes {
    /// Of ext's formats.
    Logged(ext::Changes),
    /// Of exFAT; and what follows for its files.
    Ordered(exfat::Changes, Effects),
}

impl Changes {
    /// The blocks that are other ones now.
    pub fn blocks(&self) -> Vec<(u64, Arc<[u8]>)> {
        match self {
            Changes::Logged(changes) => changes.blocks.clone(),
            Changes::Ordered(changes, _) => {
                changes.blocks.iter().map(|(number, block)| (*number, Arc::from(&*block.bytes))).collect()
            }
        }
    }

    /// The same, of a change that is written at once.
    pub fn into_blocks(self) -> Vec<(u64, Arc<[u8]>)> {
        match self {
            Changes::Logged(changes) => changes.blocks,
            Changes::Ordered(changes, _) => {
                changes.blocks.into_iter().map(|(number, block)| (number, block.bytes.into())).collect()
            }
        }
    }
}

/// What was changed and is not on the disk.
pub enum Journal {
    /// With a log, or as ext2.
    Logged(ext::Journal),
    /// Written in an order that power cuts respect.
    Ordered(exfat::Pending),
}

impl Journal {
    /// Whether there is a log.
    pub fn has_log(&self) -> bool {
        matches!(self, Journal::Logged(journal) if journal.has_log())
    }

    /// Whether one more change fits in.
    pub fn has_room(&self) -> bool {
        match self {
            Journal::Logged(journal) => journal.has_room(),
            Journal::Ordered(pending) => pending.has_room(),
        }
    }

    /// Whether a checkpoint should be made.
    pub fn wants_checkpoint(&self) -> bool {
        matches!(self, Journal::Logged(journal) if journal.wants_checkpoint())
    }

    /// Takes what was changed, by the format whose journal it is.
    pub fn add(&mut self, changes: Changes) {
        match (self, changes) {
            (Journal::Logged(journal), Changes::Logged(changes)) => journal.add(changes),
            (Journal::Ordered(pending), Changes::Ordered(changes, _)) => pending.add(changes),
            (Journal::Logged(_), Changes::Ordered(..)) | (Journal::Ordered(_), Changes::Logged(_)) => {}
        }
    }

    /// Begins to commit what was gathered.
    pub fn commit(&mut self, now: Time) -> Result<CommitState, Error> {
        match self {
            Journal::Logged(journal) => journal.commit(now),
            Journal::Ordered(pending) => Ok(match pending.commit() {
                Some(ios) => CommitState::Commit(Commit { data: Vec::new(), ios: ios.into_iter().map(io).collect() }),
                None => CommitState::Nothing,
            }),
        }
    }

    /// All that a commit was to write is on the disk.
    pub fn commit_done(&mut self) {
        match self {
            Journal::Logged(journal) => journal.commit_done(),
            Journal::Ordered(pending) => pending.commit_done(),
        }
    }

    /// Begins a checkpoint, if there is something to write.
    pub fn checkpoint(&mut self) -> Result<Option<Checkpoint>, Error> {
        match self {
            Journal::Logged(journal) => journal.checkpoint(),
            Journal::Ordered(_) => Ok(None),
        }
    }

    /// All that a checkpoint was to write is on the disk.
    pub fn checkpoint_done(&mut self) {
        if let Journal::Logged(journal) = self {
            journal.checkpoint_done();
        }
    }

    /// The first of these blocks that must not be used before a commit.
    pub fn pinned_in(&self, run: ext::Run) -> Option<ext::Run> {
        match self {
            Journal::Logged(journal) => journal.pinned_in(run),
            Journal::Ordered(_) => None,
        }
    }

    /// What exFAT has gathered.
    pub fn ordered(&self) -> Option<&exfat::Pending> {
        match self {
            Journal::Logged(_) => None,
            Journal::Ordered(pending) => Some(pending),
        }
    }
}

fn io(io: exfat::Io) -> Io {
    match io {
        exfat::Io::Write(block, bytes) => Io::Write { block, bytes: bytes.into() },
        exfat::Io::Flush => Io::Flush,
    }
}
