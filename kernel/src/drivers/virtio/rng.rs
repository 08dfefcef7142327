//! Random numbers of the host's (virtio-rng, 5.4): they feed [the kernel's generator](crate::drivers::random), and programs read them from `/dev/hwrng`.
//!
//! The device is asked for bytes when somebody wants some, once for each of the two at a time; nothing is asked for in advance but the first seed. What programs read goes to nobody else.
//!
//! Owner: the device lives for ever. Its bytes are whoever's who reads them first. Who waits for some is woken when they come, or when the device is cut off. Only the first device that there is is used.

use alloc::boxed::Box;
use core::ops::Range;

use frame::Cx;
use frame::dma::DmaCoherent;
use frame::mm::{Reader, Writer};
use frame::pci::Interrupt;
use refs::{SpinLock, WaitList, Waker};
use tasks::StaticRef;

use super::pci::{Doorbell, Transport};
use super::queue::{Broken, Queue, Segment};
use super::service::{self, Attached, Bell, Serve};
use crate::drivers::random;
use crate::error::{Errno, Result};
use crate::fs::{Events, File, FileEnd, VfsCaller};
use crate::reclaim::Held;
use crate::sched::Parameters;
use crate::step::{Step, Stop};

/// The type of device, and the number that such devices had before version 1.
const KIND: u16 = 4;
const OLD_NUMBER: u16 = 0x1005;

/// What it is called where Linux names such devices.
pub const NAME: &str = "virtio_rng.0";

/// What bytes are asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Use {
    /// For the kernel's generator.
    Seed,
    /// For whoever reads.
    Read,
}

impl Use {
    /// How many are asked for: a seed is as long as a key.
    const fn bytes(self) -> usize {
        match self {
            Use::Seed => 32,
            Use::Read => 1024,
        }
    }

    /// Where they come to.
    const fn place(self) -> usize {
        match self {
            Use::Seed => 0,
            Use::Read => 1024,
        }
    }
}

struct Source {
    attached: Attached,
    asked: SpinLock<Asked>,
    /// Where the task waits.
    waiters: &'static WaitList,
    readers: WaitList,
    _interrupt: Interrupt,
}

struct Asked {
    queue: Queue<Use>,
    doorbell: Doorbell,
    memory: DmaCoherent,
    is_asked_for_seed: bool,
    is_asked_for_bytes: bool,
    /// What has come for readers and was not read yet: which part of the memory.
    unread: Range<usize>,
}

static SOURCE: StaticRef<Source> = StaticRef::none();

/// Claims the first such device, if there is one, and asks it for a first seed.
pub fn start() {
    let Some(claimed) = Transport::claim(KIND, OLD_NUMBER, 0) else { return };
    let source =
        claimed.and_then(|transport| Source::new(transport).ok_or("it lacks an interrupt or a queue for two requests"));
    match source {
        Ok(source) => {
            SOURCE.set(Some(source));
            random::seed_by(source.waiters);
            service::start(source, Parameters::default());
        }
        Err(why) => crate::log!("the host's random numbers cannot be used: {why}"),
    }
}

/// Whether there is a device.
pub fn is_there() -> bool {
    SOURCE.get().is_some()
}

/// Opens `/dev/hwrng`.
///
/// # Errors
/// ENXIO: there is no device.
pub fn open() -> Result<Box<dyn File>> {
    let source = SOURCE.get().ok_or(Errno::ENXIO)?;
    Ok(Box::new(Numbers(source)))
}

