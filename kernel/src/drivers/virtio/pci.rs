//! [`Transport`]: a virtual device on PCI (4.1), without what is left of the time before version 1.

use frame::cpu;
use frame::dma::Domain;
use frame::irq::IrqCx;
use frame::pci::{Device, Interrupt, MmioWindow};

use super::queue::{Features, MOST_DESCRIPTORS, MOST_SLOTS, Queue};

/// Who makes virtual devices.
const VENDOR: u16 = 0x1af4;
/// The first number of devices of version 1, to which the device's type is added.
const FIRST_DEVICE: u16 = 0x1040;
/// PCI's number for capabilities of the maker's own.
const VENDOR_CAPABILITY: u8 = 0x09;

/// Kinds of structures (4.1.4).
const COMMON: u8 = 1;
const NOTIFY: u8 = 2;
const DEVICE_CONFIG: u8 = 4;

/// Registers of the common structure (4.1.4.3).
const DEVICE_FEATURE_SELECT: usize = 0;
const DEVICE_FEATURE: usize = 4;
const DRIVER_FEATURE_SELECT: usize = 8;
const DRIVER_FEATURE: usize = 12;
const CONFIG_VECTOR: usize = 16;
const STATUS: usize = 20;
const CONFIG_GENERATION: usize = 21;
const QUEUE_SELECT: usize = 22;
const QUEUE_SIZE: usize = 24;
const QUEUE_VECTOR: usize = 26;
const QUEUE_ENABLE: usize = 28;
const QUEUE_NOTIFY: usize = 30;
const QUEUE_ADDRESSES: [usize; 3] = [32, 40, 48];
const COMMON_BYTES: u64 = 56;
/// No interrupt tells of it.
pub const NO_VECTOR: u16 = 0xffff;

/// The device's status (2.1).
const ACKNOWLEDGED: u8 = 1;
const DRIVER: u8 = 2;
const DRIVER_OK: u8 = 4;
const FEATURES_OK: u8 = 8;
const FAILED: u8 = 128;

/// Features of all devices (6).
const INDIRECT: u64 = 1 << 28;
const EVENT_INDEX: u64 = 1 << 29;
const VERSION_1: u64 = 1 << 32;
const ACCESS_PLATFORM: u64 = 1 << 33;

/// How long a device may take to reset itself, in nanoseconds.
const RESET_LIMIT: u64 = 1_000_000_000;

/// A device whose features are agreed on.
pub struct Transport {
    device: Device,
    common: MmioWindow,
    notify: MmioWindow,
    config: MmioWindow,
    notify_multiplier: usize,
    /// What it can do, and what of that was agreed on.
    offered: u64,
    features: u64,
}

/// A queue's place to tell the device that there is something in it.
pub struct Doorbell {
    window: MmioWindow,
    queue: u16,
}

impl Doorbell {
    /// Tells the device.
    pub fn ring(&self) {
        self.window.write(0, self.queue);
    }
}

