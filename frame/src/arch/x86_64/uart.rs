//! 16550 serial ports: COM1 to COM4 at the places where they have always been.

use core::sync::atomic::{AtomicBool, AtomicPtr, AtomicU8, Ordering};

use refs::RawSpin;

use super::{ioapic, port};
use crate::irq::IrqCx;

/// Port number and interrupt line.
const PLACES: [(u16, u8); 4] = [(0x3f8, 4), (0x2f8, 3), (0x3e8, 4), (0x2e8, 3)];

const DATA: u16 = 0;
const INTERRUPT_ENABLE: u16 = 1;
const FIFO_CONTROL: u16 = 2;
const LINE_CONTROL: u16 = 3;
const MODEM_CONTROL: u16 = 4;
const LINE_STATUS: u16 = 5;
const SCRATCH: u16 = 7;

const RECEIVED: u8 = 1;
const CAN_SEND: u8 = 1 << 5;
const DIVISOR_LATCH: u8 = 1 << 7;
const EIGHT_BITS: u8 = 3;
const FIFO_ON_AND_CLEAR: u8 = 0xc7;
/// Data terminal ready, request to send, and the line that lets its interrupt through.
const READY_WITH_INTERRUPT: u8 = 0x0b;
/// What a transmit buffer takes once it is empty.
const FIFO_BYTES: usize = 16;

/// What is called with each batch of received bytes.
pub type Input = fn(&IrqCx, &[u8]);

/// A serial port that may be there.
pub struct Uart {
    base: u16,
    line: u8,
    state: AtomicU8,
    sending: RawSpin,
    input: AtomicPtr<()>,
}

const UNKNOWN: u8 = 0;
const ABSENT: u8 = 1;
const THERE: u8 = 2;

static UARTS: [Uart; 4] = {
    const fn at(number: usize) -> Uart {
        Uart {
            base: PLACES[number].0,
            line: PLACES[number].1,
            state: AtomicU8::new(UNKNOWN),
            sending: RawSpin::new(),
            input: AtomicPtr::new(core::ptr::null_mut()),
        }
    }
    [at(0), at(1), at(2), at(3)]
};

/// Set when the kernel is dying: locks may be held by whoever will not go on.
static SEIZED: AtomicBool = AtomicBool::new(false);

/// From now on messages do not wait for a lock.
pub fn seize_console() {
    SEIZED.store(true, Ordering::Relaxed);
}

/// The port of that number, if the machine has it.
pub fn uart(number: usize) -> Option<&'static Uart> {
    let uart = UARTS.get(number)?;
    if uart.state.load(Ordering::Acquire) == UNKNOWN {
        let state = if uart.probe() { THERE } else { ABSENT };
        uart.state.store(state, Ordering::Release);
    }
    (uart.state.load(Ordering::Acquire) == THERE).then_some(uart)
}

impl Uart {
    fn read(&self, register: u16) -> u8 {
        // SAFETY: a 16550's registers do not touch memory.
        unsafe { port::read_u8(self.base + register) }
    }

    fn set(&self, register: u16, value: u8) {
        // SAFETY: as above.
        unsafe { port::write_u8(self.base + register, value) };
    }

    /// Whether there is a port; sets it up for 115,200 baud, eight bits, no parity.
    fn probe(&self) -> bool {
        for pattern in [0x5a, 0xa5] {
            self.set(SCRATCH, pattern);
            if self.read(SCRATCH) != pattern {
                return false;
            }
        }
        self.set(INTERRUPT_ENABLE, 0);
        self.set(LINE_CONTROL, DIVISOR_LATCH | EIGHT_BITS);
        self.set(DATA, 1);
        self.set(INTERRUPT_ENABLE, 0);
        self.set(LINE_CONTROL, EIGHT_BITS);
        self.set(FIFO_CONTROL, FIFO_ON_AND_CLEAR);
        self.set(MODEM_CONTROL, READY_WITH_INTERRUPT);
        true
    }

    /// Sends bytes; waits (busily) while the device's buffer is full.
    pub fn write(&self, bytes: &[u8]) {
        let locked = if SEIZED.load(Ordering::Relaxed) {
            self.sending.try_lock()
        } else {
            self.sending.lock();
            true
        };
        for batch in bytes.chunks(FIFO_BYTES) {
            while self.read(LINE_STATUS) & CAN_SEND == 0 {
                core::hint::spin_loop();
            }
            for &byte in batch {
                self.set(DATA, byte);
            }
        }
        if locked {
            self.sending.unlock();
        }
    }

    /// Has the port receive what it sends, or not.
    #[cfg(feature = "selftest")]
    pub fn set_loopback(&self, on: bool) {
        const LOOPBACK: u8 = 1 << 4;
        self.set(MODEM_CONTROL, if on { READY_WITH_INTERRUPT | LOOPBACK } else { READY_WITH_INTERRUPT });
    }

    /// From now on each batch of received bytes goes to `input`.
    pub fn on_input(&self, input: Input) {
        self.input.store(input as *mut (), Ordering::Release);
        self.set(INTERRUPT_ENABLE, RECEIVED);
        ioapic::enable(self.line);
    }

    fn receive(&self, cx: &IrqCx) {
        let input = self.input.load(Ordering::Acquire);
        if input.is_null() {
            return;
        }
        // SAFETY: only `on_input` stores there, an `Input`.
        let input = unsafe { core::mem::transmute::<*mut (), Input>(input) };
        let mut batch = [0; 64];
        loop {
            let mut len = 0;
            while len < batch.len() && self.read(LINE_STATUS) & RECEIVED != 0 {
                batch[len] = self.read(DATA);
                len += 1;
            }
            if len == 0 {
                return;
            }
            input(cx, &batch[..len]);
        }
    }
}

/// The interrupt line of some ports went off: takes what they received.
pub fn interrupt(line: u8, cx: &IrqCx) {
    for uart in &UARTS {
        if uart.line == line && uart.state.load(Ordering::Acquire) == THERE {
            uart.receive(cx);
        }
    }
}
