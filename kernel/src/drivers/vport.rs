//! Ports to the host as files: `/dev/vport0p1` is port 1 of the first device that has such ([`virtio::console`](super::virtio::console)).

use alloc::boxed::Box;
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

use frame::Cx;
use frame::mm::{Reader, Writer};
use refs::Waker;

use super::virtio::console::{self, Console, MOST_PORTS};
use super::virtio::port::Port;
use super::virtio::queue::Broken;
use crate::error::{Errno, Result};
use crate::fs::{Events, File, FileEnd, VfsCaller};
use crate::reclaim::Held;
use crate::step::Step;

/// The major number. Linux takes any that is free.
pub const MAJOR: u32 = 249;

/// A port that is there.
pub struct Named {
    /// Its file in `/dev`.
    pub file: String,
    /// Its minor number.
    pub minor: u32,
    /// What the host calls it.
    pub name: Box<[u8]>,
}

/// The ports that the devices have just now.
pub fn ports(cx: &Cx) -> Vec<Named> {
    let mut all = Vec::new();
    for (device, console) in console::devices().enumerate() {
        for number in 0..console.most_ports() {
            if let Some(port) = console.port(number).filter(|port| port.is_plugged(cx)) {
                let minor = (device * MOST_PORTS + number) as u32;
                all.push(Named { file: format!("vport{device}p{number}"), minor, name: port.name(cx) });
            }
        }
    }
    all
}

/// An open port.
struct PortFile {
    console: &'static Console,
    port: &'static Port,
}

/// Opens a port.
///
/// # Errors
/// ENXIO: there is none, or it is a console. ENODEV: it is gone. EBUSY: somebody else has it open. ENOMEM.
pub fn open(minor: u32, cx: &Cx) -> Result<Box<dyn File>> {
    let (device, number) = (minor as usize / MOST_PORTS, minor as usize % MOST_PORTS);
    let console = console::devices().nth(device).ok_or(Errno::ENXIO)?;
    let port = console.port(number).ok_or(Errno::ENXIO)?;
    port.open(console.domain(), cx)?;
    console.tell();
    Ok(Box::new(PortFile { console, port }))
}

impl PortFile {
    /// What came of a step, unless the device breaks the rules: then it is cut off, and gone.
    fn outcome(&self, outcome: core::result::Result<Step<usize>, Broken>, cx: &Cx) -> Step<usize> {
        outcome.unwrap_or_else(|Broken| {
            self.console.give_up(cx);
            Err(Errno::ENODEV.into())
        })
    }
}

impl Drop for PortFile {
    fn drop(&mut self) {
        self.port.close();
        self.console.tell();
    }
}

impl File for PortFile {
    fn end(&self) -> FileEnd {
        FileEnd::Seen
    }

    fn class(&self) -> Held {
        Held::Port
    }

    fn read(&self, _offset: u64, to: &mut Writer<'_>, _me: &dyn VfsCaller, cx: &Cx) -> Step<usize> {
        self.outcome(self.port.read(to, cx), cx)
    }

    fn write(&self, _offset: u64, from: &mut Reader<'_>, _me: &dyn VfsCaller, cx: &Cx) -> Step<usize> {
        self.outcome(self.port.write(from, cx), cx)
    }

    fn poll(&self, interest: Events, waker: Option<Waker>, cx: &Cx) -> Events {
        self.port.poll(interest, waker, cx)
    }
}
