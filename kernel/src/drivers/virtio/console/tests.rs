//! A device with ports that keeps to the rules, one that says nonsense, and one that breaks everything that can be broken.

use std::string::String;
use std::vec::Vec;

use frame::Cx;
use frame::mm::{PAGE_SIZE, UFrame};

use super::super::service::serve;
use super::super::simulated::{Random, Registers, RingOfDevice};
use super::*;
use crate::error::Errno;
use crate::fs::Events;
use crate::step::Stop;

const NUMBER: u16 = 0x1043;
const INDIRECT: u64 = 1 << 28;
const EVENT_INDEX: u64 = 1 << 29;

/// A device with so many ports.
fn plug(ports: u32, features: u64, queue_sizes: &[u16]) -> &'static Registers {
    let mut config = [0; 12];
    config[4..8].copy_from_slice(&ports.to_le_bytes());
    Registers::plug(NUMBER, features, queue_sizes, &config)
}

fn start() -> core::result::Result<&'static Console, &'static str> {
    Transport::claim(KIND, OLD_NUMBER, MULTI_PORT).expect("it is plugged in").and_then(Console::start)
}

/// A device, with its sides of the queues.
struct Host {
    registers: &'static Registers,
    console: &'static Console,
    heard: RingOfDevice,
    said: RingOfDevice,
}

impl Host {
    fn new(ports: u32, features: u64) -> Self {
        let registers = plug(ports, features, &[64; 34]);
        let console = start().expect("it keeps to the rules");
        Host { registers, console, heard: registers.ring(2), said: registers.ring(3) }
    }

    /// Says something of a port.
    fn say(&mut self, port: u32, event: u16, value: u16, name: &[u8]) {
        let mut message = Vec::new();
        message.extend_from_slice(&port.to_le_bytes());
        message.extend_from_slice(&event.to_le_bytes());
        message.extend_from_slice(&value.to_le_bytes());
        message.extend_from_slice(name);
        assert!(self.heard.answer(&message, message.len() as u32), "the driver gives buffers");
    }

    /// What the driver says: port, event, value.
    fn hear(&mut self) -> Vec<(u32, u16, u16)> {
        let mut all = Vec::new();
        while let Some((head, message)) = self.said.take() {
            self.said.put(head.into(), 0);
            let number = |at: usize| u16::from_le_bytes([message[at], message[at + 1]]);
            all.push((u32::from(number(0)) | u32::from(number(2)) << 16, number(4), number(6)));
        }
        all
    }

    /// The driver's task runs until there is nothing left to do.
    fn settle(&self, cx: &Cx) {
        let mut turns = 0;
        while serve(&self.console, cx) {
            turns += 1;
            assert!(turns < 100, "it never ends");
        }
    }
}

fn open(console: &'static Console, number: usize, cx: &Cx) -> crate::error::Result<()> {
    console.port(number).ok_or(Errno::ENXIO)?.open(console.domain(), cx)
}

/// What a read of a page says, and what was read.
fn read(console: &Console, number: usize, cx: &Cx) -> core::result::Result<Vec<u8>, Stop> {
    let frame = UFrame::zeroed().unwrap();
    let port = console.port(number).unwrap();
    let count = port.read(&mut frame.writer(0..PAGE_SIZE), cx).unwrap_or_else(|Broken| {
        console.give_up(cx);
        Err(Errno::ENODEV.into())
    })?;
    let mut bytes = std::vec![0; count];
    frame.reader(0..count).read(&mut bytes).unwrap();
    Ok(bytes)
}

fn write(console: &Console, number: usize, bytes: &[u8], cx: &Cx) -> core::result::Result<usize, Stop> {
    let frame = UFrame::zeroed().unwrap();
    frame.writer(0..PAGE_SIZE).write(bytes).unwrap();
    let port = console.port(number).unwrap();
    port.write(&mut frame.reader(0..bytes.len()), cx).unwrap_or_else(|Broken| {
        console.give_up(cx);
        Err(Errno::ENODEV.into())
    })
}

fn is_error<T>(outcome: core::result::Result<T, Stop>, errno: Errno) -> bool {
    matches!(outcome, Err(Stop::Error(found)) if found == errno)
}

fn in_kernel(test: impl FnOnce(&Cx)) {
    let _machine = crate::block::test_memory();
    frame::with_context(|cx| test(cx));
}

