//! Devices that tests simulate. There are none until a test [plugs](plug) one in.

use std::sync::{Mutex, PoisonError};
use std::vec::Vec;

use super::irq::IrqCx;
use crate::dma::Domain;
use crate::pci::{ConfigAccess, FunctionId, Identity, MmioWindow, capabilities};

/// What plays a device. Its registers are in ranges, as on the bus.
pub trait Simulated: Sync {
    /// The 32 bits at a register of its configuration space.
    fn config(&self, register: u16) -> u32;
    /// How many interrupts it can have.
    fn interrupts(&self) -> usize;
    /// How long a range of registers is.
    fn range(&self, bar: usize) -> usize;
    /// Reads a register of a range.
    fn read(&self, bar: usize, offset: usize, bytes: usize) -> u64;
    /// Writes a register of a range.
    fn write(&self, bar: usize, offset: usize, bytes: usize, value: u64);
}

struct Config(&'static dyn Simulated);

impl ConfigAccess for Config {
    fn read(&self, _id: FunctionId, register: u16) -> u32 {
        self.0.config(register)
    }

    fn write(&self, _id: FunctionId, _register: u16, _value: u32) {}

    fn last_bus(&self) -> u8 {
        0
    }
}

struct Function {
    identity: Identity,
    config: Config,
    domain: &'static Domain,
}

/// Those that nobody has claimed.
static FREE: Mutex<Vec<Function>> = Mutex::new(Vec::new());

/// From now on there is a device, until a driver claims it.
pub fn plug(vendor: u16, number: u16, device: &'static dyn Simulated) {
    plug_of_class(0, vendor, number, device);
}

/// The same, of a class.
pub fn plug_of_class(class: u32, vendor: u16, number: u16, device: &'static dyn Simulated) {
    let id = FunctionId { bus: 0, device: 1, function: 0 };
    let identity = Identity { id, vendor, device: number, class, secondary_bus: None };
    let function = Function { identity, config: Config(device), domain: crate::dma::simulated::domain() };
    FREE.lock().unwrap_or_else(PoisonError::into_inner).push(function);
}

/// A device that its driver has to itself.
pub struct Device(Function);

impl Device {
    /// Claims the first device that is wanted.
    pub fn claim(wanted: impl Fn(&Identity) -> bool) -> Option<Self> {
        let mut free = FREE.lock().unwrap_or_else(PoisonError::into_inner);
        let at = free.iter().position(|function| wanted(&function.identity))?;
        Some(Device(free.remove(at)))
    }

    /// What it is.
    pub fn identity(&self) -> &Identity {
        &self.0.identity
    }

    /// What it reaches in memory.
    pub fn domain(&self) -> &'static Domain {
        self.0.domain
    }

    /// Lets it access memory.
    pub fn allow_dma(&self) {
        self.0.domain.allow();
    }

    /// Keeps it from memory.
    pub fn cut_off(&self) {
        self.0.domain.cut_off();
    }

    /// There is no IOMMU.
    pub fn on_fault(&self, _handler: fn(&IrqCx, usize), _id: usize) {}

    /// Its capabilities: the number of each, and where it is.
    pub fn capabilities(&self) -> impl Iterator<Item = (u8, u16)> {
        capabilities(&self.0.config, self.0.identity.id)
    }

    /// The 32 bits at a register of its configuration space.
    pub fn config(&self, register: u16) -> u32 {
        self.0.config.0.config(register & 0xfc)
    }

    /// A window onto its registers.
    pub fn window(&self, bar: usize, offset: u64, len: u64) -> Option<MmioWindow> {
        let end = offset.checked_add(len)?;
        let is_within = len > 0 && end <= self.0.config.0.range(bar) as u64;
        is_within.then(|| MmioWindow::simulated(self.0.config.0, bar, offset as usize, len as usize))
    }

    /// How many interrupts it can have.
    pub fn interrupts(&self) -> usize {
        self.0.config.0.interrupts()
    }

    /// None is ever sent.
    pub fn interrupt(&self, number: usize, _core: usize, _handler: fn(&IrqCx, usize), _id: usize) -> Option<Interrupt> {
        (number < self.interrupts()).then_some(Interrupt { _private: () })
    }
}

/// An interrupt of a device.
pub struct Interrupt {
    _private: (),
}
