//! Sockets between the programs of this machine.

use alloc::boxed::Box;
use alloc::vec::Vec;

use frame::Cx;
use zerocopy::IntoBytes;

use super::{BY_FAMILY, is_meant, memory, shutdown_bits, word};
use crate::error::Errno;
use crate::net::cursor::Cursor;
use crate::net::netlink::Answer;
use crate::net::netlink::dump::{Dump, Next};
use crate::net::netlink::message::{Asker, Header, Message, NLM_F_MULTI, Refusal, Request};
use crate::net::unix::listing::{self, Name, Row, SOCKETS, State};

/// `struct unix_diag_req`.
const REQUEST_BYTES: usize = 24;

/// What is told beside the fixed part, and which bit asks for it.
const NAME: u16 = 0;
const PEER: u16 = 2;
const WAITING: u16 = 3;
const QUEUES: u16 = 4;
const MEMORY: u16 = 5;
const SHUTDOWN: u16 = 6;
const USER: u16 = 7;
const SHOW_NAME: u32 = 1;
const SHOW_PEER: u32 = 4;
const SHOW_WAITING: u32 = 8;
const SHOW_QUEUES: u32 = 0x10;
const SHOW_MEMORY: u32 = 0x20;
const SHOW_USER: u32 = 0x40;

const BUFFER: u32 = 212_992;

/// Answers a request.
///
/// # Errors
/// EINVAL: too short. ENOENT: there is no such socket. ESTALE: its number is another one's.
pub fn answer(request: &Request<'_>, cx: &Cx) -> Result<Answer, Refusal> {
    if request.body.len() < REQUEST_BYTES {
        return Err(Errno::EINVAL.into());
    }
    let head = request.head::<REQUEST_BYTES>();
    let (states, inode, show) = (word(&head, 4), word(&head, 8), word(&head, 12));
    if request.is_dump() {
        let cursor = Cursor::default();
        return Ok(Answer::Dump(Box::new(Sockets {
            states,
            show,
            cursor,
            header: request.header,
            asker: request.asker,
        })));
    }
    if inode == 0 {
        return Err(Errno::EINVAL.into());
    }
    let name = SOCKETS.find(inode.into()).ok_or(Errno::ENOENT)?;
    let row = listing::row(name, cx).ok_or(Errno::ENOENT)?;
    if !is_meant(row.cookie, [word(&head, 16), word(&head, 20)]) {
        return Err(Errno::ESTALE.into());
    }
    Ok(Answer::Message(message(name, &row, show, request, 0, cx)))
}

/// The sockets in these states.
struct Sockets {
    states: u32,
    show: u32,
    cursor: Cursor<u64>,
    header: Header,
    asker: Asker,
}

impl Dump for Sockets {
    fn next(&mut self, cx: &Cx) -> Next {
        let Some(name) = SOCKETS.next(&mut self.cursor) else { return Next::End };
        let row = listing::row(name, cx);
        let Some(row) = row.filter(|row| self.states & 1 << state(row) != 0) else { return Next::Skipped };
        let request = Request { header: self.header, body: &[], asker: self.asker };
        Next::Message(message(name, &row, self.show, &request, NLM_F_MULTI, cx))
    }
}

/// The states have the names of TCP's.
fn state(row: &Row) -> u8 {
    match row.state {
        State::Connected => 1,
        State::Unconnected => 7,
        State::Listening => 10,
    }
}

fn message(name: Name, row: &Row, show: u32, request: &Request<'_>, flags: u16, cx: &Cx) -> Vec<u8> {
    const AF_UNIX: u8 = 1;
    let mut body = [0; 16];
    body[..3].copy_from_slice(&[AF_UNIX, row.kind, state(row)]);
    body[4..8].copy_from_slice(&(row.inode as u32).to_le_bytes());
    body[8..].copy_from_slice(&row.cookie.to_le_bytes());
    let asks = |bit: u32| show & bit != 0;
    let mut message = Message::new(request, BY_FAMILY, flags, &body);
    if let Some(address) = row.name.as_ref().filter(|_| asks(SHOW_NAME)) {
        message.add(NAME, address);
    }
    if let Some(peer) = row.peer.filter(|_| asks(SHOW_PEER)) {
        message.add(PEER, &(peer as u32).to_le_bytes());
    }
    if asks(SHOW_WAITING) && row.state == State::Listening {
        message.add(WAITING, listing::waiting(name, cx).as_bytes());
    }
    if asks(SHOW_QUEUES) {
        message.add(QUEUES, row.queues.as_bytes());
    }
    if asks(SHOW_MEMORY) {
        let queues = if row.state == State::Listening { [0; 2] } else { row.queues };
        message.add(MEMORY, memory(queues, [BUFFER; 2], 0).as_bytes());
    }
    message.add(SHUTDOWN, &[shutdown_bits(row.shutdown)]);
    if asks(SHOW_USER) {
        message.add(USER, &row.user.to_le_bytes());
    }
    message.finish()
}
