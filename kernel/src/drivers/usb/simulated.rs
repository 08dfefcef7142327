//! What plays a host controller in tests, with a keyboard at its first port: by the rules, or lying about anything.

use std::boxed::Box;
use std::collections::{BTreeMap, VecDeque};
use std::sync::{Mutex, MutexGuard};
use std::vec::Vec;

use frame::Cx;
use frame::dma::simulated as memory;
use frame::simulated_pci::{self, Simulated};

use super::controller::Wait;
use super::ring::kind;
use crate::time::Timeline;

/// Numbers from a seed.
pub struct Random(pub u64);

impl Random {
    /// One below `below`.
    pub fn next(&mut self, below: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % below
    }

    /// Whether something happens that does once in so many times.
    fn is_once_in(&mut self, times: u64) -> bool {
        self.next(times) == 0
    }

    /// Another number that is as good as any.
    fn twist(&mut self, value: u64, bits: u64) -> u64 {
        match self.next(4) {
            0 => value ^ 1 << self.next(bits),
            1 => [0, 1, 0xff, 0xffff, 0xff_ffff, 0xffff_ffff, u64::MAX][self.next(7) as usize],
            2 => value.wrapping_add(self.next(64)).wrapping_sub(32),
            _ => self.next(u64::from(u32::MAX)) << 32 | self.next(u64::from(u32::MAX)),
        }
    }
}

const DEVICE: [u8; 18] = [18, 1, 0, 2, 0, 0, 0, 8, 0x27, 6, 1, 0, 0, 0, 1, 2, 3, 1];
const CONFIGURATION: [u8; 34] = [
    9, 2, 34, 0, 1, 1, 0, 0xa0, 50, 9, 4, 0, 0, 1, 3, 1, 1, 0, 9, 0x21, 0x11, 1, 0, 1, 0x22, 63, 0, 7, 5, 0x81, 3, 8,
    0, 7,
];
const REPORTS: [u8; 63] = [
    5, 1, 9, 6, 0xa1, 1, 0x75, 1, 0x95, 8, 5, 7, 0x19, 0xe0, 0x29, 0xe7, 0x15, 0, 0x25, 1, 0x81, 2, 0x95, 1, 0x75, 8,
    0x81, 1, 0x95, 5, 0x75, 1, 5, 8, 0x19, 1, 0x29, 5, 0x91, 2, 0x95, 1, 0x75, 3, 0x91, 1, 0x95, 6, 0x75, 8, 0x15, 0,
    0x25, 0xff, 5, 7, 0x19, 0, 0x29, 0xff, 0x81, 0, 0xc0,
];

const PORTS: usize = 4;
const SLOTS: usize = 8;
const TRB_BYTES: u64 = 16;
/// Where the registers are that are used while it runs.
const RUNNING: usize = 0x40;
const PORTSC: usize = RUNNING + 0x400;

/// A ring that it reads.
#[derive(Clone, Copy, Default)]
struct Cursor {
    at: u64,
    cycle: u32,
}

/// An entry of one.
#[derive(Clone, Copy)]
struct Entry {
    at: u64,
    parameter: u64,
    status: u32,
    control: u32,
}

#[derive(Default)]
struct State {
    command: u32,
    is_running: bool,
    registers: BTreeMap<usize, u32>,
    ports: [u32; PORTS],
    commands: Cursor,
    events: Cursor,
    first_event: u64,
    slots: [BTreeMap<u8, Cursor>; SLOTS + 1],
    doorbells: VecDeque<(u8, u8)>,
    reports: VecDeque<Vec<u8>>,
    /// The last report that set lights.
    lights: Vec<u8>,
    /// How often it was told to set a configuration.
    configured: usize,
    /// Once in so many times it lies.
    lies: Option<(Random, u64)>,
}

/// A controller.
pub struct Model {
    context_bytes: u64,
    state: Mutex<State>,
}

fn word<const N: usize>(at: u64) -> u64 {
    let mut bytes = [0; 8];
    // What is nowhere reads as zeros, as on a bus.
    memory::read(at, &mut bytes[..N]);
    u64::from_le_bytes(bytes)
}

impl Cursor {
    /// The next entry, behind links.
    fn next(&mut self) -> Option<Entry> {
        for _ in 0..3 {
            let at = self.at;
            let (parameter, status, control) = (word::<8>(at), word::<4>(at + 8) as u32, word::<4>(at + 12) as u32);
            if control & 1 != self.cycle {
                return None;
            }
            if control >> 10 & 0x3f == kind::LINK {
                (self.at, self.cycle) = (parameter & !0xf, self.cycle ^ control >> 1 & 1);
                continue;
            }
            self.at += TRB_BYTES;
            return Some(Entry { at, parameter, status, control });
        }
        None
    }
}

