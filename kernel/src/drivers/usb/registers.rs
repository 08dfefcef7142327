//! [`Registers`] of a host controller (xHCI 1.2, chapter 5).

use frame::dma::DeviceAddress;
use frame::pci::{Device, MmioWindow};

/// What is said before the controller runs.
const HCSPARAMS1: usize = 0x04;
const HCSPARAMS2: usize = 0x08;
const HCCPARAMS1: usize = 0x10;
const DOORBELLS: usize = 0x14;
const RUNTIME: usize = 0x18;
const CAPABILITY_BYTES: u64 = 0x20;

/// Registers while it runs.
const COMMAND: usize = 0x00;
const STATUS: usize = 0x04;
const PAGE_SIZES: usize = 0x08;
const COMMAND_RING: usize = 0x18;
const CONTEXTS: usize = 0x30;
const CONFIGURE: usize = 0x38;
const PORTS: usize = 0x400;
const PORT_BYTES: usize = 0x10;

/// Registers of the first interrupter, behind those of time.
const INTERRUPTER: u64 = 0x20;
const MANAGEMENT: usize = 0x00;
const MODERATION: usize = 0x04;
const SEGMENTS: usize = 0x08;
const SEGMENT_TABLE: usize = 0x10;
const DEQUEUE: usize = 0x18;

/// Bits of the command register.
pub const RUN: u32 = 1;
/// Resets it.
pub const RESET: u32 = 1 << 1;
/// It may interrupt.
pub const INTERRUPTS: u32 = 1 << 2;

/// Bits of the status register: it has stopped.
pub const HALTED: u32 = 1;
/// It could not access memory, or has failed.
pub const FAILED: u32 = 1 << 2 | 1 << 12;
/// It is not ready to be told anything.
pub const NOT_READY: u32 = 1 << 11;

/// Bits of a port: a device is there.
pub const CONNECTED: u32 = 1;
/// It can be used.
pub const ENABLED: u32 = 1 << 1;
/// Resets it.
pub const PORT_RESET: u32 = 1 << 4;
/// It has power.
pub const POWERED: u32 = 1 << 9;
/// Another device may be there than before.
pub const CONNECT_CHANGED: u32 = 1 << 17;
/// The reset is over.
pub const RESET_CHANGED: u32 = 1 << 21;
/// What has changed; writing a one forgets it.
const CHANGES: u32 = 0x7f << 17;
/// What keeps its value when it is written as it was read. (Writing a one to [`ENABLED`] would disable the port.)
const KEPT: u32 = POWERED | 3 << 14 | 7 << 25;

/// The registers, and what the controller says of itself.
pub struct Registers {
    running: MmioWindow,
    interrupter: MmioWindow,
    doorbells: MmioWindow,
    /// How many devices it can have.
    pub slots: u8,
    /// How many ports it has.
    pub ports: u8,
    /// How many pages it wants for itself.
    pub scratch_pages: usize,
    /// Bytes of a context.
    pub context_bytes: usize,
    /// The ports of each revision of USB: the first port, from 1 on, and how many.
    protocols: [Option<(u8, u8)>; MOST_PROTOCOLS],
}

const MOST_PROTOCOLS: usize = 4;

