//! [`Filter`]: a program of the classic packet filter (SO_ATTACH_FILTER), which says of a packet whether it is wanted, and how many of its bytes: bpf(4) of the BSDs, packet(7).
//!
//! A program that was checked ends: its jumps lead forwards and into it, and its last instruction returns. So it takes as many steps as it has instructions at most. What it reads beyond the packet ends it with "no". It has
//! no memory but sixteen words, which it has written before it reads them.

use alloc::vec::Vec;

use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout};

use crate::error::{Errno, Result};

/// The most instructions (BPF_MAXINSNS).
pub const MOST_INSTRUCTIONS: usize = 4096;
/// The most bytes of a socket's program (`net.core.optmem_max`).
pub const MOST_BYTES: usize = 20_480;
/// Words of memory.
const WORDS: usize = 16;

/// `struct sock_filter`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
pub struct Instruction {
    /// What it does.
    pub code: u16,
    /// How many instructions are skipped where a comparison holds.
    pub yes: u8,
    /// And where it does not.
    pub no: u8,
    /// A number.
    pub k: u32,
}

// Classes.
const LD: u16 = 0x00;
const LDX: u16 = 0x01;
const ST: u16 = 0x02;
const STX: u16 = 0x03;
const ALU: u16 = 0x04;
const JMP: u16 = 0x05;
const RET: u16 = 0x06;
const MISC: u16 = 0x07;
// Sizes and modes of loads.
const W: u16 = 0x00;
const H: u16 = 0x08;
const B: u16 = 0x10;
const IMM: u16 = 0x00;
const ABS: u16 = 0x20;
const IND: u16 = 0x40;
const MEM: u16 = 0x60;
const LEN: u16 = 0x80;
const MSH: u16 = 0xa0;
// Where the other operand is.
const K: u16 = 0x00;
const X: u16 = 0x08;
const A: u16 = 0x10;
// Arithmetic.
const ADD: u16 = 0x00;
const SUB: u16 = 0x10;
const MUL: u16 = 0x20;
const DIV: u16 = 0x30;
const OR: u16 = 0x40;
const AND: u16 = 0x50;
const LSH: u16 = 0x60;
const RSH: u16 = 0x70;
const NEG: u16 = 0x80;
const MOD: u16 = 0x90;
const XOR: u16 = 0xa0;
// Jumps.
const JA: u16 = 0x00;
const JEQ: u16 = 0x10;
const JGT: u16 = 0x20;
const JGE: u16 = 0x30;
const JSET: u16 = 0x40;
// Moves between the registers.
const TAX: u16 = 0x00;
const TXA: u16 = 0x80;

/// Offsets from here on are of what is known beside the bytes (SKF_AD_OFF).
const BESIDE: u32 = 0xffff_f000;
/// Of the packet from its network header on, and from its link's (SKF_NET_OFF, SKF_LL_OFF).
const FROM_NETWORK: u32 = 0xfff0_0000;
const FROM_LINK: u32 = 0xffe0_0000;

/// What a program is asked about.
#[derive(Clone, Copy)]
pub struct Packet<'a> {
    /// The frame.
    pub frame: &'a [u8],
    /// Where what the socket receives begins in it.
    pub start: usize,
    /// Where its network header is.
    pub network: usize,
    /// What it carries (`ETH_P_*`).
    pub protocol: u16,
    /// To whom it is (`PACKET_*`).
    pub audience: u8,
    /// The number of its device, and that device's kind (`ARPHRD_*`).
    pub device: u32,
    /// Likewise.
    pub hardware: u16,
}

impl Packet<'_> {
    fn received(&self) -> &[u8] {
        self.frame.get(self.start..).unwrap_or_default()
    }

    /// What is known beside the bytes; `None`: nothing here is so.
    fn beside(&self, what: u32, a: u32, x: u32) -> Option<u32> {
        Some(match what {
            0 => self.protocol.into(),
            4 => self.audience.into(),
            8 => self.device,
            28 => self.hardware.into(),
            // SKF_AD_ALU_XOR_X.
            40 => a ^ x,
            // The mark, the queue, the hash, the tag of a virtual network and whether there is one, and what kind: nothing of that is set.
            20 | 24 | 32 | 44 | 48 | 60 => 0,
            _ => return None,
        })
    }

    fn load(&self, at: u32, size: usize) -> Option<u32> {
        let (from, at) = match at {
            at if at >= FROM_NETWORK => (self.frame.get(self.network..)?, at - FROM_NETWORK),
            at if at >= FROM_LINK => (self.frame, at - FROM_LINK),
            at => (self.received(), at),
        };
        let at = at as usize;
        let bytes = from.get(at..at.checked_add(size)?)?;
        Some(bytes.iter().fold(0, |value, byte| value << 8 | u32::from(*byte)))
    }
}

