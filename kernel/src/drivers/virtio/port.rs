//! [`Port`]: one of the streams of a [console device](super::console) (5.3).
//!
//! Reads and writes are steps on its [`Rings`], with no task between a program and the device: the interrupt's handler wakes who waits. What the two sides say of the port itself (the device has it, it is open, its name)
//! goes through the device's control queue, which has a task; here is what was said.
//!
//! Owner: the device, for ever, however often it is unplugged. Opened by one description at a time, whose end tells the host and forgets what nobody has read; that takes a look at each buffer. The buffers stay the
//! device's once it has them; whoever has the port open is [charged](Charge) for them.

use alloc::boxed::Box;

use frame::Cx;
use frame::dma::Domain;
use frame::mm::{Reader, Writer};
use refs::{SpinLock, WaitList, Waker};

use super::pci::Doorbell;
use super::queue::Broken;
use super::rings::{FRAMES, Failure, RECEIVE_PIECES, Rings, SEND_BUFFERS};
use crate::error::{Errno, Result};
use crate::fs::Events;
use crate::memory::account::Charge;
use crate::step::{Step, Stop};

/// A stream of bytes each way between programs and the host.
pub struct Port {
    state: SpinLock<State>,
    receive_bell: Doorbell,
    send_bell: Doorbell,
    readable: WaitList,
    writable: WaitList,
}

struct State {
    rings: Rings,
    /// The device has it.
    is_plugged: bool,
    /// The device has said something of it besides.
    is_announced: bool,
    /// It is a console: nobody opens it.
    is_console: bool,
    /// A program has it open, which is charged for the buffers.
    opened: Option<Charge>,
    /// The device has taken it away since then: it is another one's, if it comes back.
    is_lost: bool,
    /// Somebody reads and writes at the host's end.
    has_host: bool,
    /// The device breaks the rules.
    is_broken: bool,
    name: Box<[u8]>,
    /// What the device must be told: that the port is ready; whether it is open.
    owes_ready: bool,
    told_open: bool,
}

/// What the device says of a port.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Said<'a> {
    /// It has it.
    Plugged,
    /// It has it no longer.
    Unplugged,
    /// It is a console.
    Console,
    /// Whether the host's end is open.
    Host(bool),
    /// What it is called.
    Name(&'a [u8]),
}

/// What the device is to be told of a port.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Tell {
    /// It can be used.
    Ready,
    /// Whether a program has it open.
    Open(bool),
}

impl State {
    /// # Errors
    /// ENODEV: the device is gone, or was since the port was opened.
    fn check(&self) -> Result<()> {
        if self.is_broken || !self.is_plugged || self.is_lost { Err(Errno::ENODEV) } else { Ok(()) }
    }

    /// Whether a program has it open, as the device is to know.
    fn is_open(&self) -> bool {
        self.opened.is_some() && !self.is_lost
    }
}

impl Port {
    /// A port that the device has not spoken of yet.
    pub fn new(rings: Rings, receive_bell: Doorbell, send_bell: Doorbell) -> Self {
        Port {
            state: SpinLock::new(State {
                rings,
                is_plugged: false,
                is_announced: false,
                is_console: false,
                opened: None,
                is_lost: false,
                has_host: false,
                is_broken: false,
                name: Box::default(),
                owes_ready: false,
                told_open: false,
            }),
            receive_bell,
            send_bell,
            readable: WaitList::new(),
            writable: WaitList::new(),
        }
    }

    /// Something has happened at the device.
    pub fn wake_all(&self) {
        self.readable.wake_all();
        self.writable.wake_all();
    }

    /// Takes in what the device says of it.
    pub fn hear(&self, said: Said<'_>, cx: &Cx) {
        let mut state = self.state.lock(cx);
        state.is_announced |= said != Said::Plugged;
        match said {
            Said::Plugged => (state.is_plugged, state.owes_ready) = (true, true),
            Said::Unplugged => {
                // What comes with that number next is another one.
                (state.is_plugged, state.is_announced, state.is_console) = (false, false, false);
                (state.has_host, state.told_open, state.name) = (false, false, Box::default());
                state.is_lost = state.opened.is_some();
            }
            Said::Console => state.is_console = true,
            Said::Host(is_there) => state.has_host = is_there,
            Said::Name(name) => state.name = name.into(),
        }
        drop(state);
        self.wake_all();
    }

    /// What the device must be told next, which is noted as said.
    pub fn tell(&self, cx: &Cx) -> Option<Tell> {
        let mut state = self.state.lock(cx);
        if !state.is_plugged {
            None
        } else if core::mem::take(&mut state.owes_ready) {
            Some(Tell::Ready)
        } else if state.told_open != state.is_open() {
            state.told_open = state.is_open();
            Some(Tell::Open(state.told_open))
        } else {
            None
        }
    }

    /// Whether the device was found to break the rules where nobody could be told.
    pub fn is_broken(&self, cx: &Cx) -> bool {
        self.state.lock(cx).is_broken
    }

    /// The device is cut off: from now on nothing goes through it.
    pub fn give_up(&self, cx: &Cx) {
        let mut state = self.state.lock(cx);
        state.is_broken = true;
        state.rings.abandon();
        drop(state);
        self.wake_all();
    }

    /// Whether the device has it.
    pub fn is_plugged(&self, cx: &Cx) -> bool {
        self.state.lock(cx).is_plugged
    }

    /// Whether the device has said more of it than that it has it.
    pub fn is_announced(&self, cx: &Cx) -> bool {
        self.state.lock(cx).is_announced
    }

    /// What the host calls it; may be empty.
    pub fn name(&self, cx: &Cx) -> Box<[u8]> {
        self.state.lock(cx).name.clone()
    }

