//! [`MmioWindow`]: the registers of a device.

use core::sync::atomic::{AtomicUsize, Ordering};

#[cfg(not(target_os = "none"))]
use crate::hosted::pci::Simulated;
use crate::mm::Word;

/// A range of a device's registers. Accesses beyond its end, or not at a multiple of their size, reach nothing: they read ones and write nothing, as on a bus where nobody answers.
#[cfg_attr(target_os = "none", derive(Debug))]
pub struct MmioWindow {
    /// Where it is mapped. (A pointer that several cores may have.) On a host: where it begins in the range of its device.
    base: AtomicUsize,
    len: usize,
    /// The device, and which of its ranges it is.
    #[cfg(not(target_os = "none"))]
    simulated: (&'static dyn Simulated, usize),
}

impl MmioWindow {
    /// # Safety
    /// So many bytes of device registers are mapped there, for ever; whatever is read or written there, no memory of the kernel's is accessed by it.
    #[cfg(target_os = "none")]
    pub(crate) unsafe fn new(base: usize, len: usize) -> Self {
        MmioWindow { base: AtomicUsize::new(base), len }
    }

    /// A window onto registers of a device that a test simulates.
    #[cfg(not(target_os = "none"))]
    pub(crate) fn simulated(device: &'static dyn Simulated, bar: usize, offset: usize, len: usize) -> Self {
        MmioWindow { base: AtomicUsize::new(offset), len, simulated: (device, bar) }
    }

    /// A part of it; `None` if it is not within.
    pub fn part(&self, offset: usize, len: usize) -> Option<Self> {
        let is_within = offset.checked_add(len).is_some_and(|end| end <= self.len);
        let base = self.base.load(Ordering::Relaxed).wrapping_add(offset);
        is_within.then(|| MmioWindow {
            base: AtomicUsize::new(base),
            len,
            #[cfg(not(target_os = "none"))]
            simulated: self.simulated,
        })
    }

    /// How many bytes it has.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether it has none.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Where a register is, if one is there.
    fn register<T>(&self, offset: usize) -> Option<usize> {
        let is_within = offset.checked_add(size_of::<T>()).is_some_and(|end| end <= self.len);
        let at = self.base.load(Ordering::Relaxed).wrapping_add(offset);
        (is_within && at.is_multiple_of(size_of::<T>())).then_some(at)
    }

    /// Reads a register.
    #[cfg(target_os = "none")]
    pub fn read<T: Word + Ones>(&self, offset: usize) -> T {
        let register = self.register::<T>(offset).map(core::ptr::with_exposed_provenance::<T>);
        // SAFETY: within the window, by the promise that `new` was made.
        register.map_or(T::ONES, |register| unsafe { register.read_volatile() })
    }

    /// Writes a register. The device sees it behind all that was written to memory before.
    #[cfg(target_os = "none")]
    pub fn write<T: Word>(&self, offset: usize, value: T) {
        core::sync::atomic::fence(Ordering::Release);
        if let Some(register) = self.register::<T>(offset).map(core::ptr::with_exposed_provenance_mut::<T>) {
            // SAFETY: as for `read`.
            unsafe { register.write_volatile(value) };
        }
    }

    /// Reads a register.
    #[cfg(not(target_os = "none"))]
    pub fn read<T: Word + Ones>(&self, offset: usize) -> T {
        let (device, bar) = self.simulated;
        self.register::<T>(offset).map_or(T::ONES, |at| T::of_bits(device.read(bar, at, size_of::<T>())))
    }

    /// Writes a register.
    #[cfg(not(target_os = "none"))]
    pub fn write<T: Word + Ones>(&self, offset: usize, value: T) {
        let (device, bar) = self.simulated;
        if let Some(at) = self.register::<T>(offset) {
            device.write(bar, at, size_of::<T>(), value.bits());
        }
    }

    /// Tells the device an address, as two registers of 32 bits, the lower one first.
    pub fn write_address(&self, offset: usize, address: crate::dma::DeviceAddress) {
        self.write(offset, address.bits() as u32);
        self.write(offset + 4, (address.bits() >> 32) as u32);
    }
}

/// What is read where nobody answers.
pub trait Ones {
    /// All bits are 1.
    const ONES: Self;
    /// The lower bits of a register.
    #[cfg(not(target_os = "none"))]
    fn of_bits(bits: u64) -> Self;
    /// As the lower bits of a register.
    #[cfg(not(target_os = "none"))]
    fn bits(self) -> u64;
}

macro_rules! ones {
    ($($word:ident)*) => { $(impl Ones for $word {
        const ONES: Self = $word::MAX;
        #[cfg(not(target_os = "none"))]
        fn of_bits(bits: u64) -> Self {
            bits as $word
        }
        #[cfg(not(target_os = "none"))]
        fn bits(self) -> u64 {
            u64::from(self)
        }
    })* };
}

ones!(u8 u16 u32 u64);
