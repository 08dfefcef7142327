//! What is due at an interface: questions that are asked again, messages of its configuration, addresses that end.

use alloc::boxed::Box;
use alloc::vec::Vec;

use frame::Cx;
use tasks::{Body, Next};
use tcpip::Instant;
use tcpip::dhcp::{self, CLIENT_PORT, LONGEST_MESSAGE, SERVER_PORT};
use tcpip::ethernet::{HEADER_BYTES, HardwareAddress};
use tcpip::ip::{IpHeader, protocol};
use tcpip::neighbour::Autoconfiguration;
use tcpip::{OutgoingChecksum, udp};

use super::{Interface, State, now};
use crate::sched::{self, Parameters};
use crate::time::{self, Timeline};

/// The task.
struct InterfaceTask(&'static Interface);

/// Starts the task of an interface.
pub fn start(interface: &'static Interface) {
    let task = Box::new(InterfaceTask(interface));
    tasks::spawn(&sched::SCHEDULER, task, |words, _| sched::initialise(words, Parameters::default(), None));
}

impl Body for InterfaceTask {
    fn run_async(&mut self, cx: &mut Cx) -> Next {
        let waker = tasks::prepare(cx);
        self.0.news.register(waker, cx);
        self.0.work(cx);
        let deadline = self.0.state.lock(cx).deadline();
        let alarm = match deadline {
            Some(deadline) if deadline <= now() => {
                tasks::finish_wait(cx);
                return Next::Again;
            }
            deadline => deadline.map(|deadline| time::wake_at(Timeline::Boot, deadline.nanos(), waker, cx)),
        };
        tasks::park_async(cx);
        drop(alarm);
        Next::Again
    }
}

impl State {
    /// When the task is to look again.
    fn deadline(&self) -> Option<Instant> {
        [
            self.neighbours.deadline(),
            self.reassembler.deadline(),
            self.autoconfiguration.as_ref().and_then(Autoconfiguration::deadline),
            self.addresses.deadline(),
            self.dhcp.as_ref().and_then(dhcp::Client::deadline),
        ]
        .into_iter()
        .flatten()
        .min()
    }
}

impl Interface {
    /// Does what is due.
    fn work(&self, cx: &Cx) {
        let mut lost: Vec<Vec<u8>> = Vec::new();
        let mut state = self.state.lock(cx);
        let inner = &mut *state;
        inner.neighbours.on_deadline(now(), |_, packet| lost.push(packet));
        inner.reassembler.expire(now());
        let mut has_other_router = false;
        if let Some(autoconfiguration) = &mut inner.autoconfiguration {
            let router = autoconfiguration.default_router();
            autoconfiguration.on_deadline(now(), &mut inner.addresses);
            has_other_router = autoconfiguration.default_router() != router;
        }
        inner.addresses.expire(now());
        let event = inner.dhcp.as_mut().and_then(|client| client.on_deadline(now()));
        let mut discovery = Vec::new();
        let mut configuration = inner.autoconfiguration.as_mut();
        while let Some(message) = configuration.as_mut().and_then(|one| one.next_message(now(), &inner.addresses)) {
            discovery.push(message);
        }
        let at = HEADER_BYTES + 20 + udp::HEADER_BYTES;
        let mut frame = alloc::vec![0; at + LONGEST_MESSAGE];
        let question = inner.dhcp.as_mut().and_then(|client| client.transmit(now(), &mut frame[at..]));
        let mut questions = Vec::new();
        while let Some(question) = inner.neighbours.next_question() {
            questions.extend(inner.addresses.source_for(question.target).map(|source| (question, source)));
        }
        drop(state);
        if has_other_router {
            self.use_router(cx);
        }
        for (question, source) in questions {
            self.send_question(&question, source, cx);
        }
        for (message, source, to) in discovery {
            self.send_ndisc(&message, source, to, None, cx);
        }
        if let Some(event) = event {
            self.lease_changed(&event, cx);
        }
        self.tell_addresses(cx);
        let Some(question) = question else { return };
        let (source, destination) = (question.source.into(), question.destination.into());
        let ports = (CLIENT_PORT, SERVER_PORT);
        let sum = OutgoingChecksum::Full;
        let Ok(len) = udp::emit(&mut frame[HEADER_BYTES + 20..], question.len, ports, source, destination, sum) else {
            return;
        };
        let header = IpHeader::new(source, destination, protocol::UDP);
        frame.truncate(HEADER_BYTES + 20 + len);
        if header.emit(&mut frame[HEADER_BYTES..], len).is_err() {
            return;
        }
        // What is lost is asked again.
        let _ = if question.destination.is_broadcast() {
            self.send_frame(HardwareAddress::BROADCAST, frame, cx)
        } else {
            self.send_to_neighbour(destination, frame, cx)
        };
    }
}
