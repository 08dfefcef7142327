//! [`Filter`]: a program that says which sockets are wanted (INET_DIAG_REQ_BYTECODE): of ss(8), `ss state established '( dport = :22 )'`.
//!
//! An instruction has a code, how many bytes further it goes on where it is true, and where it is false; what it compares with is behind it. The program ends behind its last byte, which
//! means yes, or beyond it, which means no. Each way leads forwards, so a program of so many instructions takes as many steps at most.

use alloc::vec::Vec;
use core::net::IpAddr;

use linux_raw_sys::net;

use crate::error::{Errno, Result};
use crate::net::inet::diag::{Details, End};

/// The longest program.
const MOST_BYTES: usize = 16_384;
/// The size of an instruction, and of a condition on an address without that.
const OPERATION: usize = 4;
const CONDITION: usize = 8;

const NOP: u8 = 0;
const JMP: u8 = 1;
const S_GE: u8 = 2;
const S_LE: u8 = 3;
const D_GE: u8 = 4;
const D_LE: u8 = 5;
const AUTO: u8 = 6;
const S_COND: u8 = 7;
const D_COND: u8 = 8;
const DEV_COND: u8 = 9;
const MARK_COND: u8 = 10;
const S_EQ: u8 = 11;
const D_EQ: u8 = 12;

/// A program that was checked: each instruction is whole, its ways lead forwards, and no further than one instruction behind the end.
pub struct Filter(Vec<u8>);

/// An instruction.
struct Operation<'a> {
    code: u8,
    yes: usize,
    no: u16,
    rest: &'a [u8],
}

fn operation(bytes: &[u8]) -> Option<Operation<'_>> {
    let ([code, yes, low, high], rest) = bytes.split_first_chunk::<OPERATION>()?;
    Some(Operation { code: *code, yes: usize::from(*yes), no: u16::from_le_bytes([*low, *high]), rest })
}

impl Operation<'_> {
    /// The length of an instruction with what it compares with.
    ///
    /// # Errors
    /// EINVAL: there is no such instruction, or it is cut short.
    fn len(&self) -> Result<usize> {
        match self.code {
            NOP | JMP | AUTO => Ok(OPERATION),
            S_GE | S_LE | D_GE | D_LE | S_EQ | D_EQ | DEV_COND => Ok(2 * OPERATION),
            MARK_COND => Ok(3 * OPERATION),
            S_COND | D_COND => {
                let condition = self.rest.get(..CONDITION).ok_or(Errno::EINVAL)?;
                let bytes = match u32::from(condition[0]) {
                    net::AF_UNSPEC => 0,
                    net::AF_INET => 4,
                    net::AF_INET6 => 16,
                    _ => return Err(Errno::EINVAL),
                };
                if usize::from(condition[1]) > 8 * bytes {
                    return Err(Errno::EINVAL);
                }
                Ok(OPERATION + CONDITION + bytes)
            }
            _ => Err(Errno::EINVAL),
        }
    }
}

impl Filter {
    /// A program, if it is one.
    ///
    /// # Errors
    /// EINVAL. EPERM: it asks for what only an administrator may know.
    pub fn new(program: &[u8], is_administrator: bool) -> Result<Filter> {
        if program.len() > MOST_BYTES {
            return Err(Errno::EINVAL);
        }
        // Where instructions begin: ways of `no` must lead there.
        let mut starts = Vec::new();
        let mut at = 0;
        while at < program.len() {
            starts.push(at);
            let operation = operation(&program[at..]).ok_or(Errno::EINVAL)?;
            let left = program.len() - at;
            let len = operation.len()?;
            if len > left || operation.yes < len || operation.yes > left + OPERATION || operation.yes % 4 != 0 {
                return Err(Errno::EINVAL);
            }
            if operation.code == MARK_COND && !is_administrator {
                return Err(Errno::EPERM);
            }
            at += operation.yes;
        }
        if at != program.len() {
            return Err(Errno::EINVAL);
        }
        for &start in &starts {
            let no = usize::from(operation(&program[start..]).ok_or(Errno::EINVAL)?.no);
            // NOP has no second way.
            if program[start] == NOP {
                continue;
            }
            let left = program.len() - start;
            if no < OPERATION || no > left + OPERATION || no % 4 != 0 {
                return Err(Errno::EINVAL);
            }
            if no < left && starts.binary_search(&(start + no)).is_err() {
                return Err(Errno::EINVAL);
            }
        }
        Ok(Filter(program.to_vec()))
    }

    /// Whether a socket is wanted.
    pub fn wants(&self, socket: &Details) -> bool {
        let mut at = 0;
        while at < self.0.len() {
            let Some(operation) = operation(&self.0[at..]) else { return false };
            let number = u16::from_le_bytes([
                operation.rest.get(2).copied().unwrap_or(0),
                operation.rest.get(3).copied().unwrap_or(0),
            ]);
            let word = |at: usize| {
                let bytes = operation.rest.get(at..at + 4).unwrap_or(&[0; 4]);
                u32::from_le_bytes([bytes[0], bytes[1], bytes[2], bytes[3]])
            };
            let is_so = match operation.code {
                NOP => true,
                JMP => false,
                S_EQ => socket.local.port == number,
                S_GE => socket.local.port >= number,
                S_LE => socket.local.port <= number,
                D_EQ => socket.remote.port == number,
                D_GE => socket.remote.port >= number,
                D_LE => socket.remote.port <= number,
                AUTO => !socket.is_chosen,
                S_COND => matches(operation.rest, socket, &socket.local),
                D_COND => matches(operation.rest, socket, &socket.remote),
                // No socket is bound to a device.
                DEV_COND => word(0) == 0,
                MARK_COND => socket.mark & word(4) == word(0),
                _ => false,
            };
            let further = if is_so { operation.yes } else { operation.no.into() };
            if further < OPERATION {
                return false;
            }
            at += further;
        }
        at == self.0.len()
    }
}

