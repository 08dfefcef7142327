use super::super::service::serve;
use super::super::simulated::{Random, Registers};
use super::*;
use crate::net::interface::{Cut, LeftChecksum};
use std::sync::Mutex;
use std::sync::atomic::AtomicUsize;
use std::vec::Vec;
use tcpip::Checksum;

const ADDRESS: CardAddress = [0x52, 0x54, 0, 1, 2, 3];

/// Keeps what has come.
#[derive(Default)]
struct Kept(Mutex<Vec<Vec<u8>>>, Mutex<Vec<Checksum>>, AtomicUsize);

impl Receiver for Kept {
    fn receive(&self, frame: &[u8], checksum: Checksum, _cx: &Cx) {
        self.0.lock().unwrap().push(frame.to_vec());
        self.1.lock().unwrap().push(checksum);
    }

    fn has_room(&self, _cx: &Cx) {
        self.2.fetch_add(1, Ordering::Relaxed);
    }
}

/// A card that can do nothing more than it must.
const PLAIN: u64 = MTU | MAC;
const INDIRECT: u64 = 1 << 28;

fn plug(queues: &[u16]) -> (&'static Registers, Option<&'static Card>) {
    plug_with(PLAIN, queues)
}

fn plug_with(features: u64, queues: &[u16]) -> (&'static Registers, Option<&'static Card>) {
    let mut config = ADDRESS.to_vec();
    config.extend([0, 0, 0, 0, 0xdc, 5]);
    let registers = Registers::plug(OLD_NUMBER, features, queues, &config);
    (registers, Transport::claim_with(KIND, OLD_NUMBER, choose).unwrap().map(Card::new).unwrap())
}

/// What is sent without leaving anything to the card.
fn send(card: &Card, frame: &[u8], cx: &Cx) -> Result<(), Refused> {
    card.send(frame, &Offload::default(), cx)
}

fn in_kernel(test: impl FnOnce(&Cx)) {
    let _machine = crate::block::test_memory();
    frame::with_context(|cx| test(cx));
}

fn with_header(frame: &[u8]) -> Vec<u8> {
    [&[0; HEADER_BYTES], frame].concat()
}

#[test]
fn frames_come_and_go_as_they_are() {
    in_kernel(|cx| {
        let (registers, card) = plug(&[64, 16]);
        let card = card.unwrap();
        assert_eq!((card.address(), card.mtu()), (ADDRESS, 1500));
        let (mut coming, mut going) = (registers.ring(0), registers.ring(1));
        let kept: &'static Kept = Box::leak(Box::default());
        // Nobody is there for the first.
        for number in 0..100_u8 {
            if number == 1 {
                card.lead_to(kept);
            }
            let frame = with_header(&[number; 60]);
            assert!(coming.answer(&frame, frame.len() as u32) && serve(&card, cx));
        }
        assert_eq!(*kept.0.lock().unwrap(), (1..100).map(|number| std::vec![number; 60]).collect::<Vec<_>>());
        for number in 0..100_u8 {
            let frame = std::vec![number; 14 + usize::from(number) * 15];
            assert_eq!(send(card, &frame, cx), Ok(()));
            let (head, bytes) = going.take().unwrap();
            assert_eq!(bytes, with_header(&frame));
            going.put(head.into(), 0);
        }
        assert_eq!(send(card, &[0; 1519], cx), Err(Refused::TooLarge));
        assert!(!registers.has_failed());
    });
}

#[test]
fn buffers_come_back_when_frames_were_sent() {
    in_kernel(|cx| {
        let (registers, card) = plug(&[64, 16]);
        let card = card.unwrap();
        for _ in 0..16 {
            assert_eq!(send(card, &[1; 60], cx), Ok(()));
        }
        assert!(!card.has_room(cx));
        assert_eq!(send(card, &[1; 60], cx), Err(Refused::Full));
        let mut going = registers.ring(1);
        let (head, _) = going.take().unwrap();
        going.put(head.into(), 0);
        assert!(card.has_room(cx));
        assert_eq!(send(card, &[1; 60], cx), Ok(()));
    });
}

