//! Serial ports (16550).

use core::fmt::Write;

use crate::arch::machine::uart::{self, Uart};
use crate::irq::IrqCx;

/// A serial port that is there.
#[repr(transparent)]
pub struct Port {
    uart: Uart,
}

/// The port of that number (0 is COM1, the console), if the machine has it.
pub fn port(number: usize) -> Option<&'static Port> {
    let uart: &'static Uart = uart::uart(number)?;
    // SAFETY: a `Port` is nothing but a `Uart` (`repr(transparent)`).
    Some(unsafe { &*core::ptr::from_ref(uart).cast::<Port>() })
}

impl Port {
    /// Sends bytes; waits (busily) while the device's buffer is full, but not for ever.
    pub fn write(&self, bytes: &[u8]) {
        self.uart.write(bytes);
    }

    /// Sends what goes without waiting; how much. Where that is not all, the handler of [`on_ready`](Self::on_ready) is called when
    /// more goes.
    pub fn try_write(&self, bytes: &[u8]) -> usize {
        self.uart.try_write(bytes)
    }

    /// From now on `handler` is called when bytes can be sent that [`try_write`](Self::try_write) could not send.
    pub fn on_ready(&self, handler: fn(&IrqCx)) {
        self.uart.on_ready(handler);
    }

    /// Has the port receive what it sends, or not.
    #[cfg(feature = "selftest")]
    pub(crate) fn set_loopback(&self, on: bool) {
        self.uart.set_loopback(on);
    }

    /// From now on each batch of received bytes goes to `handler`.
    pub fn on_input(&self, handler: fn(&IrqCx, &[u8])) {
        self.uart.on_input(handler);
    }
}

/// Writes to the console, for messages of the kernel itself. Waits for the line; but not for ever: a message is cut short whose reader
/// has gone.
pub fn print(text: core::fmt::Arguments<'_>) {
    struct Console(&'static Port);
    impl Write for Console {
        fn write_str(&mut self, text: &str) -> core::fmt::Result {
            for line in text.split_inclusive('\n') {
                match line.strip_suffix('\n') {
                    Some(line) => {
                        self.0.uart.write(line.as_bytes());
                        self.0.uart.write(b"\r\n");
                    }
                    None => self.0.uart.write(line.as_bytes()),
                }
            }
            Ok(())
        }
    }
    if let Some(port) = port(0) {
        // The console never fails; a `Display` that does cuts its own text short.
        let _ = Console(port).write_fmt(text);
    }
}

/// `println!` to the console.
#[macro_export]
macro_rules! println {
    ($($part:tt)*) => { $crate::serial::print(format_args!("{}\n", format_args!($($part)*))) };
}
