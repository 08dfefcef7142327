//! Serial ports (16550).

use crate::irq::IrqCx;

/// A serial port that is there.
pub struct Port {
    _private: (),
}

/// The port of that number (0 is COM1, the console), if the machine has it.
pub fn port(_number: usize) -> Option<&'static Port> {
    None
}

impl Port {
    /// Sends bytes; waits (busily) while the device's buffer is full.
    pub fn write(&self, _bytes: &[u8]) {}

    /// From now on each batch of received bytes goes to `handler`.
    pub fn on_input(&self, _handler: fn(&IrqCx, &[u8])) {}
}

/// Writes to the console, for messages of the kernel itself.
pub fn print(_text: core::fmt::Arguments<'_>) {}

/// `println!` to the console.
#[macro_export]
macro_rules! println {
    ($($part:tt)*) => { $crate::serial::print(format_args!("{}\n", format_args!($($part)*))) };
}