#[test]
fn a_card_that_lies_is_cut_off() {
    in_kernel(|cx| {
        for len in [0, 11, BUFFER_BYTES as u32 + 1, u32::MAX] {
            let (registers, card) = plug(&[64, 64]);
            let card = card.unwrap();
            assert!(registers.ring(0).answer(&[], len));
            serve(&card, cx);
            assert!(registers.has_failed());
            assert_eq!(send(card, &[1; 60], cx), Err(Refused::Gone));
        }
        for seed in 0..50 {
            let (registers, card) = plug(&[16, 16]);
            let card = card.unwrap();
            let (mut coming, mut going) = (registers.ring(0), registers.ring(1));
            let mut random = Random(seed);
            for _ in 0..50 {
                match random.next(4) {
                    0 => _ = send(card, &[1; 60], cx),
                    1 => _ = coming.answer(&[1; 80], 80),
                    2 => _ = going.answer(&[], 0),
                    _ => _ = serve(&card, cx),
                }
                match random.next(40) {
                    0 => coming.misbehave(&mut random),
                    1 => going.misbehave(&mut random),
                    _ => {}
                }
            }
            assert_eq!(card.attached.is_gone(), registers.has_failed());
        }
        let (_, card) = plug(&[64]);
        assert!(card.is_none(), "it has no queue to send");
    });
}

/// A header that says something.
fn said(flags: u8, joined: u8, checksum: [u16; 2], buffers: u16) -> Vec<u8> {
    let words = [0, 0, checksum[0], checksum[1], buffers].map(u16::to_le_bytes).concat();
    [&[flags, joined], &words[..]].concat()
}

#[test]
fn features_that_need_others_are_not_taken_alone() {
    assert_eq!(choose(WANTED), WANTED);
    assert_eq!(choose(WANTED & !COMPUTES) & (CUTS_V4 | CUTS_V6), 0);
    assert_eq!(choose(WANTED & !LEAVES) & JOINS, 0);
    assert_eq!(choose(WANTED & !SPREADS) & JOINS, 0);
}

#[test]
fn long_frames_come_in_several_buffers() {
    in_kernel(|cx| {
        let (registers, card) = plug_with(WANTED, &[256, 64]);
        let card = card.unwrap();
        let kept: &'static Kept = Box::leak(Box::default());
        card.lead_to(kept);
        let mut coming = registers.ring(0);
        for round in 0..30_usize {
            let frame: Vec<u8> = (0..60_000 + round).map(|at| (at * 7 + round) as u8).collect();
            let buffers = (HEADER_BYTES + frame.len()).div_ceil(BUFFER_BYTES);
            let whole = [said(1, 1, [34, 16], buffers as u16), frame.clone()].concat();
            for part in whole.chunks(BUFFER_BYTES) {
                assert!(coming.answer(part, part.len() as u32));
            }
            while serve(&card, cx) {}
            assert_eq!(kept.0.lock().unwrap().pop().unwrap(), frame);
            assert_eq!(kept.1.lock().unwrap().pop(), Some(Checksum::Trust));
        }
        // Nothing was agreed on.
        let (registers_of_plain, plain) = plug(&[64, 64]);
        plain.unwrap().lead_to(kept);
        let frame = [said(3, 0, [34, 16], 1), std::vec![5; 60]].concat();
        assert!(registers_of_plain.ring(0).answer(&frame, frame.len() as u32) && serve(&plain.unwrap(), cx));
        assert_eq!(kept.1.lock().unwrap().pop(), Some(Checksum::Verify));
        let plain = [said(0, 0, [0, 0], 1), std::vec![5; 60]].concat();
        assert!(coming.answer(&plain, plain.len() as u32) && serve(&card, cx));
        assert_eq!(kept.1.lock().unwrap().pop(), Some(Checksum::Verify));
        assert!(!registers.has_failed());
    });
}

