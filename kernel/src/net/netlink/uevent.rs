//! NETLINK_KOBJECT_UEVENT: devices that come and go, as udev(7) hears of them. Nothing comes yet: the devices of a machine are there when it starts.

use frame::Cx;

use super::message::{Refusal, Request};
use super::{Answer, Protocol};
use crate::error::Errno;

/// NETLINK_KOBJECT_UEVENT.
pub struct Uevent;

impl Protocol for Uevent {
    fn number(&self) -> u32 {
        15
    }

    fn groups(&self) -> u32 {
        32
    }

    fn handle(&self, _request: &Request<'_>, _cx: &Cx) -> Result<Answer, Refusal> {
        Err(Errno::EOPNOTSUPP.into())
    }
}