#[test]
fn bytes_go_both_ways_through_a_port_that_is_open() {
    in_kernel(|cx| {
        for features in [MULTI_PORT, MULTI_PORT | INDIRECT | EVENT_INDEX] {
            let mut host = Host::new(2, features);
            assert_eq!(host.hear(), [(0, DEVICE_READY, 1)]);
            host.say(1, PORT_ADD, 1, b"");
            host.say(1, PORT_NAME, 1, b"line\0rest");
            host.settle(cx);
            assert_eq!(host.hear(), [(1, PORT_READY, 1)]);
            let console = host.console;
            assert_eq!(&*console.port(1).unwrap().name(cx), b"line");
            assert_eq!(open(console, 0, cx), Err(Errno::ENODEV), "the device has not spoken of it");
            open(console, 1, cx).unwrap();
            assert_eq!(open(console, 1, cx), Err(Errno::EBUSY));
            host.settle(cx);
            assert_eq!(host.hear(), [(1, PORT_OPEN, 1)]);
            assert!(matches!(write(console, 1, b"early", cx), Err(Stop::Block)), "the host is away");
            host.say(1, PORT_OPEN, 1, b"");
            host.settle(cx);
            assert!(matches!(read(console, 1, cx), Err(Stop::Block)));
            let mut receive = host.registers.ring(4);
            let mut send = host.registers.ring(5);
            assert!(receive.answer(b"hello", 5) && receive.answer(b" again", 6));
            assert_eq!(read(console, 1, cx).unwrap(), b"hello again");
            assert_eq!(write(console, 1, b"answer", cx).unwrap(), 6);
            let (head, bytes) = send.take().unwrap();
            assert_eq!(bytes, b"answer");
            send.put(head.into(), 0);
            assert!(console.port(1).unwrap().has_sent(cx));
            console.port(1).unwrap().close();
            host.settle(cx);
            assert_eq!(host.hear(), [(1, PORT_OPEN, 0)]);
            assert!(!host.registers.has_failed());
        }
    });
}

#[test]
fn a_device_that_takes_nothing_gets_no_more_than_there_are_buffers() {
    in_kernel(|cx| {
        let mut host = Host::new(2, MULTI_PORT);
        host.say(1, PORT_ADD, 1, b"");
        host.say(1, PORT_OPEN, 1, b"");
        host.settle(cx);
        open(host.console, 1, cx).unwrap();
        let page = [7; PAGE_SIZE];
        let written = (0..100).map_while(|_| write(host.console, 1, &page, cx).ok()).count();
        assert!((1..=8).contains(&written), "{written}");
        assert!(matches!(write(host.console, 1, &page, cx), Err(Stop::Block)));
        let mut send = host.registers.ring(5);
        let (head, _) = send.take().unwrap();
        send.put(head.into(), 0);
        assert_eq!(write(host.console, 1, &page, cx).unwrap(), PAGE_SIZE);
    });
}

#[test]
fn nonsense_about_ports_is_left_out() {
    in_kernel(|cx| {
        let mut host = Host::new(2, MULTI_PORT);
        // Twice, beyond the last one, of no port that is there, of no kind that there is, too short.
        for port in [1, 1, 2, 16, 0x7fff_ffff, u32::MAX] {
            for event in [PORT_ADD, PORT_ADD, PORT_NAME, 5, 99, u16::MAX] {
                host.say(port, event, 1, b"");
                host.settle(cx);
            }
        }
        for len in 0..8 {
            assert!(host.heard.answer(&[0xff; 8], len));
            host.settle(cx);
        }
        let port = host.console.port(1).unwrap();
        assert!(port.is_plugged(cx) && !host.console.port(0).unwrap().is_plugged(cx));
        assert!(host.console.port(2).is_none(), "it said that there are two");
        // A name as long as a buffer; one that was cut, whose length is told all the same; one that is nothing but its end; none.
        let long = [b'n'; HEARD_BYTES];
        host.say(1, PORT_NAME, 1, &long[MESSAGE_BYTES..]);
        host.settle(cx);
        assert_eq!(port.name(cx).len(), HEARD_BYTES - MESSAGE_BYTES);
        let mut message = std::vec![1, 0, 0, 0, PORT_NAME as u8, 0, 1, 0];
        message.resize(0x1_0000, b'x');
        assert!(host.heard.answer(&message, 0x1_0000));
        host.settle(cx);
        assert_eq!(port.name(cx).len(), HEARD_BYTES - MESSAGE_BYTES);
        host.say(1, PORT_NAME, 1, b"\0\0\0");
        host.settle(cx);
        assert!(port.name(cx).is_empty());
        host.say(1, PORT_NAME, 1, b"");
        host.settle(cx);
        open(host.console, 1, cx).unwrap();
        assert!(!host.registers.has_failed(), "it is odd, but breaks no rule");
    });
}