#[test]
fn what_a_header_cannot_say_cuts_the_card_off() {
    in_kernel(|cx| {
        // Without the features nothing is joined; with them there is no such kind, no such place, no buffer, more buffers than there are.
        let lies = [
            (PLAIN, said(0, 1, [0, 0], 1)),
            (WANTED, said(0, 3, [0, 0], 1)),
            (WANTED, said(1, 0, [60, 0], 1)),
            (WANTED, said(1, 0, [0xffff, 0xffff], 1)),
            (WANTED, said(0, 0, [0, 0], 0)),
            (WANTED, said(0, 0, [0, 0], 2)),
            (WANTED, said(0, 0, [0, 0], 0xffff)),
        ];
        for (features, header) in lies {
            let (registers, card) = plug_with(features, &[64, 64]);
            let card = card.unwrap();
            let frame = [header, std::vec![1; 60]].concat();
            assert!(registers.ring(0).answer(&frame, frame.len() as u32));
            serve(&card, cx);
            assert!(registers.has_failed(), "{frame:?}");
        }
    });
}

#[test]
fn long_segments_go_to_a_card_that_cuts_them() {
    in_kernel(|cx| {
        let (registers, card) = plug_with(WANTED | INDIRECT, &[64, 64]);
        let card = card.unwrap();
        let mut going = registers.ring(1);
        let offload = Offload {
            checksum: Some(LeftChecksum { start: 34, at: 16 }),
            cut: Some(Cut { header_bytes: 66, payload: 1448, is_v6: false }),
        };
        for round in 0..40_usize {
            let frame: Vec<u8> = (0..65_000 - round).map(|at| (at * 5 + round) as u8).collect();
            assert_eq!(card.send(&frame, &offload, cx), Ok(()));
            let (head, bytes) = going.take().unwrap();
            let header = [1, 1, 66, 0, 0xa8, 5, 34, 0, 16, 0, 0, 0];
            assert!(bytes == [&header[..], &frame].concat());
            going.put(head.into(), 0);
        }
        let (_, plain) = plug_with(PLAIN, &[64, 64]);
        assert_eq!(plain.unwrap().send(&[0; 60], &offload, cx), Err(Refused::TooLarge));
    });
}

#[test]
fn who_found_no_room_hears_when_there_is_some() {
    in_kernel(|cx| {
        let (registers, card) = plug(&[64, 16]);
        let card = card.unwrap();
        let kept: &'static Kept = Box::leak(Box::default());
        card.lead_to(kept);
        for _ in 0..16 {
            assert_eq!(send(card, &[1; 60], cx), Ok(()));
        }
        assert!(!card.has_room(cx));
        serve(&card, cx);
        assert_eq!(kept.2.load(Ordering::Relaxed), 0);
        let mut going = registers.ring(1);
        for _ in 0..12 {
            let (head, _) = going.take().unwrap();
            going.put(head.into(), 0);
        }
        serve(&card, cx);
        serve(&card, cx);
        assert_eq!(kept.2.load(Ordering::Relaxed), 1);
    });
}

#[test]
fn a_card_that_can_do_more_and_lies_is_cut_off() {
    in_kernel(|cx| {
        for seed in 0..40 {
            let (registers, card) = plug_with(WANTED | INDIRECT, &[16, 16]);
            let card = card.unwrap();
            let (mut coming, mut going) = (registers.ring(0), registers.ring(1));
            let mut random = Random(seed);
            for _ in 0..80 {
                match random.next(5) {
                    0 => _ = send(card, &[1; 60], cx),
                    1 => {
                        let offload = Offload {
                            checksum: Some(LeftChecksum { start: 34, at: 16 }),
                            cut: Some(Cut { header_bytes: 66, payload: 1448, is_v6: random.next(2) == 0 }),
                        };
                        let len = random.next(65_000) as usize;
                        _ = card.send(&std::vec![1; len], &offload, cx);
                    }
                    2 => {
                        let word = |random: &mut Random| random.of(&[0, 1, 2, 33, 34, 60, 0x8000, 0xffff]);
                        let header = said(
                            random.next(4) as u8,
                            random.of(&[0, 0, 1, 4, 0x81, 3]),
                            [word(&mut random), word(&mut random)],
                            random.of(&[0, 1, 1, 1, 2, 3, 40]),
                        );
                        let frame = [header, std::vec![1; 60]].concat();
                        _ = coming.answer(&frame, frame.len() as u32);
                    }
                    3 => _ = going.answer(&[], 0),
                    _ => _ = serve(&card, cx),
                }
                if random.next(60) == 0 {
                    going.misbehave(&mut random);
                }
            }
            assert_eq!(card.attached.is_gone(), registers.has_failed());
        }
    });
}
