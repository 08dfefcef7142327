//! [`Cache`]: blocks that were decompressed, or are about to be.
//!
//! It is plain data, for whoever makes a [`Source`](crate::Source) to lock. A block that is wanted is *claimed*. One that is not there comes as [`Work`], which is taken out so that it can be done with nothing locked, a piece at a time, and is put back in between. Whoever wants the block as well goes on with it.
//!
//! There is room for so many blocks of metadata and so many of content. Where a new one finds none, the one that was longest not used goes; if all are unfinished, the one that waits longest is finished first, whoever wanted it. So everybody's work comes to an end, and nobody's is waited for who was killed.

use alloc::boxed::Box;
use alloc::collections::BTreeMap;
use alloc::vec::Vec;

use decompress::{Algorithm, Decompression, Progress};

use crate::source::copy_part;
use crate::{Absent, Error, Packed};

/// So many blocks of metadata are kept, of 8 KiB.
const METADATA_BLOCKS: usize = 128;
/// So much content is kept, and at least so many blocks.
const DATA_BYTES: usize = 1 << 20;
const LEAST_DATA_BLOCKS: usize = 4;
/// More than that many blocks of content are not kept.
const MOST_DATA_BLOCKS: usize = 64;
/// Bytes of a block of metadata.
pub(crate) const METADATA_BYTES: u32 = 8192;
/// So much of the device is read in a step.
const READ_AT_ONCE: usize = 16 << 10;

/// Blocks that were decompressed, or are about to be: at most some 5 MiB of them, and as much for the input of those that are under way.
#[derive(Debug)]
pub struct Cache {
    algorithm: Algorithm,
    slots: BTreeMap<u64, Slot>,
    /// Counts claims.
    now: u64,
    data_blocks: usize,
}

#[derive(Debug)]
struct Slot {
    packed: Packed,
    state: State,
    /// When it was claimed last.
    used: u64,
}

#[derive(Debug)]
enum State {
    Ready(Vec<u8>),
    Unfinished(Box<Work>),
    /// Somebody is at it.
    Taken,
}

/// What there is of a block that somebody wants.
#[derive(Debug)]
pub enum Claim<'a> {
    /// It is there, decompressed.
    Ready(Unpacked<'a>),
    /// This must be done first, and [put back](Cache::put_back): then it is claimed again. It may be another block's.
    Work(Box<Work>),
    /// Somebody else does what must be done first.
    Busy,
}

/// A block that is decompressed.
#[derive(Debug)]
pub struct Unpacked<'a>(&'a [u8]);

impl Unpacked<'_> {
    /// Copies what stands from `from` on; how many bytes, fewer than `to` has where the block ends.
    pub fn copy(&self, from: usize, to: &mut [u8]) -> usize {
        copy_part(self.0, from, to)
    }
}

impl Cache {
    pub(crate) fn new(algorithm: Algorithm, block_bytes: u32) -> Self {
        let data_blocks = (DATA_BYTES / block_bytes as usize).clamp(LEAST_DATA_BLOCKS, MOST_DATA_BLOCKS);
        Cache { algorithm, slots: BTreeMap::new(), now: 0, data_blocks }
    }

