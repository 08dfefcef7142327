//! Which table of routes is looked at: RTM_GETRULE. That is always so: first the machine's own addresses, then the table of all routes.

use alloc::boxed::Box;
use alloc::vec::Vec;

use linux_raw_sys::net::AF_INET;

use super::families;
use crate::error::Errno;
use crate::net::netlink::Answer;
use crate::net::netlink::dump::Listed;
use crate::net::netlink::message::{Message, NLM_F_MULTI, Refusal, Request};

/// RTM_NEWRULE.
pub const NEW: u16 = 32;

const PRIORITY: u16 = 6;
const TABLE: u16 = 15;
/// FRA_PROTOCOL.
const ORIGIN: u16 = 21;
const BY_KERNEL: u8 = 2;
/// FR_ACT_TO_TBL.
const TO_TABLE: u8 = 1;

/// The tables, each with the number of its rule: `local`, `main`, and of IPv4 `default`, which is empty.
const TABLES: [(u8, u32); 3] = [(255, 0), (254, 32_766), (253, 32_767)];

/// All rules of a family.
///
/// # Errors
/// EOPNOTSUPP: for one.
pub fn get(request: &Request<'_>) -> Result<Answer, Refusal> {
    if !request.is_dump() {
        return Err(Errno::EOPNOTSUPP.into());
    }
    let mut messages: Vec<Vec<u8>> = Vec::new();
    for family in families(request) {
        let count = if family == AF_INET { 3 } else { 2 };
        for (table, priority) in &TABLES[..count] {
            let head = [family as u8, 0, 0, 0, *table, 0, 0, TO_TABLE, 0, 0, 0, 0];
            let message = Message::new(request, NEW, NLM_F_MULTI, &head).with(TABLE, &u32::from(*table).to_le_bytes());
            let message = if *priority > 0 { message.with(PRIORITY, &priority.to_le_bytes()) } else { message };
            messages.push(message.with(ORIGIN, &[BY_KERNEL]).finish());
        }
    }
    Ok(Answer::Dump(Box::new(Listed(messages.into_iter()))))
}