    /// Begins to use it, for whom the core works for. The device must be [told](Self::tell).
    ///
    /// # Errors
    /// ENXIO: it is a console. ENODEV: the device does not have it. EBUSY: it is open. ENOMEM, also where the caller's group may not have so much.
    pub fn open(&self, domain: &'static Domain, cx: &Cx) -> Result<()> {
        let mut state = self.state.lock(cx);
        if state.opened.is_some() && state.is_plugged {
            return Err(Errno::EBUSY);
        }
        state.check()?;
        if state.is_console {
            return Err(Errno::ENXIO);
        }
        let charge = Charge::new(FRAMES)?;
        if !state.rings.begin(domain) {
            return Err(Errno::ENOMEM);
        }
        state.opened = Some(charge);
        if state.rings.must_tell_receiver() {
            self.receive_bell.ring();
        }
        Ok(())
    }

    /// Ends the use of it. The device must be [told](Self::tell).
    pub fn close(&self) {
        self.state.with(|state| {
            (state.opened, state.is_lost) = (None, false);
            if state.is_broken {
                return;
            }
            state.is_broken = state.rings.forget_received().is_err();
            if !state.is_broken && state.rings.must_tell_receiver() {
                self.receive_bell.ring();
            }
        });
    }

    /// Reads what has come, a piece after the other: 0 if the host is away and all was read. `Err` inside says that the device breaks the rules.
    ///
    /// # Errors
    /// `Block`. ENODEV: the device is gone.
    pub fn read(&self, to: &mut Writer<'_>, cx: &Cx) -> core::result::Result<Step<usize>, Broken> {
        in_pieces(RECEIVE_PIECES, || if to.remaining() == 0 { Ok(Ok(0)) } else { self.read_piece(to, cx) })
    }

    fn read_piece(&self, to: &mut Writer<'_>, cx: &Cx) -> core::result::Result<Step<usize>, Broken> {
        let mut state = self.state.lock(cx);
        if let Err(error) = state.check() {
            return Ok(Err(error.into()));
        }
        let outcome = state.rings.read(to);
        if state.rings.must_tell_receiver() {
            self.receive_bell.ring();
        }
        match outcome {
            Ok(0) if state.has_host => Ok(Err(Stop::Block)),
            Ok(count) => Ok(Ok(count)),
            Err(Failure::Fault(fault)) => Ok(Err(fault.into())),
            Err(Failure::Broken) => Err(Broken),
        }
    }

    /// Writes as much as there is room for, a piece after the other. `Err` inside says that the device breaks the rules.
    ///
    /// # Errors
    /// `Block`, also while the host is away. ENODEV: the device is gone.
    pub fn write(&self, from: &mut Reader<'_>, cx: &Cx) -> core::result::Result<Step<usize>, Broken> {
        // The host takes pieces out while others are put in.
        let outcome = in_pieces(SEND_BUFFERS, || self.write_piece(from, cx));
        if self.state.lock(cx).rings.must_tell_sender() {
            self.send_bell.ring();
        }
        outcome
    }

    fn write_piece(&self, from: &mut Reader<'_>, cx: &Cx) -> core::result::Result<Step<usize>, Broken> {
        let mut state = self.state.lock(cx);
        if let Err(error) = state.check() {
            return Ok(Err(error.into()));
        }
        if from.remaining() == 0 {
            return Ok(Ok(0));
        }
        if !state.has_host {
            return Ok(Err(Stop::Block));
        }
        match state.rings.write(from) {
            Ok(0) => Ok(Err(Stop::Block)),
            Ok(count) => Ok(Ok(count)),
            Err(Failure::Fault(fault)) => Ok(Err(fault.into())),
            Err(Failure::Broken) => Err(Broken),
        }
    }

    /// Whether the host has what was written, or never will.
    pub fn has_sent(&self, cx: &Cx) -> bool {
        let mut state = self.state.lock(cx);
        state.check().is_err() || !state.has_host || state.rings.has_sent().unwrap_or(true)
    }

    /// poll(2), as Linux has it: the end of the host's side is HANG_UP, and can be read.
    pub fn poll(&self, interest: Events, waker: Option<Waker>, cx: &Cx) -> Events {
        if let Some(waker) = waker {
            // Hang-ups wake these as well.
            self.readable.register(waker, cx);
            if interest.contains(Events::OUT) {
                self.writable.register(waker, cx);
            }
        }
        let mut state = self.state.lock(cx);
        if state.check().is_err() {
            return Events::ERROR | Events::HANG_UP;
        }
        let mut events = Events::empty();
        if !state.has_host {
            events |= Events::HANG_UP | Events::IN | Events::READ_NORMAL;
        } else if interest.contains(Events::OUT) && state.rings.can_write() {
            events |= Events::OUT | Events::WRITE_NORMAL;
        }
        if interest.contains(Events::IN) && state.rings.can_read() {
            events |= Events::IN | Events::READ_NORMAL;
        }
        events & (interest | Events::ERROR | Events::HANG_UP)
    }
}

/// Does pieces of a read or write, so many at most, until one does nothing; how many bytes they are. What stops a later one is left for the next call.
fn in_pieces(
    most: usize,
    mut piece: impl FnMut() -> core::result::Result<Step<usize>, Broken>,
) -> core::result::Result<Step<usize>, Broken> {
    let mut count = 0;
    for _ in 0..most {
        match piece()? {
            Ok(0) => break,
            Ok(bytes) => count += bytes,
            Err(stop) if count == 0 => return Ok(Err(stop)),
            Err(_) => break,
        }
    }
    Ok(Ok(count))
}