    /// What there is of a block.
    ///
    /// # Errors
    /// `NoMemory`.
    pub fn claim(&mut self, packed: Packed) -> Result<Claim<'_>, Error> {
        self.now += 1;
        let now = self.now;
        // What another part of the image says of the same place, which contradicts this.
        if self.slots.get(&packed.address).is_some_and(|slot| slot.packed != packed) {
            if !matches!(self.slots.get(&packed.address), Some(Slot { state: State::Ready(_), .. })) {
                return Err(Error::Corrupt("two blocks in one place"));
            }
            self.slots.remove(&packed.address);
        }
        if !self.slots.contains_key(&packed.address) {
            // Room is what takes long to get and to give back where it is a mebibyte: so it is used again.
            let mut spare = Vec::new();
            let most = if packed.most == METADATA_BYTES { METADATA_BLOCKS } else { self.data_blocks };
            let alike = || self.slots.values().filter(|slot| is_alike(&slot.packed, &packed));
            if alike().count() >= most {
                let ready = alike().filter(|slot| matches!(slot.state, State::Ready(_))).min_by_key(|slot| slot.used);
                let waiting =
                    alike().filter(|slot| matches!(slot.state, State::Unfinished(_))).min_by_key(|slot| slot.used);
                match (ready.map(|slot| slot.packed.address), waiting.map(|slot| slot.packed.address)) {
                    (Some(address), _) => {
                        if let Some(Slot { state: State::Ready(bytes), .. }) = self.slots.remove(&address) {
                            spare = bytes;
                        }
                    }
                    (None, Some(address)) => return Ok(self.take(address)),
                    (None, None) => return Ok(Claim::Busy),
                }
            }
            let part = Part::Input(Vec::new(), spare);
            let work = Box::new(Work { packed, algorithm: self.algorithm, part });
            self.slots.insert(packed.address, Slot { packed, state: State::Unfinished(work), used: now });
        }
        if let Some(slot) = self.slots.get_mut(&packed.address) {
            slot.used = now;
        }
        Ok(self.take(packed.address))
    }

    fn take(&mut self, address: u64) -> Claim<'_> {
        let Some(slot) = self.slots.get_mut(&address) else { return Claim::Busy };
        if let State::Unfinished(_) = slot.state {
            return match core::mem::replace(&mut slot.state, State::Taken) {
                State::Unfinished(work) => Claim::Work(work),
                _ => Claim::Busy,
            };
        }
        match &slot.state {
            State::Ready(bytes) => Claim::Ready(Unpacked(bytes)),
            _ => Claim::Busy,
        }
    }

    /// Puts work back. What has failed is forgotten, but for what was absent.
    pub fn put_back(&mut self, work: Box<Work>, outcome: Result<Progress, Error>) {
        let address = work.packed.address;
        let state = match outcome {
            Ok(Progress::Done) => match work.part {
                Part::Output(decompression) => State::Ready(decompression.finish()),
                Part::Input(..) => State::Unfinished(work),
            },
            Ok(Progress::More) | Err(Error::Absent) => State::Unfinished(work),
            Err(_) => return drop(self.slots.remove(&address)),
        };
        if let Some(slot) = self.slots.get_mut(&address) {
            slot.state = state;
        }
    }
}

fn is_alike(a: &Packed, b: &Packed) -> bool {
    (a.most == METADATA_BYTES) == (b.most == METADATA_BYTES)
}

/// A block that is being read and decompressed.
#[derive(Debug)]
pub struct Work {
    packed: Packed,
    algorithm: Algorithm,
    part: Part,
}

#[derive(Debug)]
enum Part {
    /// So much of it was read; and room for what comes of it.
    Input(Vec<u8>, Vec<u8>),
    Output(Decompression),
}

impl Work {
    /// Does a piece of it. `copy` copies bytes of the device, as [`Source::copy`](crate::Source::copy) does.
    ///
    /// # Errors
    /// `Absent`: it is to be put back. `Corrupt`, `Unsupported`, `NoMemory`.
    pub fn step(&mut self, copy: impl Fn(u64, &mut [u8]) -> Result<(), Absent>) -> Result<Progress, Error> {
        let (input, spare) = match &mut self.part {
            Part::Input(input, spare) => (input, spare),
            Part::Output(decompression) => return Ok(decompression.step()?),
        };
        let bytes = self.packed.bytes as usize;
        if input.len() == bytes {
            let (input, spare) = (core::mem::take(input), core::mem::take(spare));
            let most = self.packed.most as usize;
            self.part = Part::Output(Decompression::new(self.algorithm, input, most, spare)?);
            return Ok(Progress::More);
        }
        if input.capacity() < bytes {
            input.try_reserve_exact(bytes).map_err(|_| Error::NoMemory)?;
            return Ok(Progress::More);
        }
        let mut read = input.len();
        let end = bytes.min(read + READ_AT_ONCE);
        while read < end {
            // Each page for itself: what has come is not copied again.
            let address = self.packed.address + read as u64;
            let next = (end - read).min(PAGE - (address % PAGE as u64) as usize);
            input.resize(read + next, 0);
            if let Err(absent) = copy(address, &mut input[read..]) {
                input.truncate(read);
                return Err(absent.into());
            }
            read += next;
        }
        Ok(Progress::More)
    }
}

const PAGE: usize = 4096;
