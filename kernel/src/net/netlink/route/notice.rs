//! Who listens to groups is told of changes.

use core::net::IpAddr;

use frame::Cx;
use tcpip::ethernet::HardwareAddress;
use tcpip::ip::{Address, Prefix};
use tcpip::neighbour::Reachability;

use super::{address, link, neighbour, path};
use crate::net::devices;
use crate::net::netlink::endpoint::{has_listeners, tell};
use crate::net::netlink::message::{Message, NLM_F_REPLACE};

/// RTNLGRP_LINK and its like.
const LINK: u32 = 1;
const NEIGHBOUR: u32 = 3;
const ADDRESS_V4: u32 = 5;
const ROUTE_V4: u32 = 7;
const ADDRESS_V6: u32 = 9;
const ROUTE_V6: u32 = 11;
const NETLINK_ROUTE: u32 = 0;

/// What has happened to something.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Change {
    /// It is new, or not as it was.
    New,
    /// It has taken another one's place.
    Replaced,
    /// It is gone.
    Gone,
}

impl Change {
    /// A message of the kind for something new, or of the next one.
    fn message(self, kind: u16, body: &[u8]) -> Message {
        let kind = if self == Change::Gone { kind + 1 } else { kind };
        Message::notice(kind, if self == Change::Replaced { NLM_F_REPLACE } else { 0 }, body)
    }
}

/// A device is not as it was.
pub fn tell_device(index: i32, cx: &Cx) {
    if !has_listeners() {
        return;
    }
    if let Some(device) = devices::all(cx).iter().find(|device| device.index == index) {
        tell(NETLINK_ROUTE, LINK, &link::message(|body| Change::New.message(link::NEW, body), device), cx);
    }
}

/// An address of a device is new, or gone.
pub fn tell_address(index: i32, prefix: &Prefix, change: Change, cx: &Cx) {
    if !has_listeners() {
        return;
    }
    let devices = devices::all(cx);
    let Some(device) = devices.iter().find(|device| device.index == index) else { return };
    let known = device.addresses.iter().find(|own| own.prefix == *prefix).copied();
    let own = known.unwrap_or(Address::permanent(*prefix));
    let group = if prefix.address().is_ipv4() { ADDRESS_V4 } else { ADDRESS_V6 };
    tell(NETLINK_ROUTE, group, &address::message(|head| change.message(address::NEW, head), device, &own), cx);
}

/// A route is new, or gone.
pub fn tell_route(route: &tcpip::ip::Route, change: Change, cx: &Cx) {
    if !has_listeners() {
        return;
    }
    let group = if route.prefix.address().is_ipv4() { ROUTE_V4 } else { ROUTE_V6 };
    let way = path::Way::of(route);
    tell(NETLINK_ROUTE, group, &way.message(|head| change.message(path::NEW, head)), cx);
}

/// A program has said who a neighbour is, or has one forgotten.
pub fn tell_neighbour(index: i32, known: (IpAddr, Option<HardwareAddress>, Reachability), change: Change, cx: &Cx) {
    if has_listeners() {
        let message = neighbour::message(|head| change.message(neighbour::NEW, head), index, &known);
        tell(NETLINK_ROUTE, NEIGHBOUR, &message, cx);
    }
}