/// A program that was checked.
pub struct Filter(Vec<Instruction>);

/// Whether there is an instruction with this code.
fn is_known(code: u16) -> bool {
    let (class, size, mode) = (code & 7, code & 0x18, code & 0xe0);
    let (operation, source) = (code & 0xf0, code & X);
    if code > 0xff {
        return false;
    }
    match class {
        LD => match mode {
            ABS | IND => matches!(size, W | H | B),
            IMM | LEN | MEM => size == W,
            _ => false,
        },
        LDX => match mode {
            IMM | LEN | MEM => size == W,
            MSH => size == B,
            _ => false,
        },
        ST | STX => code & 0xf8 == 0,
        ALU => match operation {
            NEG => source == K,
            ADD | SUB | MUL | DIV | OR | AND | LSH | RSH | MOD | XOR => true,
            _ => false,
        },
        JMP => match operation {
            JA => source == K,
            JEQ | JGT | JGE | JSET => true,
            _ => false,
        },
        RET => matches!(code & 0xf8, K | A),
        _ => matches!(code & 0xf8, TAX | TXA),
    }
}

impl Filter {
    /// How many bytes it takes.
    pub fn bytes(&self) -> usize {
        size_of_val(&self.0[..])
    }

    /// A program, if it is one.
    ///
    /// # Errors
    /// EINVAL: it has no instructions, or too many, or one that is wrong.
    pub fn new(program: Vec<Instruction>) -> Result<Filter> {
        if program.is_empty() || program.len() > MOST_INSTRUCTIONS {
            return Err(Errno::EINVAL);
        }
        let len = program.len();
        // Which words of memory are written on all ways to an instruction.
        let mut written = Vec::new();
        written.try_reserve_exact(len).map_err(|_| Errno::ENOMEM)?;
        written.resize(len, u16::MAX);
        let mut words = 0_u16;
        for (at, one) in program.iter().enumerate() {
            words &= written[at];
            if !is_known(one.code) {
                return Err(Errno::EINVAL);
            }
            let left = len - at - 1;
            match one.code {
                code if (code == ALU | DIV | K || code == ALU | MOD | K) && one.k == 0 => return Err(Errno::EINVAL),
                code if (code == ALU | LSH | K || code == ALU | RSH | K) && one.k >= 32 => return Err(Errno::EINVAL),
                code if (code == LD | MEM || code == LDX | MEM)
                    && (one.k as usize >= WORDS || words & 1 << one.k == 0) =>
                {
                    return Err(Errno::EINVAL);
                }
                code if code == ST || code == STX => {
                    if one.k as usize >= WORDS {
                        return Err(Errno::EINVAL);
                    }
                    words |= 1 << one.k;
                }
                code if code == JMP | JA => {
                    if one.k as usize >= left {
                        return Err(Errno::EINVAL);
                    }
                    written[at + 1 + one.k as usize] &= words;
                    words = u16::MAX;
                }
                code if code & 7 == JMP => {
                    for skipped in [one.yes, one.no].map(usize::from) {
                        if skipped >= left {
                            return Err(Errno::EINVAL);
                        }
                        written[at + 1 + skipped] &= words;
                    }
                    words = u16::MAX;
                }
                code if code & 7 == LD && code & 0xe0 == ABS && one.k >= BESIDE => {
                    let nothing =
                        Packet { frame: &[], start: 0, network: 0, protocol: 0, audience: 0, device: 0, hardware: 0 };
                    nothing.beside(one.k - BESIDE, 0, 0).ok_or(Errno::EINVAL)?;
                }
                _ => {}
            }
        }
        let ends = program.last().is_some_and(|last| last.code & 7 == RET);
        if ends { Ok(Filter(program)) } else { Err(Errno::EINVAL) }
    }

    /// How many instructions it has: it takes as many steps at most.
    pub fn instructions(&self) -> usize {
        self.0.len()
    }

