//! Random bytes, by ChaCha20 (RFC 8439) as a generator with fast key erasure: each request gets a key of its own, and the generator's
//! key is replaced before anything is given out, so what was given out cannot be computed from the state that is left.
//!
//! Seeded from the processor's random numbers and the clock, and by [whoever has better ones](seed_by), who is asked again from time to time. Programs have generators of their own (`user/vdso`), with keys from here: a page that they
//! read says of which generation keys are, and the next one begins when something is mixed in.

use core::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};

use frame::Cx;
use frame::mm::{UFrame, Writer};
use refs::{SpinLock, WaitList};
use tasks::StaticRef;
use vdso::page::Word;

use crate::step::Step;

static GENERATOR: SpinLock<Generator> =
    SpinLock::new(Generator { key: [0; 8], is_seeded: false, spare: [0; SPARE], spare_left: 0 });

/// The generation, and the page that says it.
static GENERATION: SpinLock<(u64, Option<UFrame>)> = SpinLock::new((0, None));

/// Who waits there has seeds, and is woken when one is wanted.
static SEEDER: StaticRef<WaitList> = StaticRef::none();
static WANTS_SEED: AtomicBool = AtomicBool::new(true);
/// How many requests there were since somebody was asked for one, and when that was, in nanoseconds since boot.
static REQUESTS: AtomicU32 = AtomicU32::new(0);
static ASKED_AT: AtomicU64 = AtomicU64::new(0);

/// A seed is wanted after so many requests, but not sooner than after so many nanoseconds: as on Linux, a minute.
const REQUESTS_OF_SEED: u32 = 256;
const SEED_LASTS: u64 = 60_000_000_000;

struct Generator {
    key: [u32; 8],
    is_seeded: bool,
    /// Made for requests to come, by a key of its own. What was given out is erased.
    spare: [u8; SPARE],
    /// How many bytes of it are left, at its end.
    spare_left: usize,
}

/// Few bytes for the kernel itself are made in advance for several requests.
const SPARE: usize = 256;

/// What is told to who asks how much entropy there is: the whole key, always.
pub const ENTROPY_BITS: u64 = 256;

/// So much is made between two looks at the clock: some 80,000 instructions.
const AT_ONCE: usize = 1 << 12;

/// Fills `to` with random bytes, at most 4 KiB in one go; how many.
///
/// # Errors
/// User memory faulted behind the first byte.
pub fn fill(to: &mut Writer<'_>, cx: &Cx) -> Step<usize> {
    count_request();
    let key = GENERATOR.lock(cx).next_key();
    let wanted = to.remaining().min(AT_ONCE);
    let (mut count, mut counter) = (0, 0);
    while count < wanted {
        let bytes = bytes_of(block(&key, counter));
        let len = (wanted - count).min(bytes.len());
        let left = to.remaining();
        let outcome = to.write(&bytes[..len]);
        count += left - to.remaining();
        match outcome {
            Ok(_) => {}
            Err(fault) if count == 0 => return Err(fault.into()),
            Err(_) => return Ok(count),
        }
        counter += 1;
    }
    Ok(count)
}

/// Says on the vDSO's page of data that there are keys to be had. Called once, at boot.
pub fn start(page: UFrame) {
    GENERATION.with(|(_, told)| *told = Some(page));
    begin_generation();
}

/// Keys that were given out until now are not used any more.
fn begin_generation() {
    GENERATION.with(|(number, page)| {
        *number += 1;
        if let Some(page) = page {
            page.store(Word::RandomGeneration as usize, *number);
        }
    });
}

/// Some random bytes for the kernel itself.
pub fn bytes<const N: usize>(cx: &Cx) -> [u8; N] {
    count_request();
    GENERATOR.lock(cx).take()
}

/// From now on whoever waits there is asked for seeds, the first one at once. Called once, at boot.
pub fn seed_by(waiters: &'static WaitList) {
    SEEDER.set(Some(waiters));
}

/// Whether a seed is wanted, which is told once. It is to be [mixed in](mix).
pub fn wants_seed() -> bool {
    WANTS_SEED.load(Ordering::Relaxed) && WANTS_SEED.swap(false, Ordering::Relaxed)
}

/// One more request: after some a seed is wanted.
#[inline]
fn count_request() {
    // Where several cores count at once, one that is lost is no matter.
    let count = REQUESTS.load(Ordering::Relaxed) + 1;
    REQUESTS.store(count % REQUESTS_OF_SEED, Ordering::Relaxed);
    if count >= REQUESTS_OF_SEED {
        ask_for_seed();
    }
}

#[cold]
fn ask_for_seed() {
    let now = frame::time::now();
    if now.saturating_sub(ASKED_AT.load(Ordering::Relaxed)) > SEED_LASTS {
        ASKED_AT.store(now, Ordering::Relaxed);
        WANTS_SEED.store(true, Ordering::Relaxed);
        if let Some(seeder) = SEEDER.get() {
            seeder.wake_all();
        }
    }
}

/// Mixes bytes into the generator's state. Whatever they are, they make nothing more predictable.
pub fn mix(bytes: &[u8], cx: &Cx) {
    {
        let mut generator = GENERATOR.lock(cx);
        for chunk in bytes.chunks(32) {
            for (index, &byte) in chunk.iter().enumerate() {
                generator.key[index / 4] ^= u32::from(byte) << (index % 4 * 8);
            }
            generator.next_key();
        }
        // What is given out next depends on them, too.
        generator.spare_left = 0;
    }
    begin_generation();
}