/// Whether an end is as a condition says: of a family, with a port (-1: any), with the first bits of an address.
fn matches(condition: &[u8], socket: &Details, end: &End) -> bool {
    let Some((head, wanted)) = condition.split_first_chunk::<CONDITION>() else { return false };
    let (family, bits) = (u32::from(head[0]), head[1]);
    let port = i32::from_le_bytes([head[4], head[5], head[6], head[7]]);
    if port != -1 && port != i32::from(end.port) {
        return false;
    }
    let own: Vec<u8> =
        match (end.ip, family == net::AF_INET6 || family == net::AF_UNSPEC && socket.family == net::AF_INET6) {
            (IpAddr::V4(ip), false) if family != net::AF_UNSPEC || socket.family == net::AF_INET => {
                ip.octets().to_vec()
            }
            (IpAddr::V4(ip), _) if socket.family == net::AF_INET6 => ip.to_ipv6_mapped().octets().to_vec(),
            (IpAddr::V6(ip), _) if family != net::AF_INET => ip.octets().to_vec(),
            _ => return false,
        };
    let bits = usize::from(bits);
    let whole = bits / 8;
    let mask = !(0xff_u8.checked_shr((bits % 8) as u32).unwrap_or(0));
    let byte = |bytes: &[u8]| bytes.get(whole).copied().unwrap_or(0) & mask;
    own.get(..whole) == wanted.get(..whole) && byte(&own) == byte(wanted)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::net::Shutdown;

    fn socket(local: (&str, u16), remote: (&str, u16)) -> Details {
        let end = |(ip, port): (&str, u16)| End { ip: ip.parse().unwrap(), port };
        Details {
            family: net::AF_INET,
            state: 1,
            local: end(local),
            remote: end(remote),
            queues: [0; 2],
            user: 0,
            inode: 1,
            cookie: 1,
            shutdown: Shutdown { reading: false, writing: false },
            is_chosen: true,
            class_v4: 0,
            class_v6: 0,
            mark: 0,
            only_v6: false,
            buffers: [0; 2],
            drops: 0,
            left: None,
            congestion_control: b"",
        }
    }

    /// An instruction that compares a port.
    fn port(code: u8, yes: u8, no: u8, port: u16) -> Vec<u8> {
        let [low, high] = port.to_le_bytes();
        Vec::from([code, yes, no, 0, 0, 0, low, high])
    }

    #[test]
    fn ports_are_compared() {
        let ssh = socket(("10.0.0.1", 22), ("10.0.0.2", 40_000));
        let web = socket(("10.0.0.1", 80), ("10.0.0.2", 40_000));
        let filter = Filter::new(&port(S_EQ, 8, 12, 22), false).unwrap();
        assert!(filter.wants(&ssh) && !filter.wants(&web));
        let both = [port(S_GE, 8, 20, 80), port(D_LE, 8, 12, 40_000)].concat();
        let filter = Filter::new(&both, false).unwrap();
        assert!(filter.wants(&web) && !filter.wants(&ssh));
    }

    #[test]
    fn addresses_are_compared_by_their_first_bits() {
        let program = |bits: u8, ip: [u8; 4]| {
            let mut program = Vec::from([D_COND, 16, 20, 0, net::AF_INET as u8, bits, 0, 0, 0xff, 0xff, 0xff, 0xff]);
            program.extend_from_slice(&ip);
            Filter::new(&program, false)
        };
        let socket = socket(("10.0.0.1", 22), ("10.0.0.2", 40_000));
        assert!(program(24, [10, 0, 0, 77]).unwrap().wants(&socket));
        assert!(program(30, [10, 0, 0, 3]).unwrap().wants(&socket));
        assert!(!program(31, [10, 0, 0, 1]).unwrap().wants(&socket));
        assert!(program(33, [10, 0, 0, 1]).is_err());
    }

    #[test]
    fn a_program_that_is_wrong_is_refused() {
        for wrong in [
            &[S_EQ, 4, 12, 0, 0, 0, 22, 0][..],
            &[S_EQ, 8, 2, 0, 0, 0, 22, 0],
            &[S_EQ, 8, 16, 0, 0, 0, 22, 0],
            &[S_EQ, 8, 12],
            &[99, 4, 8, 0],
            &[JMP, 4, 0, 0],
            &[JMP, 4, 6, 0, NOP, 4, 8, 0],
        ] {
            assert!(Filter::new(wrong, true).is_err(), "{wrong:?}");
        }
        assert!(matches!(Filter::new(&[MARK_COND, 12, 16, 0, 0, 0, 0, 0, 0, 0, 0, 0], false), Err(Errno::EPERM)));
    }

    #[test]
    fn no_program_makes_it_stand_still() {
        let socket = socket(("10.0.0.1", 22), ("10.0.0.2", 40_000));
        let mut state = 7_u32;
        let mut accepted = 0;
        for round in 0..200_000 {
            let mut program = alloc::vec![0; 4 * (1 + round % 8)];
            for byte in &mut program {
                state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
                *byte = (state >> 24) as u8 & if state & 0x100 == 0 { 0x1c } else { 0x0f };
            }
            if let Ok(filter) = Filter::new(&program, true) {
                accepted += 1;
                filter.wants(&socket);
            }
        }
        assert!(accepted > 100);
    }
}