    /// How many bytes of a packet are wanted; 0: it is not.
    pub fn run(&self, packet: &Packet<'_>) -> u32 {
        let (mut a, mut x, mut words) = (0_u32, 0_u32, [0_u32; WORDS]);
        let mut at = 0;
        while let Some(one) = self.0.get(at) {
            at += 1;
            let operand = if one.code & X != 0 { x } else { one.k };
            match one.code & 7 {
                LD | LDX => {
                    let Some(value) = load(one, packet, (a, x), &words) else { return 0 };
                    *(if one.code & 7 == LD { &mut a } else { &mut x }) = value;
                }
                ST => words[one.k as usize % WORDS] = a,
                STX => words[one.k as usize % WORDS] = x,
                ALU => match calculate(one.code & 0xf0, a, operand) {
                    Some(value) => a = value,
                    None => return 0,
                },
                JMP if one.code & 0xf0 == JA => at += one.k as usize,
                JMP => {
                    let holds = match one.code & 0xf0 {
                        JEQ => a == operand,
                        JGT => a > operand,
                        JGE => a >= operand,
                        _ => a & operand != 0,
                    };
                    at += usize::from(if holds { one.yes } else { one.no });
                }
                RET => return if one.code & A != 0 { a } else { one.k },
                MISC if one.code & TXA != 0 => a = x,
                _ => x = a,
            }
        }
        0
    }
}

/// What a load gets; `None`: it lies beyond the packet.
fn load(one: &Instruction, packet: &Packet<'_>, (a, x): (u32, u32), words: &[u32; WORDS]) -> Option<u32> {
    let size = match one.code & 0x18 {
        W => 4,
        H => 2,
        _ => 1,
    };
    match one.code & 0xe0 {
        IMM => Some(one.k),
        ABS if one.k >= BESIDE => packet.beside(one.k - BESIDE, a, x),
        ABS => packet.load(one.k, size),
        // What is known beside the bytes is not found so.
        IND => packet.load(Some(x.wrapping_add(one.k)).filter(|&at| at < BESIDE)?, size),
        MEM => Some(words[one.k as usize % WORDS]),
        LEN => Some(packet.received().len() as u32),
        // The length of an IP header.
        _ => Some((packet.load(one.k, 1)? & 15) * 4),
    }
}

