//! What plays a virtual device in tests: its registers ([`Registers`]), and its side of a queue ([`RingOfDevice`]). Both do what a test says, by the rules or not.

use std::boxed::Box;
use std::sync::Mutex;
use std::vec::Vec;

use frame::dma::simulated;
use frame::simulated_pci::{self, Simulated};

/// Flags of a descriptor.
const NEXT: u16 = 1;
const WRITE: u16 = 2;
const INDIRECT: u16 = 4;

/// Numbers from a seed.
pub struct Random(pub u64);

impl Random {
    /// One below `below`.
    pub fn next(&mut self, below: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % below
    }

    /// One of these.
    pub fn of<T: Copy>(&mut self, all: &[T]) -> T {
        all[self.next(all.len() as u64) as usize]
    }
}

fn word<const N: usize>(address: u64) -> u64 {
    let mut bytes = [0; 8];
    assert!(simulated::read(address, &mut bytes[..N]), "{address:#x} is no memory of the device's");
    u64::from_le_bytes(bytes)
}

/// The device's side of a queue.
pub struct RingOfDevice {
    /// Where the descriptors are, what is available, what was used.
    pub addresses: [u64; 3],
    size: u16,
    /// The next entries that are looked at, and used.
    pub seen: u16,
    pub used: u16,
    /// What was made available, and is not used yet.
    pub heads: Vec<u16>,
}

impl RingOfDevice {
    /// Of a queue that is there.
    pub fn new(addresses: [u64; 3], size: u16) -> Self {
        RingOfDevice { addresses, size, seen: 0, used: 0, heads: Vec::new() }
    }

    /// Looks at what was made available.
    pub fn look(&mut self) {
        let available = word::<2>(self.addresses[1] + 2) as u16;
        while self.seen != available {
            let entry = u64::from(self.seen % self.size);
            self.heads.push(word::<2>(self.addresses[1] + 4 + 2 * entry) as u16);
            self.seen = self.seen.wrapping_add(1);
        }
    }

    /// The memory of a request: address, length, whether it is written.
    pub fn chain(&self, head: u16) -> Vec<(u64, u32, bool)> {
        let read = |table: u64, index: u64| {
            let at = table + 16 * index;
            (word::<8>(at), word::<4>(at + 8) as u32, word::<2>(at + 12) as u16, word::<2>(at + 14))
        };
        let (mut table, mut index) = (self.addresses[0], u64::from(head));
        let mut chain = Vec::new();
        loop {
            let (address, len, flags, next) = read(table, index);
            if flags & INDIRECT != 0 {
                (table, index) = (address, 0);
                continue;
            }
            chain.push((address, len, flags & WRITE != 0));
            if flags & NEXT == 0 {
                return chain;
            }
            index = next;
        }
    }

    /// Says that a request is done.
    pub fn put(&mut self, head: u32, len: u32) {
        let at = self.addresses[2] + 4 + 8 * u64::from(self.used % self.size);
        simulated::write(at, &head.to_le_bytes());
        simulated::write(at + 4, &len.to_le_bytes());
        self.say_used(self.used.wrapping_add(1));
    }

    /// Says how many requests are done.
    pub fn say_used(&mut self, used: u16) {
        self.used = used;
        simulated::write(self.addresses[2] + 2, &used.to_le_bytes());
    }

    /// The oldest request that was not taken; its bytes that the device reads.
    pub fn take(&mut self) -> Option<(u16, Vec<u8>)> {
        self.look();
        if self.heads.is_empty() {
            return None;
        }
        let head = self.heads.remove(0);
        let mut bytes = Vec::new();
        for (address, len, is_written) in self.chain(head) {
            if !is_written {
                let start = bytes.len();
                bytes.resize(start + len as usize, 0);
                // It is gone if the device was cut off.
                simulated::read(address, &mut bytes[start..]);
            }
        }
        Some((head, bytes))
    }

    /// Answers the oldest request with bytes, and says that they are so many; false if there is none.
    pub fn answer(&mut self, bytes: &[u8], len: u32) -> bool {
        let Some((head, _)) = self.take() else { return false };
        let mut rest = bytes;
        for (address, len, is_written) in self.chain(head) {
            if is_written {
                let (now, later) = rest.split_at(rest.len().min(len as usize));
                simulated::write(address, now);
                rest = later;
            }
        }
        self.put(head.into(), len);
        true
    }

    /// Does something that may be wrong: names what was given or what never was, with any length, or says that any number is done.
    pub fn misbehave(&mut self, random: &mut Random) {
        self.look();
        let head = match self.heads.pop() {
            Some(head) if random.next(4) != 0 => u32::from(head),
            _ => random.of(&[0, 1, 33, 34, 64, 255, 256, u32::MAX]),
        };
        let len = random.of(&[0, 1, 8, 9, 127, 128, 129, 4096, 4097, 0x1_0000, u32::MAX]);
        self.put(head, len);
        if random.next(16) == 0 {
            self.say_used(random.next(0x1_0000) as u16);
        }
    }
}

/// What there is of a queue.
#[derive(Clone, Copy)]
struct QueueRegisters {
    size: u16,
    addresses: [u64; 3],
    is_enabled: bool,
    vector: u16,
}