impl State {
    fn lies(&mut self) -> Option<&mut Random> {
        let (random, rate) = self.lies.as_mut()?;
        if random.is_once_in(*rate) { Some(random) } else { None }
    }

    /// Puts an event, or something else.
    fn event(&mut self, mut parameter: u64, mut status: u32, mut control: u32) {
        let mut cycle = self.events.cycle;
        if let Some(random) = self.lies() {
            match random.next(8) {
                0 => return,
                1 | 2 => parameter = random.twist(parameter, 64),
                3 | 4 => status = random.twist(status.into(), 32) as u32,
                5 => control = random.twist(control.into(), 32) as u32,
                6 => cycle ^= 1,
                _ => {
                    self.put(parameter, status, control, cycle);
                }
            }
        }
        self.put(parameter, status, control, cycle);
    }

    fn put(&mut self, parameter: u64, status: u32, control: u32, cycle: u32) {
        let at = self.events.at;
        memory::write(at, &parameter.to_le_bytes());
        memory::write(at + 8, &status.to_le_bytes());
        memory::write(at + 12, &(control & !1 | cycle).to_le_bytes());
        self.events.at += TRB_BYTES;
        if self.events.at == self.first_event + 256 * TRB_BYTES {
            self.events = Cursor { at: self.first_event, cycle: self.events.cycle ^ 1 };
        }
    }

    fn port_changed(&mut self, port: usize) {
        if self.is_running {
            self.event((port as u64 + 1) << 24, 1 << 24, kind::PORT_CHANGE << 10);
        }
    }

    fn command(&mut self, entry: Entry, context_bytes: u64) {
        let mut slot = (entry.control >> 24) as usize;
        let endpoint = (entry.control >> 16 & 0x1f) as u8;
        let cursor = |at: u64| {
            let address = word::<8>(at);
            Cursor { at: address & !0xf, cycle: address as u32 & 1 }
        };
        let mut code = 1;
        match entry.control >> 10 & 0x3f {
            kind::ENABLE_SLOT => {
                slot = (1..=SLOTS).find(|&slot| self.slots[slot].is_empty()).unwrap_or(0);
                match slot {
                    0 => code = 9,
                    slot => _ = self.slots[slot].insert(0, Cursor::default()),
                }
            }
            _ if !(1..=SLOTS).contains(&slot) => code = 11,
            kind::DISABLE_SLOT => self.slots[slot].clear(),
            kind::ADDRESS_DEVICE => {
                _ = self.slots[slot].insert(1, cursor(entry.parameter + 2 * context_bytes + 8));
            }
            kind::CONFIGURE_ENDPOINT => {
                let added = word::<4>(entry.parameter + 4);
                for endpoint in (2..32).filter(|endpoint| added >> endpoint & 1 != 0) {
                    let at = entry.parameter + (endpoint + 1) * context_bytes + 8;
                    self.slots[slot].insert(endpoint as u8, cursor(at));
                }
            }
            kind::SET_DEQUEUE => {
                let next = Cursor { at: entry.parameter & !0xf, cycle: entry.parameter as u32 & 1 };
                self.slots[slot].insert(endpoint, next);
            }
            _ => {}
        }
        self.event(entry.at, code << 24, kind::COMMAND_COMPLETION << 10 | (slot as u32) << 24);
    }

    /// What a device answers to a request; `None`: it refuses.
    fn answer(&mut self, setup: [u8; 8]) -> Option<Vec<u8>> {
        let text = |text: &str| {
            let units = text.encode_utf16().flat_map(u16::to_le_bytes);
            [2 + 2 * text.len() as u8, 3].into_iter().chain(units).collect()
        };
        let mut bytes = match (setup[0], setup[1], setup[3], setup[2]) {
            (0x80, 6, 1, _) => DEVICE.to_vec(),
            (0x80, 6, 2, _) => CONFIGURATION.to_vec(),
            (0x80, 6, 3, 1) => text("Somebody"),
            (0x80, 6, 3, 2) => text("Keyboard"),
            (0x81, 6, 0x22, _) => REPORTS.to_vec(),
            (0, 9, ..) => {
                self.configured += 1;
                Vec::new()
            }
            (0x21, 9, ..) => Vec::new(),
            // It refuses to be told how often it repeats, and to tell its serial number.
            _ => return None,
        };
        if let Some(random) = self.lies() {
            for _ in 0..1 + random.next(3) {
                let at = random.next(bytes.len().max(1) as u64) as usize;
                match bytes.get_mut(at) {
                    Some(byte) if !random.is_once_in(4) => *byte = random.twist((*byte).into(), 8) as u8,
                    _ => bytes.truncate(at),
                }
            }
        }
        Some(bytes)
    }