impl Registers {
    /// Finds them; why not, if they cannot be used.
    pub fn find(device: &Device) -> Result<Self, &'static str> {
        const TOO_SMALL: &str = "it lacks registers";
        let window = |offset: u64, len: u64| device.window(0, offset, len).ok_or(TOO_SMALL);
        let said = window(0, CAPABILITY_BYTES)?;
        let first = u64::from(said.read::<u32>(0) & 0xff);
        let (parameters, more): (u32, u32) = (said.read(HCSPARAMS1), said.read(HCCPARAMS1));
        let (slots, ports) = (parameters as u8, (parameters >> 24) as u8);
        if first < CAPABILITY_BYTES || slots == 0 || ports == 0 {
            return Err("it says nothing of itself that makes sense");
        }
        if more & 1 == 0 {
            return Err("it reaches only 32 bits of addresses");
        }
        let scratch: u32 = said.read(HCSPARAMS2);
        let doorbells = u64::from(said.read::<u32>(DOORBELLS) & !3);
        let runtime = u64::from(said.read::<u32>(RUNTIME) & !0x1f);
        let mut registers = Registers {
            running: window(first, (PORTS + PORT_BYTES * usize::from(ports)) as u64)?,
            interrupter: window(runtime + INTERRUPTER, 0x20)?,
            doorbells: window(doorbells, 4 * (u64::from(slots) + 1))?,
            slots,
            ports,
            scratch_pages: ((scratch >> 16 & 0x3e0) | scratch >> 27) as usize,
            context_bytes: if more & 1 << 2 == 0 { 32 } else { 64 },
            protocols: [None; MOST_PROTOCOLS],
        };
        if registers.running.read::<u32>(PAGE_SIZES) & 1 == 0 {
            return Err("its pages have another size");
        }
        registers.read_extended(device, u64::from(more >> 16) * 4);
        Ok(registers)
    }

    /// Looks through the list of extended capabilities (7): tells firmware that it is no longer in charge, and notes which ports are of which revision.
    fn read_extended(&mut self, device: &Device, first: u64) {
        const LEGACY: u8 = 1;
        const OURS: u32 = 1 << 24;
        const PROTOCOL: u8 = 2;
        /// A list that is longer leads back into itself.
        const MOST: usize = 32;
        let mut at = first;
        let mut known = 0;
        for _ in 0..MOST {
            let Some(window) = device.window(0, at, 0x10).filter(|_| at != 0) else { return };
            let head: u32 = window.read(0);
            match head as u8 {
                // It has nothing to do with that firmware's interrupts that it is still asked: a machine's firmware does no more once a kernel runs.
                LEGACY => window.write(0, head | OURS),
                PROTOCOL if known < MOST_PROTOCOLS => {
                    let ports: u32 = window.read(8);
                    self.protocols[known] = Some((ports as u8, (ports >> 8) as u8));
                    known += 1;
                }
                _ => {}
            }
            let next = u64::from(head >> 8 & 0xff) * 4;
            if next == 0 {
                return;
            }
            at += next;
        }
    }

    /// The number of a port, of those from 0 on, among those of its revision, from 1 on: what is written on the machine.
    pub fn number_of_port(&self, port: usize) -> usize {
        let number = port + 1;
        let of = |&(first, count): &(u8, u8)| {
            let first = usize::from(first);
            (first..first + usize::from(count)).contains(&number).then(|| number - first + 1)
        };
        self.protocols.iter().flatten().find_map(of).unwrap_or(number)
    }

    /// What the controller is told to do.
    pub fn set_command(&self, bits: u32) {
        self.running.write(COMMAND, bits);
    }

    /// The same as it is now.
    pub fn command(&self) -> u32 {
        self.running.read(COMMAND)
    }

    /// How it is; all ones where it is gone.
    pub fn status(&self) -> u32 {
        self.running.read(STATUS)
    }

    /// Tells it where what it works on is, before it runs.
    pub fn set_up(&self, slots: u8, contexts: DeviceAddress, commands: DeviceAddress, segments: DeviceAddress) {
        self.running.write(CONFIGURE, u32::from(slots));
        self.running.write_address(CONTEXTS, contexts);
        self.running.write_address(COMMAND_RING, commands);
        self.interrupter.write(SEGMENTS, 1_u32);
        // It begins to use the table when its address is written.
        self.interrupter.write_address(SEGMENT_TABLE, segments);
    }

    /// Lets it interrupt: once in so many quarters of a microsecond at most.
    pub fn enable_interrupts(&self) {
        const RARELY: u32 = 4000;
        self.interrupter.write(MODERATION, RARELY);
        self.interrupter.write(MANAGEMENT, 3_u32);
    }

    /// Says up to where events were taken.
    pub fn set_taken(&self, to: DeviceAddress) {
        self.interrupter.write(MANAGEMENT, 3_u32);
        self.interrupter.write_address(DEQUEUE, to);
    }

    /// Tells it that there is something to do, for a slot's endpoint; slot 0: a command.
    pub fn ring(&self, slot: u8, endpoint: u8) {
        self.doorbells.write(4 * usize::from(slot), u32::from(endpoint));
    }

    /// How a port is.
    pub fn port(&self, port: usize) -> u32 {
        self.running.read(PORTS + PORT_BYTES * port)
    }

    /// Forgets what has changed at a port, of that which was seen, and sets some bits.
    pub fn change_port(&self, port: usize, seen: u32, bits: u32) {
        self.running.write(PORTS + PORT_BYTES * port, seen & (KEPT | CHANGES) | bits);
    }
}