struct State {
    features: u64,
    half: u32,
    config_vector: u16,
    status: u8,
    selected: u16,
    queues: Vec<QueueRegisters>,
    config: Vec<u8>,
    /// The configuration changes whenever somebody looks.
    is_restless: bool,
    generation: u8,
}

/// The registers of a device (4.1).
pub struct Registers {
    state: Mutex<State>,
}

const COMMON_AT: usize = 0;
const NOTIFY_AT: usize = 0x1000;
const CONFIG_AT: usize = 0x2000;
const RANGE: usize = 0x3000;

impl Registers {
    /// Plugs a device in: its number, what it says that it can do, how long its queues are at most, and its configuration.
    pub fn plug(number: u16, features: u64, queues: &[u16], config: &[u8]) -> &'static Self {
        let queue = |&size: &u16| QueueRegisters { size, addresses: [0; 3], is_enabled: false, vector: 0 };
        let state = State {
            // Version 1.
            features: features | 1 << 32,
            half: 0,
            config_vector: 0,
            status: 0,
            selected: 0,
            queues: queues.iter().map(queue).collect(),
            config: config.to_vec(),
            is_restless: false,
            generation: 0,
        };
        let registers: &'static Self = Box::leak(Box::new(Registers { state: Mutex::new(state) }));
        simulated_pci::plug(0x1af4, number, registers);
        registers
    }

    fn state(&self) -> std::sync::MutexGuard<'_, State> {
        self.state.lock().unwrap()
    }

    /// Its side of a queue that the driver has set up.
    pub fn ring(&self, number: usize) -> RingOfDevice {
        let queue = self.state().queues[number];
        assert!(queue.is_enabled);
        RingOfDevice::new(queue.addresses, queue.size)
    }

    /// Whether the driver has said that it cannot be used.
    pub fn has_failed(&self) -> bool {
        self.state().status & 128 != 0
    }

    /// From now on its configuration never stays the same.
    pub fn make_restless(&self) {
        self.state().is_restless = true;
    }

    /// Changes its configuration.
    pub fn set_config(&self, at: usize, bytes: &[u8]) {
        self.state().config[at..at + bytes.len()].copy_from_slice(bytes);
    }

    /// A word of its configuration.
    pub fn config_word(&self, at: usize) -> u32 {
        u32::from_le_bytes(self.state().config[at..at + 4].try_into().unwrap())
    }
}

impl Simulated for Registers {
    fn config(&self, register: u16) -> u32 {
        let capability = |kind: u32, next: u32| kind << 24 | 20 << 16 | next << 8 | 9;
        match register {
            // There are capabilities.
            0x04 => 1 << 20,
            0x34 => 0x40,
            0x40 => capability(1, 0x60),
            0x48 => COMMON_AT as u32,
            0x4c => 64,
            0x60 => capability(2, 0x80),
            0x68 => NOTIFY_AT as u32,
            0x6c => 0x1000,
            // The places to tell are so many bytes apart.
            0x70 => 4,
            0x80 => capability(4, 0),
            0x88 => CONFIG_AT as u32,
            0x8c => 0x1000,
            _ => 0,
        }
    }

    fn interrupts(&self) -> usize {
        4
    }

    fn range(&self, bar: usize) -> usize {
        if bar == 0 { RANGE } else { 0 }
    }

    fn read(&self, _bar: usize, offset: usize, bytes: usize) -> u64 {
        let mut state = self.state();
        if offset >= CONFIG_AT {
            let config = state.config.iter().copied().chain(std::iter::repeat(0xff));
            let read: Vec<u8> = config.skip(offset - CONFIG_AT).take(bytes).collect();
            return read.iter().rev().fold(0, |value, &byte| value << 8 | u64::from(byte));
        }
        let number = usize::from(state.selected);
        let queue = state.queues.get(number).copied();
        match offset {
            16 => state.config_vector.into(),
            4 => state.features >> (32 * state.half.min(1)) & 0xffff_ffff,
            20 => state.status.into(),
            21 => {
                if state.is_restless {
                    state.generation = state.generation.wrapping_add(1);
                }
                state.generation.into()
            }
            24 => queue.map_or(0, |queue| queue.size.into()),
            26 => queue.map_or(0xffff, |queue| queue.vector.into()),
            28 => queue.is_some_and(|queue| queue.is_enabled).into(),
            30 => number as u64,
            _ => 0,
        }
    }

    fn write(&self, _bar: usize, offset: usize, bytes: usize, value: u64) {
        let mut state = self.state();
        if offset >= CONFIG_AT {
            let at = offset - CONFIG_AT;
            if let Some(place) = state.config.get_mut(at..at + bytes) {
                place.copy_from_slice(&value.to_le_bytes()[..bytes]);
            }
            return;
        }
        let number = usize::from(state.selected);
        match offset {
            0 => state.half = value as u32,
            16 => state.config_vector = value as u16,
            20 => state.status = value as u8,
            22 => state.selected = value as u16,
            _ => {}
        }
        let Some(queue) = state.queues.get_mut(number) else { return };
        match offset {
            24 => queue.size = value as u16,
            26 => queue.vector = value as u16,
            28 => queue.is_enabled = value == 1,
            32..56 => {
                let address = &mut queue.addresses[(offset - 32) / 8];
                let shift = (offset % 8) as u32 * 8;
                *address = *address & !(0xffff_ffff << shift) | value << shift;
            }
            _ => {}
        }
    }
}
