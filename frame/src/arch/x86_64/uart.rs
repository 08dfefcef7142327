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
/// In the interrupt register: the transmit buffer is empty.
const SENT: u8 = 1 << 1;
const CAN_SEND: u8 = 1 << 5;
const DIVISOR_LATCH: u8 = 1 << 7;
const EIGHT_BITS: u8 = 3;
const FIFO_ON_AND_CLEAR: u8 = 0xc7;
/// Data terminal ready, request to send, and the line that lets its interrupt through.
const READY_WITH_INTERRUPT: u8 = 0x0b;
/// What a transmit buffer takes once it is empty.
const FIFO_BYTES: usize = 16;

/// How often the line's state is looked at before a message of the kernel is cut short: some second, much longer than the
/// slowest line takes for a buffer.
const PATIENCE: u32 = 1_000_000;
/// The same for bytes that can wait in a queue of their own.
const SHORT_PATIENCE: u32 = 64;

/// What is called with each batch of received bytes.
pub type Input = fn(&IrqCx, &[u8]);
/// What is called when more bytes can be sent.
pub type Ready = fn(&IrqCx);

/// A serial port that may be there.
pub struct Uart {
    base: u16,
    line: u8,
    state: AtomicU8,
    sending: RawSpin,
    input: AtomicPtr<()>,
    ready: AtomicPtr<()>,
    /// Somebody is to be told when more can be sent.
    is_ready_wanted: AtomicBool,
    /// The other end took nothing for so long that messages no longer wait for it.
    is_stuck: AtomicBool,
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
            ready: AtomicPtr::new(core::ptr::null_mut()),
            is_ready_wanted: AtomicBool::new(false),
            is_stuck: AtomicBool::new(false),
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

    /// Sends bytes; waits (busily) while the device's buffer is full. Where the other end takes nothing the rest is lost, and what
    /// is written later no longer waits until it takes something again.
    pub fn write(&self, bytes: &[u8]) {
        let locked = if SEIZED.load(Ordering::Relaxed) {
            self.sending.try_lock()
        } else {
            self.sending.lock();
            true
        };
        let patience = if self.is_stuck.load(Ordering::Relaxed) { SHORT_PATIENCE } else { PATIENCE };
        let is_stuck = self.send(bytes, patience) < bytes.len();
        self.is_stuck.store(is_stuck, Ordering::Relaxed);
        if locked {
            self.sending.unlock();
        }
    }

    /// Sends what goes without waiting; how much. Where that is not all, the handler of [`on_ready`](Self::on_ready) is called when
    /// more goes.
    pub fn try_write(&self, bytes: &[u8]) -> usize {
        self.sending.lock();
        let sent = self.send(bytes, SHORT_PATIENCE);
        if sent < bytes.len() {
            self.is_ready_wanted.store(true, Ordering::Relaxed);
            self.set(INTERRUPT_ENABLE, RECEIVED | SENT);
        }
        self.sending.unlock();
        sent
    }

    /// Sends bytes until one look at the line after the other says, `patience` times, that nothing goes; how many were sent.
    fn send(&self, bytes: &[u8], patience: u32) -> usize {
        let mut sent = 0;
        for batch in bytes.chunks(FIFO_BYTES) {
            let can_send = || self.read(LINE_STATUS) & CAN_SEND != 0;
            if !(0..patience).any(|_| {
                can_send() || {
                    core::hint::spin_loop();
                    false
                }
            }) {
                break;
            }
            for &byte in batch {
                self.set(DATA, byte);
            }
            sent += batch.len();
        }
        sent
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

    /// From now on `ready` is called when bytes can be sent that [`try_write`](Self::try_write) could not send.
    pub fn on_ready(&self, ready: Ready) {
        self.ready.store(ready as *mut (), Ordering::Release);
    }

    fn go_on_sending(&self, cx: &IrqCx) {
        if !self.is_ready_wanted.load(Ordering::Relaxed) || self.read(LINE_STATUS) & CAN_SEND == 0 {
            return;
        }
        self.sending.lock();
        self.is_ready_wanted.store(false, Ordering::Relaxed);
        self.set(INTERRUPT_ENABLE, RECEIVED);
        self.sending.unlock();
        let ready = self.ready.load(Ordering::Acquire);
        if !ready.is_null() {
            // SAFETY: only `on_ready` stores there, a `Ready`.
            let ready = unsafe { core::mem::transmute::<*mut (), Ready>(ready) };
            ready(cx);
        }
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

/// The interrupt line of some ports went off: takes what they received, and has those go on that could not send.
pub fn interrupt(line: u8, cx: &IrqCx) {
    for uart in &UARTS {
        if uart.line == line && uart.state.load(Ordering::Acquire) == THERE {
            uart.receive(cx);
            uart.go_on_sending(cx);
        }
    }
}
