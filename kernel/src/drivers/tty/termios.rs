//! The settings of a terminal: termios(3), as they cross the boundary to user programs.

use linux_raw_sys::general as abi;
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout};

/// What `TCGETS2` and `TCSETS2` exchange; the first 36 bytes are what `TCGETS` and `TCSETS` exchange.
#[derive(Clone, Copy, Debug, PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
pub struct Termios {
    /// Input modes.
    pub input: u32,
    /// Output modes.
    pub output: u32,
    /// Control modes: kept for programs that ask, without effect.
    pub control: u32,
    /// Local modes.
    pub local: u32,
    /// The line discipline: always 0 (N_TTY).
    pub line: u8,
    /// Special characters, by the constants `VINTR`, ...
    pub characters: [u8; 19],
    /// Without effect, as is `output_speed`.
    pub input_speed: u32,
    /// Bits per second.
    pub output_speed: u32,
}

/// The part of [`Termios`] that `TCGETS` and `TCSETS` exchange.
pub const SHORT_SIZE: usize = 36;

/// `struct termio`, which `TCGETA` and `TCSETA` exchange: the lower halves of the modes, and the first characters.
#[derive(Clone, Copy, Debug, PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
pub struct OldTermios {
    modes: [u16; 4],
    line: u8,
    characters: [u8; 8],
    padding: u8,
}

impl OldTermios {
    /// What it can say of the settings.
    pub fn of(termios: &Termios) -> Self {
        let mut characters = [0; 8];
        characters.copy_from_slice(&termios.characters[..8]);
        let modes = [termios.input, termios.output, termios.control, termios.local].map(|mode| mode as u16);
        OldTermios { modes, line: termios.line, characters, padding: 0 }
    }

    /// The settings with what it says changed.
    pub fn applied_to(&self, mut termios: Termios) -> Termios {
        let modes = [&mut termios.input, &mut termios.output, &mut termios.control, &mut termios.local];
        for (mode, low) in modes.into_iter().zip(self.modes) {
            *mode = *mode & 0xffff_0000 | u32::from(low);
        }
        termios.line = self.line;
        termios.characters[..8].copy_from_slice(&self.characters);
        termios
    }
}

/// The size of a terminal in characters and in pixels.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
#[allow(missing_docs)]
pub struct WindowSize {
    pub rows: u16,
    pub columns: u16,
    pub width: u16,
    pub height: u16,
}

impl Default for Termios {
    /// What a terminal starts with.
    fn default() -> Self {
        let mut characters = [0; 19];
        for (index, value) in [
            (abi::VINTR, 3),
            (abi::VQUIT, 28),
            (abi::VERASE, 127),
            (abi::VKILL, 21),
            (abi::VEOF, 4),
            (abi::VMIN, 1),
            (abi::VSTART, 17),
            (abi::VSTOP, 19),
            (abi::VSUSP, 26),
            (abi::VREPRINT, 18),
            (abi::VDISCARD, 15),
            (abi::VWERASE, 23),
            (abi::VLNEXT, 22),
        ] {
            characters[index as usize] = value;
        }
        Termios {
            input: abi::ICRNL | abi::IXON,
            output: abi::OPOST | abi::ONLCR,
            control: abi::B38400 | abi::CS8 | abi::CREAD | abi::HUPCL,
            local: abi::ISIG
                | abi::ICANON
                | abi::ECHO
                | abi::ECHOE
                | abi::ECHOK
                | abi::ECHOCTL
                | abi::ECHOKE
                | abi::IEXTEN,
            line: 0,
            characters,
            input_speed: 38400,
            output_speed: 38400,
        }
    }
}

impl Termios {
    /// Whether all of these input modes are on.
    #[inline(always)]
    pub fn has_input(&self, modes: u32) -> bool {
        self.input & modes == modes
    }

    /// Whether all of these output modes are on.
    #[inline(always)]
    pub fn has_output(&self, modes: u32) -> bool {
        self.output & modes == modes
    }

    /// Whether all of these local modes are on.
    #[inline(always)]
    pub fn has_local(&self, modes: u32) -> bool {
        self.local & modes == modes
    }

    /// The special character of that index (`VINTR`, ...).
    pub fn character(&self, index: u32) -> u8 {
        self.characters[index as usize]
    }

    /// Whether `byte` is the special character of that index; a special character of 0 is switched off.
    pub fn is(&self, byte: u8, index: u32) -> bool {
        byte != 0 && self.character(index) == byte
    }
}