impl Transport {
    /// Claims the first device of that type (or of that number of the time before version 1, if it knows version 1 as well) that is free. Of the features of its type those in `wanted` are taken that it has.
    /// `None` if there is no such device; `Err` if it is one that cannot be used, and why.
    pub fn claim(kind: u16, old_number: u16, wanted: u64) -> Option<Result<Self, &'static str>> {
        Self::claim_with(kind, old_number, |_| wanted)
    }

    /// The same, where it depends on what the device offers which features are wanted.
    pub fn claim_with(
        kind: u16,
        old_number: u16,
        wanted: impl FnOnce(u64) -> u64,
    ) -> Option<Result<Self, &'static str>> {
        let device = Device::claim(|identity| {
            identity.vendor == VENDOR && (identity.device == FIRST_DEVICE + kind || identity.device == old_number)
        })?;
        Some(Self::open(device, wanted))
    }

    fn open(device: Device, wanted: impl FnOnce(u64) -> u64) -> Result<Self, &'static str> {
        let (mut common, mut notify, mut config, mut notify_multiplier) = (None, None, None, 0);
        for (_, place) in device.capabilities().filter(|(id, _)| *id == VENDOR_CAPABILITY) {
            let kind = (device.config(place) >> 24) as u8;
            let bar = (device.config(place + 4) & 0xff) as usize;
            let (offset, len) = (u64::from(device.config(place + 8)), u64::from(device.config(place + 12)));
            let window = || device.window(bar, offset, len);
            match kind {
                COMMON if common.is_none() && len >= COMMON_BYTES => common = window(),
                NOTIFY if notify.is_none() => {
                    notify = window();
                    notify_multiplier = device.config(place + 16) as usize;
                }
                DEVICE_CONFIG if config.is_none() => config = window(),
                _ => {}
            }
        }
        let (Some(common), Some(notify), Some(config)) = (common, notify, config) else {
            return Err("it lacks registers of version 1");
        };
        let mut transport = Transport { device, common, notify, config, notify_multiplier, offered: 0, features: 0 };
        transport.agree(wanted)?;
        Ok(transport)
    }

    fn status(&self) -> u8 {
        self.common.read(STATUS)
    }

    fn add_status(&self, bits: u8) {
        self.common.write(STATUS, self.status() | bits);
    }

    /// Resets the device and agrees with it on features (3.1.1).
    fn agree(&mut self, wanted: impl FnOnce(u64) -> u64) -> Result<(), &'static str> {
        self.common.write(STATUS, 0_u8);
        let limit = frame::time::now() + RESET_LIMIT;
        while self.status() != 0 {
            if frame::time::now() > limit {
                return Err("it does not reset itself");
            }
            core::hint::spin_loop();
        }
        self.add_status(ACKNOWLEDGED | DRIVER);
        let mut offered = 0;
        for half in 0..2_u32 {
            self.common.write(DEVICE_FEATURE_SELECT, half);
            offered |= u64::from(self.common.read::<u32>(DEVICE_FEATURE)) << (32 * half);
        }
        if offered & VERSION_1 == 0 {
            self.fail();
            return Err("it does not know version 1");
        }
        self.offered = offered;
        self.features = offered & (wanted(offered) | INDIRECT | EVENT_INDEX | VERSION_1 | ACCESS_PLATFORM);
        for half in 0..2_u32 {
            self.common.write(DRIVER_FEATURE_SELECT, half);
            self.common.write(DRIVER_FEATURE, (self.features >> (32 * half)) as u32);
        }
        self.add_status(FEATURES_OK);
        if self.status() & FEATURES_OK == 0 {
            self.fail();
            return Err("it does not agree to the features that it offers");
        }
        self.common.write(CONFIG_VECTOR, NO_VECTOR);
        Ok(())
    }

    /// Where it is, for messages.
    pub fn place(&self) -> frame::pci::FunctionId {
        self.device.identity().id
    }

    /// Whether it has agreed to a feature of its type.
    pub fn has(&self, feature: u64) -> bool {
        self.features & feature != 0
    }

    /// Whether it could do something, agreed on or not.
    pub fn offers(&self, feature: u64) -> bool {
        self.offered & feature != 0
    }

    /// What it reaches in memory.
    pub fn domain(&self) -> &'static Domain {
        self.device.domain()
    }

    /// Has `handler` called with `id` when an IOMMU has stopped the device, which [its domain](Self::domain) says from then on.
    pub fn on_fault(&self, handler: fn(&IrqCx, usize), id: usize) {
        self.device.on_fault(handler, id);
    }

    /// How many queues can have an interrupt of their own.
    pub fn interrupts(&self) -> usize {
        self.device.interrupts()
    }

    /// Reads its configuration, all of it again if it changes meanwhile.
    pub fn read_config<C>(&self, read: impl Fn(&MmioWindow) -> C) -> C {
        /// A device that changes its configuration all the time gets no better than this.
        const TRIES: usize = 16;
        let generation = || self.common.read::<u8>(CONFIG_GENERATION);
        let mut before = generation();
        let mut config = read(&self.config);
        for _ in 0..TRIES {
            let after = generation();
            if after == before {
                break;
            }
            before = after;
            config = read(&self.config);
        }
        config
    }

    /// Writes 32 bits of its configuration.
    pub fn write_config(&self, offset: usize, value: u32) {
        self.config.write(offset, value);
    }

    /// Has the interrupt of entry `entry` tell that the configuration has changed; whether it will.
    pub fn tell_of_config(&self, entry: u16) -> bool {
        self.common.write(CONFIG_VECTOR, entry);
        self.common.read::<u16>(CONFIG_VECTOR) == entry
    }

    /// The interrupt of entry `entry`, which `handler` gets, called with `id`, on a core. `None` if the device has no such interrupt, it is in use, or there are no vectors left.
    pub fn interrupt(&self, entry: u16, core: usize, handler: fn(&IrqCx, usize), id: usize) -> Option<Interrupt> {
        self.device.interrupt(entry.into(), core % cpu::count(), handler, id)
    }

    /// Sets queue `number` up, for requests of so many segments, of which the interrupt of entry `entry` (or [`NO_VECTOR`]) tells. `None` if the device has no such queue, or there is no memory.
    pub fn queue<T>(&self, number: u16, segments: usize, entry: u16) -> Option<(Queue<T>, Doorbell)> {
        self.large_queue(number, segments, MOST_SLOTS, entry)
    }

    /// The same, for so many requests at a time.
    pub fn large_queue<T>(
        &self,
        number: u16,
        segments: usize,
        most_slots: usize,
        entry: u16,
    ) -> Option<(Queue<T>, Doorbell)> {
        self.common.write(QUEUE_SELECT, number);
        let most: u16 = self.common.read(QUEUE_SIZE);
        if most == 0 || self.common.read::<u16>(QUEUE_ENABLE) != 0 {
            return None;
        }
        let size = most.min(MOST_DESCRIPTORS);
        let size = if size.is_power_of_two() { size } else { size.next_power_of_two() / 2 };
        let features = Features { indirect: self.has(INDIRECT), event_index: self.has(EVENT_INDEX) };
        let queue = Queue::with_slots(size, segments, most_slots, features, self.domain())?;
        self.common.write(QUEUE_SIZE, size);
        self.common.write(QUEUE_VECTOR, entry);
        if self.common.read::<u16>(QUEUE_VECTOR) != entry {
            return None;
        }
        for (register, address) in QUEUE_ADDRESSES.into_iter().zip(queue.addresses()?) {
            self.common.write_address(register, address);
        }
        let at = usize::from(self.common.read::<u16>(QUEUE_NOTIFY)).checked_mul(self.notify_multiplier)?;
        let window = self.notify.part(at, size_of::<u16>())?;
        self.common.write(QUEUE_ENABLE, 1_u16);
        Some((queue, Doorbell { window, queue: number }))
    }

    /// The queues are set up: the device may begin.
    pub fn begin(&self) {
        self.device.allow_dma();
        self.add_status(DRIVER_OK);
    }

    /// The device cannot be used: it is told, and cut off from memory.
    pub fn fail(&self) {
        self.add_status(FAILED);
        self.device.cut_off();
    }
}