impl Source {
    fn new(transport: Transport) -> Option<&'static Self> {
        let (bell, waiters) = Bell::with_waiters()?;
        let interrupt = bell.interrupt(&transport, 0, 0)?;
        let (queue, doorbell) = transport.queue(0, 1, 0)?;
        if queue.slots() < 2 {
            return None;
        }
        let memory = DmaCoherent::new(transport.domain(), 0)?;
        bell.hear_of_faults(&transport);
        transport.begin();
        let (is_asked_for_seed, is_asked_for_bytes, unread) = (false, false, 0..0);
        let asked = Asked { queue, doorbell, memory, is_asked_for_seed, is_asked_for_bytes, unread };
        Some(Box::leak(Box::new(Source {
            attached: Attached::new(transport, "the host's source of random numbers"),
            asked: SpinLock::new(asked),
            waiters,
            readers: WaitList::new(),
            _interrupt: interrupt,
        })))
    }

    /// Takes in what has come; whether anything has.
    fn take_in(&self, cx: &Cx) -> core::result::Result<bool, Broken> {
        let mut asked = self.asked.lock(cx);
        if self.attached.is_gone() {
            return Ok(false);
        }
        let Some((what, _, written)) = asked.queue.pop()? else { return Ok(asked.queue.ask_to_be_told()) };
        // It says so when it has some.
        let len = written as usize;
        if len == 0 || len > what.bytes() {
            return Err(Broken);
        }
        match what {
            Use::Read => {
                (asked.is_asked_for_bytes, asked.unread) = (false, what.place()..what.place() + len);
                drop(asked);
                self.readers.wake_all();
            }
            Use::Seed => {
                let mut seed = [0; Use::Seed.bytes()];
                // The kernel's own memory does not fault.
                let _ = asked.memory.reader(what.place(), len).read(&mut seed);
                asked.is_asked_for_seed = false;
                drop(asked);
                random::mix(&seed[..len], cx);
            }
        }
        Ok(true)
    }

    /// Reads what has come, and asks for some if nothing has.
    fn read(&self, to: &mut Writer<'_>, cx: &Cx) -> Step<usize> {
        let mut asked = self.asked.lock(cx);
        if self.attached.is_gone() {
            return Err(Errno::ENODEV.into());
        }
        if to.remaining() == 0 {
            return Ok(0);
        }
        if asked.unread.is_empty() {
            asked.ask(Use::Read);
            return Err(Stop::Block);
        }
        let unread = asked.unread.clone();
        let mut from = asked.memory.reader(unread.start, unread.len());
        let outcome = from.copy_to(to);
        let left = from.remaining();
        let count = unread.len() - left;
        asked.unread.start += count;
        match outcome {
            Err(fault) if count == 0 => Err(fault.into()),
            _ => Ok(count),
        }
    }
}

impl Asked {
    /// Asks the device for bytes, if it was not asked for some of that use before.
    fn ask(&mut self, what: Use) {
        let is_asked = match what {
            Use::Seed => &mut self.is_asked_for_seed,
            Use::Read => &mut self.is_asked_for_bytes,
        };
        if core::mem::replace(is_asked, true) {
            return;
        }
        if let Some(address) = self.memory.address(what.place()) {
            // There is a slot for each use, and no use is asked for twice: so it takes this.
            let segment = Segment { address, len: what.bytes() as u32, is_written: true };
            let _ = self.queue.push(&[segment], what);
        }
        if self.queue.must_tell() {
            self.doorbell.ring();
        }
    }
}

impl Serve for &'static Source {
    fn attached(&self) -> &Attached {
        &self.attached
    }

    fn waiters(&self) -> &WaitList {
        self.waiters
    }

    fn work(&self, cx: &Cx) -> core::result::Result<bool, Broken> {
        if random::wants_seed() {
            self.asked.lock(cx).ask(Use::Seed);
        }
        self.take_in(cx)
    }

    fn give_up(&self, cx: &Cx) {
        if self.attached.cut_off() {
            drop(self.asked.lock(cx).queue.take_all());
            self.readers.wake_all();
        }
    }
}