/// `None`: it was divided by zero.
fn calculate(operation: u16, a: u32, operand: u32) -> Option<u32> {
    Some(match operation {
        ADD => a.wrapping_add(operand),
        SUB => a.wrapping_sub(operand),
        MUL => a.wrapping_mul(operand),
        DIV => a.checked_div(operand)?,
        MOD => a.checked_rem(operand)?,
        OR => a | operand,
        AND => a & operand,
        XOR => a ^ operand,
        LSH => a.wrapping_shl(operand),
        RSH => a.wrapping_shr(operand),
        _ => a.wrapping_neg(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn one(code: u16, yes: u8, no: u8, k: u32) -> Instruction {
        Instruction { code, yes, no, k }
    }

    fn packet(frame: &[u8]) -> Packet<'_> {
        Packet { frame, start: 0, network: 14, protocol: 0x800, audience: 4, device: 2, hardware: 1 }
    }

    /// A frame of IPv4 with a header of 20 bytes and UDP behind it.
    fn frame() -> Vec<u8> {
        let mut frame = alloc::vec![0; 60];
        (frame[12], frame[13]) = (8, 0);
        (frame[14], frame[23]) = (0x45, 17);
        frame[36..38].copy_from_slice(&53_u16.to_be_bytes());
        frame
    }

    #[test]
    fn what_tcpdump_makes_of_udp_port_53_is_understood() {
        let program = alloc::vec![
            one(LD | H | ABS, 0, 0, 12),
            one(JMP | JEQ | K, 0, 7, 0x800),
            one(LD | B | ABS, 0, 0, 23),
            one(JMP | JEQ | K, 0, 5, 17),
            one(LD | H | ABS, 0, 0, 20),
            one(JMP | JSET | K, 3, 0, 0x1fff),
            one(LDX | B | MSH, 0, 0, 14),
            one(LD | H | IND, 0, 0, 16),
            one(JMP | JEQ | K, 1, 0, 53),
            one(RET | K, 0, 0, 0),
            one(RET | K, 0, 0, 262_144),
        ];
        let filter = Filter::new(program).unwrap();
        let mut frame = frame();
        assert_eq!(filter.run(&packet(&frame)), 262_144);
        frame[37] = 54;
        assert_eq!(filter.run(&packet(&frame)), 0);
        assert_eq!(filter.run(&packet(&frame[..30])), 0);
    }

    #[test]
    fn what_is_known_beside_the_bytes_can_be_asked() {
        let asks = |what| Filter::new(alloc::vec![one(LD | W | ABS, 0, 0, BESIDE + what), one(RET | A, 0, 0, 0)]);
        let frame = frame();
        for (what, value) in [(0, 0x800), (4, 4), (8, 2), (28, 1), (48, 0)] {
            assert_eq!(asks(what).unwrap().run(&packet(&frame)), value);
        }
        assert!(asks(12).is_err());
        let network = Filter::new(alloc::vec![one(LD | B | ABS, 0, 0, FROM_NETWORK), one(RET | A, 0, 0, 0)]);
        assert_eq!(network.unwrap().run(&packet(&frame)), 0x45);
    }

    #[test]
    fn a_program_that_is_wrong_is_refused() {
        let end = one(RET | K, 0, 0, 1);
        for wrong in [
            alloc::vec![],
            alloc::vec![one(LD | IMM, 0, 0, 1)],
            alloc::vec![one(0xff, 0, 0, 0), end],
            alloc::vec![one(0x100, 0, 0, 0), end],
            alloc::vec![one(ALU | DIV | K, 0, 0, 0), end],
            alloc::vec![one(ALU | LSH | K, 0, 0, 32), end],
            alloc::vec![one(LD | MEM, 0, 0, 0), end],
            alloc::vec![one(ST, 0, 0, 16), end],
            alloc::vec![one(JMP | JA, 0, 0, 1), end],
            alloc::vec![one(JMP | JEQ, 1, 0, 1), end],
            alloc::vec![end; MOST_INSTRUCTIONS + 1],
            // One way does not write what is read.
            alloc::vec![one(JMP | JEQ, 0, 1, 1), one(ST, 0, 0, 3), one(LD | MEM, 0, 0, 3), end],
        ] {
            assert!(Filter::new(wrong.clone()).is_err(), "{wrong:?}");
        }
        assert!(Filter::new(alloc::vec![one(ST, 0, 0, 3), one(LD | MEM, 0, 0, 3), end]).is_ok());
        assert!(Filter::new(alloc::vec![end; MOST_INSTRUCTIONS]).is_ok());
    }

    #[test]
    fn arithmetic_wraps_and_division_by_zero_means_no() {
        let run = |code: u16, a: u32, x: u32| {
            let program = alloc::vec![
                one(LDX | IMM, 0, 0, x),
                one(LD | IMM, 0, 0, a),
                one(ALU | code | X, 0, 0, 0),
                one(RET | A, 0, 0, 0),
            ];
            Filter::new(program).unwrap().run(&packet(&[]))
        };
        assert_eq!(run(ADD, u32::MAX, 2), 1);
        assert_eq!(run(SUB, 1, 2), u32::MAX);
        assert_eq!((run(DIV, 7, 0), run(MOD, 7, 0), run(DIV, 7, 2), run(MOD, 7, 4)), (0, 0, 3, 3));
        assert_eq!((run(LSH, 1, 31), run(RSH, 4, 1), run(XOR, 5, 1)), (1 << 31, 2, 4));
    }

    #[test]
    fn no_program_makes_it_panic() {
        let mut state = 1_u32;
        let mut next = move || {
            state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            state >> 8
        };
        let frame = frame();
        let mut accepted = 0;
        for _ in 0..300_000 {
            let len = 1 + next() % 6;
            let mut program: Vec<Instruction> = (0..len)
                .map(|_| {
                    let k =
                        [next() % 70, next(), BESIDE + next() % 64, FROM_NETWORK.wrapping_add(next() % 80), u32::MAX];
                    let (yes, no) = ((next() % 4) as u8, (next() % 4) as u8);
                    one((next() % 0xb8) as u16, yes, no, k[(next() % 5) as usize])
                })
                .collect();
            program.push(one(RET | A, 0, 0, 0));
            if let Ok(filter) = Filter::new(program) {
                accepted += 1;
                filter.run(&packet(&frame));
                filter.run(&packet(&[]));
            }
        }
        assert!(accepted > 1000);
    }
}