#[test]
fn a_port_that_is_taken_away_while_it_is_open_is_gone_for_who_has_it_open() {
    in_kernel(|cx| {
        let mut host = Host::new(2, MULTI_PORT);
        host.say(1, PORT_ADD, 1, b"");
        host.say(1, PORT_OPEN, 1, b"");
        host.settle(cx);
        host.hear();
        open(host.console, 1, cx).unwrap();
        host.settle(cx);
        host.hear();
        host.say(1, PORT_REMOVE, 1, b"");
        host.settle(cx);
        assert!(is_error(read(host.console, 1, cx), Errno::ENODEV));
        // It is there again, perhaps as another one's.
        host.say(1, PORT_ADD, 1, b"");
        host.say(1, PORT_OPEN, 1, b"");
        host.settle(cx);
        assert_eq!(host.hear(), [(1, PORT_READY, 1)], "nobody has opened this one");
        let port = host.console.port(1).unwrap();
        assert!(is_error(read(host.console, 1, cx), Errno::ENODEV));
        assert!(is_error(write(host.console, 1, b"secret", cx), Errno::ENODEV));
        assert_eq!(port.poll(Events::IN, None, cx), Events::ERROR | Events::HANG_UP);
        assert_eq!(open(host.console, 1, cx), Err(Errno::EBUSY));
        port.close();
        open(host.console, 1, cx).unwrap();
        assert!(matches!(read(host.console, 1, cx), Err(Stop::Block)));
        host.settle(cx);
        assert_eq!(host.hear(), [(1, PORT_OPEN, 1)]);
    });
}

#[test]
fn what_a_device_says_wrongly_of_a_buffer_cuts_it_off() {
    in_kernel(|cx| {
        // More than the buffer has; nothing; a buffer that is not there; more buffers than it was given.
        let lies: [fn(&mut RingOfDevice); 5] = [
            |ring| _ = ring.answer(b"x", 4097),
            |ring| _ = ring.answer(b"", 0),
            |ring| ring.put(64, 1),
            |ring| ring.put(u32::MAX, 1),
            |ring| ring.say_used(1000),
        ];
        for lie in lies {
            let mut host = Host::new(2, MULTI_PORT);
            host.say(1, PORT_ADD, 1, b"");
            host.say(1, PORT_OPEN, 1, b"");
            host.settle(cx);
            open(host.console, 1, cx).unwrap();
            lie(&mut host.registers.ring(4));
            let outcomes = [read(host.console, 1, cx), read(host.console, 1, cx)];
            assert!(outcomes.into_iter().any(|outcome| is_error(outcome, Errno::ENODEV)));
            assert!(host.registers.has_failed() && host.console.attached.is_gone());
            assert!(is_error(write(host.console, 1, b"x", cx), Errno::ENODEV));
            host.console.port(1).unwrap().close();
            assert_eq!(open(host.console, 1, cx), Err(Errno::ENODEV));
        }
    });
}

#[test]
fn a_lie_that_is_found_when_a_port_is_closed_cuts_the_device_off_too() {
    in_kernel(|cx| {
        let mut host = Host::new(2, MULTI_PORT);
        host.say(1, PORT_ADD, 1, b"");
        host.settle(cx);
        open(host.console, 1, cx).unwrap();
        host.registers.ring(4).put(9999, 1);
        host.console.port(1).unwrap().close();
        host.settle(cx);
        assert!(host.registers.has_failed());
    });
}