/// `/dev/hwrng`, open.
struct Numbers(&'static Source);

impl File for Numbers {
    fn end(&self) -> FileEnd {
        FileEnd::Seen
    }

    fn class(&self) -> Held {
        Held::File
    }

    fn read(&self, _offset: u64, to: &mut Writer<'_>, _me: &dyn VfsCaller, cx: &Cx) -> Step<usize> {
        self.0.read(to, cx)
    }

    fn write(&self, _offset: u64, _from: &mut Reader<'_>, _me: &dyn VfsCaller, _cx: &Cx) -> Step<usize> {
        Err(Errno::EINVAL.into())
    }

    fn poll(&self, interest: Events, waker: Option<Waker>, cx: &Cx) -> Events {
        if let Some(waker) = waker {
            self.0.readers.register(waker, cx);
        }
        let mut asked = self.0.asked.lock(cx);
        if self.0.attached.is_gone() {
            return Events::ERROR | Events::HANG_UP;
        }
        if asked.unread.is_empty() {
            if interest.contains(Events::IN) {
                asked.ask(Use::Read);
            }
            return Events::empty();
        }
        interest & (Events::IN | Events::READ_NORMAL)
    }
}

#[cfg(test)]
mod tests {
    use super::super::service::serve;
    use super::super::simulated::{Random, Registers};
    use super::*;
    use frame::mm::{PAGE_SIZE, UFrame};
    use std::vec::Vec;

    fn plug() -> (&'static Registers, &'static Source) {
        let registers = Registers::plug(OLD_NUMBER, 0, &[8], &[]);
        (registers, Transport::claim(KIND, OLD_NUMBER, 0).unwrap().map(Source::new).unwrap().unwrap())
    }

    fn read(source: &Source, most: usize, cx: &Cx) -> core::result::Result<Vec<u8>, Stop> {
        let frame = UFrame::zeroed().unwrap();
        let count = source.read(&mut frame.writer(0..most), cx)?;
        let mut bytes = std::vec![0; count];
        frame.reader(0..count).read(&mut bytes).unwrap();
        Ok(bytes)
    }

    fn in_kernel(test: impl FnOnce(&Cx)) {
        let _machine = crate::block::test_memory();
        frame::with_context(|cx| test(cx));
    }

    #[test]
    fn a_device_is_asked_when_somebody_wants_bytes_and_each_is_read_once() {
        in_kernel(|cx| {
            let (registers, source) = plug();
            random::wants_seed();
            let mut ring = registers.ring(0);
            assert!(!serve(&source, cx) && ring.take().is_none(), "nobody wants any");
            assert_eq!(read(source, 5, cx), Err(Stop::Block));
            assert_eq!(read(source, 5, cx), Err(Stop::Block));
            ring.look();
            assert_eq!(ring.heads.len(), 1, "it is asked once");
            assert!(ring.answer(b"random numbers", 14) && serve(&source, cx));
            assert_eq!(read(source, 6, cx).unwrap(), b"random");
            assert_eq!(read(source, 100, cx).unwrap(), b" numbers");
            assert_eq!(read(source, 100, cx), Err(Stop::Block));
            // A seed goes to nobody else.
            source.asked.lock(cx).ask(Use::Seed);
            assert!(ring.answer(b"again", 5) && ring.answer(&[7; 32], 32));
            while serve(&source, cx) {}
            assert_eq!(read(source, 100, cx).unwrap(), b"again");
            assert_eq!(read(source, 100, cx), Err(Stop::Block));
            assert!(!registers.has_failed());
        });
    }

    #[test]
    fn a_device_that_lies_is_cut_off_and_readers_are_told() {
        in_kernel(|cx| {
            for len in [0, 1025, 4096, u32::MAX] {
                let (registers, source) = plug();
                assert_eq!(read(source, 5, cx), Err(Stop::Block));
                assert!(registers.ring(0).answer(b"x", len));
                serve(&source, cx);
                assert!(registers.has_failed());
                assert_eq!(read(source, 5, cx), Err(Errno::ENODEV.into()));
            }
            for seed in 0..200 {
                let (registers, source) = plug();
                let mut ring = registers.ring(0);
                let mut random = Random(seed);
                for _ in 0..50 {
                    match random.next(4) {
                        0 => _ = read(source, PAGE_SIZE, cx),
                        1 => source.asked.lock(cx).ask(Use::Seed),
                        2 => _ = ring.answer(&[1; 20], 20),
                        _ => _ = serve(&source, cx),
                    }
                    if random.next(20) == 0 {
                        ring.misbehave(&mut random);
                    }
                }
                assert_eq!(source.attached.is_gone(), registers.has_failed());
            }
            let registers = Registers::plug(OLD_NUMBER, 0, &[1], &[]);
            let transport = Transport::claim(KIND, OLD_NUMBER, 0).unwrap().unwrap();
            assert!(Source::new(transport).is_none(), "its queue is too short");
            assert!(!registers.has_failed());
        });
    }
}