impl Generator {
    /// Some bytes of the spare ones.
    fn take<const N: usize>(&mut self) -> [u8; N] {
        const { assert!(N <= SPARE) };
        if self.spare_left < N {
            self.make_spare();
        }
        let start = SPARE - self.spare_left;
        self.spare_left -= N;
        let mut result = [0; N];
        let given = &mut self.spare[start..start + N];
        result.copy_from_slice(given);
        given.fill(0);
        result
    }

    /// Makes spare bytes anew, all of them.
    fn make_spare(&mut self) {
        let key = self.next_key();
        for (counter, chunk) in self.spare.chunks_exact_mut(64).enumerate() {
            chunk.copy_from_slice(&bytes_of(block(&key, counter as u32)));
        }
        self.spare_left = SPARE;
    }

    /// A key for one request. The generator goes on with another.
    fn next_key(&mut self) -> [u32; 8] {
        if !self.is_seeded {
            for pair in self.key.chunks_exact_mut(2) {
                let word = frame::entropy::word();
                pair[0] ^= word as u32;
                pair[1] ^= (word >> 32) as u32;
            }
            self.is_seeded = true;
        }
        let made = block(&self.key, u32::MAX);
        let (mine, given) = made.split_at(8);
        self.key.copy_from_slice(mine);
        let mut key = [0; 8];
        key.copy_from_slice(given);
        key
    }
}

fn bytes_of(words: [u32; 16]) -> [u8; 64] {
    let mut bytes = [0; 64];
    for (chunk, word) in bytes.chunks_exact_mut(4).zip(words) {
        chunk.copy_from_slice(&word.to_le_bytes());
    }
    bytes
}

/// A block of ChaCha20 with nonce 0: RFC 8439, section 2.3.
fn block(key: &[u32; 8], counter: u32) -> [u32; 16] {
    block_with_nonce(key, counter, [0; 3])
}

fn block_with_nonce(key: &[u32; 8], counter: u32, nonce: [u32; 3]) -> [u32; 16] {
    let mut first = [0; 16];
    first[..4].copy_from_slice(&[0x6170_7865, 0x3320_646e, 0x7962_2d32, 0x6b20_6574]);
    first[4..12].copy_from_slice(key);
    first[12] = counter;
    first[13..].copy_from_slice(&nonce);
    let mut state = first;
    for _ in 0..10 {
        quarter_round(&mut state, 0, 4, 8, 12);
        quarter_round(&mut state, 1, 5, 9, 13);
        quarter_round(&mut state, 2, 6, 10, 14);
        quarter_round(&mut state, 3, 7, 11, 15);
        quarter_round(&mut state, 0, 5, 10, 15);
        quarter_round(&mut state, 1, 6, 11, 12);
        quarter_round(&mut state, 2, 7, 8, 13);
        quarter_round(&mut state, 3, 4, 9, 14);
    }
    for (word, first) in state.iter_mut().zip(first) {
        *word = word.wrapping_add(first);
    }
    state
}

fn quarter_round(state: &mut [u32; 16], a: usize, b: usize, c: usize, d: usize) {
    let mut half = |a: usize, b: usize, d: usize, turn: u32| {
        state[a] = state[a].wrapping_add(state[b]);
        state[d] = (state[d] ^ state[a]).rotate_left(turn);
    };
    half(a, b, d, 16);
    half(c, d, b, 12);
    half(a, b, d, 8);
    half(c, d, b, 7);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_block_is_that_of_rfc_8439_section_2_3_2() {
        let mut key = [0; 8];
        for (index, word) in key.iter_mut().enumerate() {
            let first = index as u32 * 4;
            *word = u32::from_le_bytes([first, first + 1, first + 2, first + 3].map(|byte| byte as u8));
        }
        let made = block_with_nonce(&key, 1, [0x0900_0000, 0x4a00_0000, 0]);
        assert_eq!(made[..4], [0xe4e7_f110, 0x1559_3bd1, 0x1fdd_0f50, 0xc471_20a3]);
        assert_eq!(made[15], 0x4e3c_50a2);
    }

    #[test]
    fn no_two_requests_get_the_same_key() {
        let mut generator = Generator { key: [1; 8], is_seeded: true, spare: [0; SPARE], spare_left: 0 };
        let (first, second) = (generator.next_key(), generator.next_key());
        assert_ne!(first, second);
        assert_ne!(generator.key, first);
    }

    #[test]
    fn spare_bytes_are_given_out_once_and_erased() {
        let mut generator = Generator { key: [1; 8], is_seeded: true, spare: [0; SPARE], spare_left: 0 };
        let mut given: std::vec::Vec<[u8; 48]> = (0..20).map(|_| generator.take()).collect();
        given.sort_unstable();
        assert!(given.windows(2).all(|pair| pair[0] != pair[1]));
        let (gone, left) = generator.spare.split_at(SPARE - generator.spare_left);
        assert!(gone.iter().all(|&byte| byte == 0) && left.iter().any(|&byte| byte != 0));
    }
}
