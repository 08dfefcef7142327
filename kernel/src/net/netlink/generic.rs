//! NETLINK_GENERIC: families of requests that have names, of which there is the one that tells of families.

use alloc::boxed::Box;
use alloc::vec::Vec;

use frame::Cx;

use super::dump::Listed;
use super::message::{Message, NLM_F_MULTI, Refusal, Request};
use super::{Answer, Protocol};
use crate::error::Errno;

/// NETLINK_GENERIC.
pub struct Generic;

/// GENL_ID_CTRL, and the commands that it has.
const CONTROLLER: u16 = 16;
const NEW_FAMILY: u8 = 1;
const GET_FAMILY: u8 = 3;
/// `struct genlmsghdr`.
const HEAD_BYTES: usize = 4;
const FAMILY_ID: u16 = 1;
const FAMILY_NAME: u16 = 2;
const VERSION: u16 = 3;
const HEADER_SIZE: u16 = 4;
const MOST_ATTRIBUTES: u16 = 5;
const OPERATIONS: u16 = 6;
const NAME: &[u8] = b"nlctrl\0";

impl Protocol for Generic {
    fn number(&self) -> u32 {
        16
    }

    fn groups(&self) -> u32 {
        32
    }

    fn handle(&self, request: &Request<'_>, _cx: &Cx) -> Result<Answer, Refusal> {
        if request.header.kind != CONTROLLER {
            return Err(Errno::ENOENT.into());
        }
        if request.body.len() < HEAD_BYTES {
            return Err(Errno::EINVAL.into());
        }
        if request.head::<HEAD_BYTES>()[0] != GET_FAMILY {
            return Err(Errno::EOPNOTSUPP.into());
        }
        if request.is_dump() {
            return Ok(Answer::Dump(Box::new(Listed(core::iter::once(controller(request, NLM_F_MULTI))))));
        }
        let attributes = request.attributes(HEAD_BYTES);
        let is_it = match (attributes.get(FAMILY_ID), attributes.get(FAMILY_NAME)) {
            (Some(id), _) => id.starts_with(&CONTROLLER.to_le_bytes()),
            (None, Some(name)) => name.strip_suffix(&[0]).unwrap_or(name) == &NAME[..NAME.len() - 1],
            (None, None) => return Err(Errno::EINVAL.into()),
        };
        if is_it { Ok(Answer::Message(controller(request, 0))) } else { Err(Errno::ENOENT.into()) }
    }
}

fn controller(request: &Request<'_>, flags: u16) -> Vec<u8> {
    /// GENL_CMD_CAP_DO, GENL_CMD_CAP_DUMP and GENL_CMD_CAP_HASPOL.
    const CAPABILITIES: u32 = 0xe;
    let word = |value: u32| value.to_le_bytes();
    // One operation in a list of them: its number, and what can be done with it.
    let mut operation = Vec::from([8, 0, 1, 0]);
    operation.extend_from_slice(&word(GET_FAMILY.into()));
    operation.extend_from_slice(&[8, 0, 2, 0]);
    operation.extend_from_slice(&word(CAPABILITIES));
    let operations = [&[(4 + operation.len()) as u8, 0, 1, 0][..], &operation].concat();
    Message::new(request, CONTROLLER, flags, &[NEW_FAMILY, 2, 0, 0])
        .with(FAMILY_NAME, NAME)
        .with(FAMILY_ID, &CONTROLLER.to_le_bytes())
        .with(VERSION, &word(2))
        .with(HEADER_SIZE, &word(0))
        .with(MOST_ATTRIBUTES, &word(10))
        .with(OPERATIONS, &operations)
        .finish()
}