    fn control(&mut self, slot: u8) {
        let event = |code: u32, residue: u32| {
            (residue | code << 24, kind::TRANSFER_EVENT << 10 | 1 << 16 | u32::from(slot) << 24)
        };
        let mut answer = Vec::new();
        while let Some(entry) = self.slots[usize::from(slot)].get_mut(&1).and_then(Cursor::next) {
            match entry.control >> 10 & 0x3f {
                kind::SETUP => match self.answer(entry.parameter.to_le_bytes()) {
                    Some(bytes) => answer = bytes,
                    None => {
                        let (status, control) = event(6, 8);
                        return self.event(entry.at, status, control);
                    }
                },
                kind::DATA if entry.control & 1 << 16 != 0 => {
                    let len = answer.len().min((entry.status & 0x1_ffff) as usize);
                    memory::write(entry.parameter, &answer[..len]);
                    let left = (entry.status & 0x1_ffff) - len as u32;
                    if left > 0 {
                        let (status, control) = event(13, left);
                        self.event(entry.at, status, control);
                    }
                }
                kind::DATA => {
                    self.lights = std::vec![0; (entry.status & 0xff) as usize];
                    memory::read(entry.parameter, &mut self.lights);
                }
                _ => {
                    let (status, control) = event(1, 0);
                    self.event(entry.at, status, control);
                }
            }
        }
    }

    fn report(&mut self) -> bool {
        let Some(slot) = (1..=SLOTS).find(|&slot| self.slots[slot].contains_key(&3)) else { return false };
        if self.reports.is_empty() {
            return false;
        }
        let Some(entry) = self.slots[slot].get_mut(&3).and_then(Cursor::next) else { return false };
        let Some(report) = self.reports.pop_front() else { return false };
        let len = report.len().min((entry.status & 0x1_ffff) as usize);
        memory::write(entry.parameter, &report[..len]);
        let left = (entry.status & 0x1_ffff) - len as u32;
        let code = if left > 0 { 13 } else { 1 };
        self.event(entry.at, left | code << 24, kind::TRANSFER_EVENT << 10 | 3 << 16 | (slot as u32) << 24);
        true
    }
}

impl Model {
    /// Plugs a controller in, with a keyboard at its first port.
    pub fn plug(context_bytes: u64) -> &'static Self {
        let model: &'static Self = Box::leak(Box::new(Model { context_bytes, state: Mutex::default() }));
        model.connect(0);
        simulated_pci::plug_of_class(super::CLASS, 0x1b36, 13, model);
        model
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap()
    }

    /// From now on it lies once in so many times.
    pub fn lie(&self, seed: u64, rate: u64) {
        self.state().lies = Some((Random(seed), rate));
    }

    /// A keyboard is plugged in.
    pub fn connect(&self, port: usize) {
        let mut state = self.state();
        state.ports[port] |= 1 | 1 << 17;
        state.port_changed(port);
    }

    /// It is unplugged.
    pub fn disconnect(&self, port: usize) {
        let mut state = self.state();
        state.ports[port] = state.ports[port] & !3 | 1 << 17;
        state.port_changed(port);
    }

    /// The keyboard reports something.
    pub fn report(&self, report: [u8; 8]) {
        self.state().reports.push_back(report.to_vec());
    }

    /// What it was told last of its lights.
    pub fn lights(&self) -> Vec<u8> {
        self.state().lights.clone()
    }

    /// How often a device was switched on.
    pub fn configured(&self) -> usize {
        self.state().configured
    }

    /// Does what it was told to do; whether there was anything.
    pub fn work(&self) -> bool {
        let mut state = self.state();
        let mut has_done = false;
        if let Some(random) = state.lies() {
            // Something that nobody has asked for.
            let choice = random.next(40);
            let (one, two, three) = (random.next(1 << 32), random.next(1 << 32), random.next(1 << 32));
            match choice {
                0 => state.put(one << 32 | two, three as u32, two as u32, one as u32 & 1),
                1 => state.ports[one as usize % PORTS] = two as u32,
                2 => state.port_changed(one as usize % PORTS),
                3 => _ = state.registers.insert(RUNNING + 4, two as u32),
                _ => {}
            }
        }
        for _ in 0..8 {
            let Some((slot, endpoint)) = state.doorbells.pop_front() else { break };
            has_done = true;
            match (slot, endpoint) {
                (0, _) => {
                    for _ in 0..8 {
                        let Some(entry) = state.commands.next() else { break };
                        state.command(entry, self.context_bytes);
                    }
                }
                (slot, 1) if usize::from(slot) <= SLOTS => state.control(slot),
                _ => {}
            }
        }
        has_done | state.report()
    }
}