#[test]
fn a_device_that_cannot_be_used_is_left_out_with_a_reason() {
    in_kernel(|_| {
        let refused = |ports, features, queues: &[u16]| {
            let registers = plug(ports, features, queues);
            start().is_err() && registers.has_failed()
        };
        assert!(refused(2, 0, &[64; 6]), "it has no ports");
        let is_left_out = |queues: &[u16]| {
            plug(2, MULTI_PORT, queues);
            start().is_err()
        };
        assert!(is_left_out(&[]) && is_left_out(&[64; 3]), "it lacks queues");
        assert!(is_left_out(&[64, 64, 0, 64, 64, 64]), "a queue of no entries");
        assert!(!is_left_out(&[1; 6]), "queues of one entry are slow, but will do");
        // More ports than there are, or can be: so many as can be are used, and their queues must be there.
        assert!(is_left_out(&[64; 5]));
        plug(u32::MAX, MULTI_PORT, &[64; 34]);
        assert_eq!(start().unwrap().most_ports(), MOST_PORTS);
        plug(0, MULTI_PORT, &[64; 34]);
        assert_eq!(start().unwrap().most_ports(), 0);
        // Its configuration is never the same: it is believed in the end.
        plug(3, MULTI_PORT, &[64; 34]).make_restless();
        assert_eq!(start().unwrap().most_ports(), 3);
    });
}

#[test]
fn whatever_a_device_does_the_kernel_goes_on() {
    in_kernel(|cx| {
        let (mut cut_off, mut went_on) = (0, 0);
        let mut kinds = std::collections::BTreeSet::<String>::new();
        for seed in 0..100 {
            let mut random = Random(seed);
            let features = MULTI_PORT | random.of(&[0, INDIRECT, EVENT_INDEX, INDIRECT | EVENT_INDEX]);
            let sizes: Vec<u16> = (0..34).map(|_| random.of(&[4, 16, 64, 100, 256, 1024])).collect();
            // Some hardly ever lie.
            let lies = random.of(&[4, 40, 4000]);
            let registers = plug(random.of(&[1, 2, 5, 16]), features, &sizes);
            let console = start().expect("it has all that it needs");
            let numbers = (0..34).filter(|&queue| queue < 2 * console.most_ports() + 2);
            let mut rings: Vec<RingOfDevice> = numbers.map(|number| registers.ring(number)).collect();
            for _ in 0..300 {
                let port = random.next(console.most_ports() as u64) as usize;
                let queue = if port == 0 { 0 } else { 2 + 2 * port };
                match random.next(10) {
                    0 => _ = open(console, port, cx),
                    1 => console.port(port).unwrap().close(),
                    2 | 3 => {
                        if let Err(stop) = read(console, port, cx) {
                            kinds.insert(std::format!("{stop:?}"));
                        }
                    }
                    4 | 5 => _ = write(console, port, &[1; 100], cx),
                    6 => _ = console.port(port).unwrap().poll(Events::IN | Events::OUT, None, cx),
                    7 => {
                        let mut message = [0; 20];
                        message.fill_with(|| random.next(256) as u8);
                        message[0] = random.of(&[0, 1, 2, 15, 16, 255]);
                        message[1..4].fill(random.of(&[0, 0, 0, 255]));
                        message[4..6].copy_from_slice(&(random.next(9) as u16).to_le_bytes());
                        rings[2].answer(&message, random.of(&[0, 7, 8, 9, 20, 128, 129, u32::MAX]));
                    }
                    8 => {
                        let ring = &mut rings[queue];
                        let len = random.next(4096) as u32 + 1;
                        ring.answer(&[2; 4096][..len as usize], len);
                    }
                    _ => {
                        let ring = &mut rings[queue + 1];
                        if let Some((head, _)) = ring.take() {
                            ring.put(head.into(), 0);
                        }
                    }
                }
                if random.next(lies) == 0 {
                    let count = rings.len() as u64;
                    rings[random.next(count) as usize].misbehave(&mut random);
                }
                for _ in 0..100 {
                    if !serve(&console, cx) {
                        break;
                    }
                }
            }
            match console.attached.is_gone() {
                true => {
                    cut_off += 1;
                    assert!(registers.has_failed());
                    for port in 0..console.most_ports() {
                        assert!(is_error(read(console, port, cx), Errno::ENODEV));
                    }
                }
                false => went_on += 1,
            }
            (0..console.most_ports()).for_each(|port| console.port(port).unwrap().close());
            console.give_up(cx);
        }
        assert!(cut_off > 30 && went_on > 10, "{cut_off} {went_on}");
        assert!(kinds.len() >= 2, "{kinds:?}");
    });
}