impl Simulated for Model {
    fn config(&self, _register: u16) -> u32 {
        0
    }

    fn interrupts(&self) -> usize {
        1
    }

    fn range(&self, bar: usize) -> usize {
        if bar == 0 { 0x4000 } else { 0 }
    }

    fn read(&self, _bar: usize, offset: usize, _bytes: usize) -> u64 {
        let mut state = self.state();
        let wide = if self.context_bytes == 64 { 1 << 2 } else { 0 };
        let value = match offset {
            0x00 => 0x0100_0000 | RUNNING as u32,
            0x04 => SLOTS as u32 | 1 << 8 | (PORTS as u32) << 24,
            0x08 => 2 << 27,
            0x10 => 1 | wide | 0x200 << 16,
            0x14 => 0x2000,
            0x18 => 0x1000,
            RUNNING => state.command,
            0x44 => state.registers.get(&0x44).copied().unwrap_or(u32::from(!state.is_running)),
            0x48 => 1,
            0x800 => 2 | 4 << 8 | 2 << 24,
            0x808 => 1 | 2 << 8,
            0x810 => 2 | 3 << 24,
            0x818 => 3 | 2 << 8,
            PORTSC.. if offset < PORTSC + 16 * PORTS && offset.is_multiple_of(16) => {
                state.ports[(offset - PORTSC) / 16]
            }
            _ => 0,
        };
        let rate = |random: &mut Random| random.is_once_in(30);
        if offset >= RUNNING
            && let Some(random) = state.lies()
            && rate(random)
        {
            return random.twist(value.into(), 32) & 0xffff_ffff;
        }
        value.into()
    }

    fn write(&self, _bar: usize, offset: usize, _bytes: usize, value: u64) {
        let mut state = self.state();
        let value = value as u32;
        state.registers.insert(offset, value);
        let pair = |state: &State, at: usize| {
            let half = |at| u64::from(state.registers.get(&at).copied().unwrap_or(0));
            half(at) | half(at + 4) << 32
        };
        match offset {
            RUNNING => {
                state.command = value & !2;
                state.is_running = value & 1 != 0;
                state.registers.remove(&0x44);
            }
            0x5c => {
                let address = pair(&state, 0x58);
                state.commands = Cursor { at: address & !0xf, cycle: address as u32 & 1 };
            }
            0x1034 => {
                let segment = word::<8>(pair(&state, 0x1030));
                (state.first_event, state.events) = (segment, Cursor { at: segment, cycle: 1 });
            }
            PORTSC.. if offset < PORTSC + 16 * PORTS && offset.is_multiple_of(16) => {
                let port = (offset - PORTSC) / 16;
                state.ports[port] &= !(value & 0x7f << 17);
                state.ports[port] |= value & 1 << 9;
                if value & 1 << 4 != 0 && state.ports[port] & 1 != 0 {
                    // It is enabled, the reset is over, and it is a quick one.
                    state.ports[port] = state.ports[port] & !(0xf << 10) | 1 << 1 | 1 << 21 | 3 << 10;
                    state.port_changed(port);
                }
            }
            0x2000.. => {
                if state.doorbells.len() < 64 {
                    state.doorbells.push_back((((offset - 0x2000) / 4) as u8, value as u8));
                }
            }
            _ => {}
        }
    }
}

/// Waiting is the controller's turn, and time goes on.
pub struct Turns(pub &'static Model);

impl Wait for Turns {
    fn wait_async(&mut self, cx: &mut Cx, until: Option<u64>, is_due: &dyn Fn(&Cx) -> bool) {
        const STEP: u64 = 1_000_000;
        let has_done = self.0.work();
        let now = Timeline::Boot.now();
        let next = until.unwrap_or(now + 1000 * STEP).max(now + STEP);
        // Where nothing happens, time is short.
        frame::time::stand_at(if has_done || is_due(cx) { now + STEP } else { next });
    }
}
