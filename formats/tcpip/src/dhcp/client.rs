//! The client (RFC 2131, section 4.4): from nothing to an address, and how it is kept.

use core::net::Ipv4Addr;

use smoltcp::wire::DhcpMessageType;

use crate::Key;
use crate::Malformed;
use crate::ethernet::HardwareAddress;
use crate::time::{Duration, Instant, earlier};

use super::message::{Answer, Lease, Request, parse};

/// The first and the longest time between questions (RFC 2131, section 4.1).
const FIRST_INTERVAL: Duration = Duration::from_secs(4);
const LONGEST_INTERVAL: Duration = Duration::from_secs(64);
/// The shortest time between questions of a client that has an address.
const SHORTEST_RENEWAL: Duration = Duration::from_secs(60);
/// Requests for an offer before it is given up.
const MOST_REQUESTS: u8 = 4;
/// How long a client waits after it has declined an address.
const AFTER_DECLINE: Duration = Duration::from_secs(10);

/// What happened to the address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Event {
    /// There is one, or something of it has changed: use all that the lease says.
    Bound(Lease),
    /// It goes on as it was.
    Renewed,
    /// It must not be used any more.
    Lost,
}

/// A message that was written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Outgoing {
    /// Its bytes.
    pub len: usize,
    /// From which address it is: `0.0.0.0` while there is none.
    pub source: Ipv4Addr,
    /// To whom it goes.
    pub destination: Ipv4Addr,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    /// Asks whether there is a server.
    Selecting,
    /// Asks one for what it has offered.
    Requesting(Lease),
    /// Has an address, since when.
    Bound(Lease, Instant),
    /// Asks its server whether it may keep it.
    Renewing(Lease, Instant),
    /// Asks any server.
    Rebinding(Lease, Instant),
    /// Was stopped.
    Stopped,
}

/// The client of one interface.
#[derive(Debug)]
pub struct Client {
    hardware: HardwareAddress,
    /// Transaction numbers and the spread of questions are made of it.
    key: Key,
    drawn: u64,
    state: State,
    transaction: u32,
    /// When it began to ask.
    began: Instant,
    /// The current question: how often it was asked, and when it is asked again.
    asked: u8,
    ask_at: Instant,
    /// Something that is told once: an address is refused or given back.
    farewell: Option<Request>,
}

impl Client {
    /// One that begins to ask at once. `key` must be secret, for whoever can guess the numbers of transactions can answer.
    pub fn new(now: Instant, hardware: HardwareAddress, key: Key) -> Self {
        let mut client = Client {
            hardware,
            key,
            drawn: 0,
            state: State::Selecting,
            transaction: 0,
            began: now,
            asked: 0,
            ask_at: now,
            farewell: None,
        };
        client.restart(now);
        client
    }

    /// The next number that cannot be guessed.
    fn draw(&mut self) -> u64 {
        self.drawn += 1;
        self.key.hash(&self.drawn.to_le_bytes())
    }

    fn restart(&mut self, at: Instant) {
        self.state = State::Selecting;
        self.begin_asking(at);
    }

    fn begin_asking(&mut self, at: Instant) {
        self.transaction = self.draw() as u32;
        (self.began, self.asked, self.ask_at) = (at, 0, at);
    }

    /// What it has, while it may be used.
    pub fn lease(&self) -> Option<Lease> {
        match self.state {
            State::Bound(lease, _) | State::Renewing(lease, _) | State::Rebinding(lease, _) => Some(lease),
            State::Selecting | State::Requesting(_) | State::Stopped => None,
        }
    }

    /// When [`on_deadline`](Client::on_deadline) is to be called, and then [`transmit`](Client::transmit).
    pub fn deadline(&self) -> Option<Instant> {
        if self.farewell.is_some() {
            return Some(Instant::default());
        }
        match self.state {
            State::Stopped => None,
            State::Selecting | State::Requesting(_) => Some(self.ask_at),
            State::Bound(lease, since) => lease.duration.map(|_| since + lease.renew_after),
            State::Renewing(lease, since) => earlier(Some(self.ask_at), Some(since + lease.rebind_after)),
            State::Rebinding(lease, since) => {
                earlier(Some(self.ask_at), lease.duration.map(|duration| since + duration))
            }
        }
    }

    /// Does what is due.
    pub fn on_deadline(&mut self, now: Instant) -> Option<Event> {
        match self.state {
            State::Requesting(_) if self.asked >= MOST_REQUESTS && self.ask_at <= now => {
                self.restart(now);
                None
            }
            State::Bound(lease, since) | State::Renewing(lease, since) | State::Rebinding(lease, since) => {
                let duration = lease.duration?;
                if now >= since + duration {
                    self.restart(now);
                    return Some(Event::Lost);
                }
                if now >= since + lease.rebind_after && !matches!(self.state, State::Rebinding(..)) {
                    self.begin_asking(now);
                    self.state = State::Rebinding(lease, since);
                } else if now >= since + lease.renew_after && matches!(self.state, State::Bound(..)) {
                    self.begin_asking(now);
                    self.state = State::Renewing(lease, since);
                }
                None
            }
            _ => None,
        }
    }

    /// Writes the next message. `None`: there is none for now.
    pub fn transmit(&mut self, now: Instant, out: &mut [u8]) -> Option<Outgoing> {
        if let Some(farewell) = self.farewell {
            let len = farewell.emit(out).ok()?;
            self.farewell = None;
            let own = farewell.own;
            let destination = own.and(farewell.server).unwrap_or(Ipv4Addr::BROADCAST);
            return Some(Outgoing { len, source: own.unwrap_or(Ipv4Addr::UNSPECIFIED), destination });
        }
        if self.ask_at > now {
            return None;
        }
        let (kind, own, wanted, server, destination) = match self.state {
            State::Selecting => (DhcpMessageType::Discover, None, None, None, Ipv4Addr::BROADCAST),
            State::Requesting(offer) => {
                let (wanted, server) = (Some(offer.address), Some(offer.server));
                (DhcpMessageType::Request, None, wanted, server, Ipv4Addr::BROADCAST)
            }
            State::Renewing(lease, _) => (DhcpMessageType::Request, Some(lease.address), None, None, lease.server),
            State::Rebinding(lease, _) => {
                (DhcpMessageType::Request, Some(lease.address), None, None, Ipv4Addr::BROADCAST)
            }
            State::Bound(..) | State::Stopped => return None,
        };
        let seconds = (now.since(self.began).millis() / 1000).min(u64::from(u16::MAX)) as u16;
        let request = self.request(kind, seconds, own, wanted, server);
        let len = request.emit(out).ok()?;
        self.ask_at = now + self.interval(now);
        self.asked = self.asked.saturating_add(1);
        Some(Outgoing { len, source: own.unwrap_or(Ipv4Addr::UNSPECIFIED), destination })
    }

    fn request(
        &self,
        kind: DhcpMessageType,
        seconds: u16,
        own: Option<Ipv4Addr>,
        wanted: Option<Ipv4Addr>,
        server: Option<Ipv4Addr>,
    ) -> Request {
        Request { kind, transaction: self.transaction, seconds, hardware: self.hardware, own, wanted, server }
    }

    /// How long until the question is asked again: with an address half of what is left, else twice as long as the last time, a second more or less.
    fn interval(&mut self, now: Instant) -> Duration {
        let end = match self.state {
            State::Renewing(lease, since) => Some(since + lease.rebind_after),
            State::Rebinding(lease, since) => lease.duration.map(|duration| since + duration),
            _ => None,
        };
        if let Some(end) = end {
            return end.since(now).part(2).max(SHORTEST_RENEWAL);
        }
        let interval = FIRST_INTERVAL.doubled(u32::from(self.asked)).min(LONGEST_INTERVAL);
        let spread = Duration::from_millis(self.draw() % 2000);
        interval.saturating_sub(Duration::from_secs(1)) + spread
    }

    /// Takes in a message that came from a server.
    ///
    /// # Errors
    ///
    /// It is none.
    pub fn on_message(&mut self, now: Instant, bytes: &[u8]) -> Result<Option<Event>, Malformed> {
        let Some(answer) = parse(bytes, self.transaction, self.hardware)? else { return Ok(None) };
        match (self.state, answer) {
            (State::Selecting, Answer::Offer(offer)) if self.asked > 0 => {
                self.state = State::Requesting(offer);
                // The number stays the same: the request answers the offer.
                (self.asked, self.ask_at) = (0, now);
                Ok(None)
            }
            (State::Requesting(offer), Answer::Ack(lease)) if lease.server == offer.server && self.asked > 0 => {
                self.state = State::Bound(lease, now);
                Ok(Some(Event::Bound(lease)))
            }
            (State::Renewing(old, _) | State::Rebinding(old, _), Answer::Ack(lease)) => {
                self.state = State::Bound(lease, now);
                let changed = (old.address, old.prefix_len, old.router, old.dns, old.mtu)
                    != (lease.address, lease.prefix_len, lease.router, lease.dns, lease.mtu);
                Ok(Some(if changed { Event::Bound(lease) } else { Event::Renewed }))
            }
            (State::Requesting(offer), Answer::Nak { server }) if server == Some(offer.server) => {
                self.restart(now);
                Ok(None)
            }
            (State::Renewing(..) | State::Rebinding(..), Answer::Nak { .. }) => {
                self.restart(now);
                Ok(Some(Event::Lost))
            }
            _ => Ok(None),
        }
    }

    /// Another host has the address that was given: it is refused, and another asked for after some time.
    pub fn decline(&mut self, now: Instant) {
        if let Some(lease) = self.lease() {
            let wanted = Some(lease.address);
            self.farewell = Some(self.request(DhcpMessageType::Decline, 0, None, wanted, Some(lease.server)));
            self.restart(now + AFTER_DECLINE);
        }
    }

    /// Gives the address back, and asks for no other.
    pub fn release(&mut self) {
        if let Some(lease) = self.lease() {
            let own = Some(lease.address);
            self.farewell = Some(self.request(DhcpMessageType::Release, 0, own, None, Some(lease.server)));
        }
        self.state = State::Stopped;
    }
}

#[cfg(test)]
mod tests {
    use alloc::vec::Vec;

    use smoltcp::wire::{DhcpPacket, DhcpRepr, EthernetAddress};

    use super::*;
    use crate::dhcp::LONGEST_MESSAGE;

    const DEVICE: HardwareAddress = HardwareAddress([2, 0, 0, 0, 0, 1]);
    const SERVER: Ipv4Addr = Ipv4Addr::new(10, 0, 2, 2);
    const ADDRESS: Ipv4Addr = Ipv4Addr::new(10, 0, 2, 15);

    fn answer(client: &Client, kind: DhcpMessageType, seconds: u32) -> Vec<u8> {
        let repr = DhcpRepr {
            message_type: kind,
            transaction_id: client.transaction,
            secs: 0,
            client_hardware_address: EthernetAddress(DEVICE.0),
            client_ip: Ipv4Addr::UNSPECIFIED,
            your_ip: ADDRESS,
            server_ip: SERVER,
            router: Some(SERVER),
            subnet_mask: Some(Ipv4Addr::new(255, 255, 255, 0)),
            relay_agent_ip: Ipv4Addr::UNSPECIFIED,
            broadcast: false,
            requested_ip: None,
            client_identifier: None,
            server_identifier: Some(SERVER),
            parameter_request_list: None,
            dns_servers: Some([Ipv4Addr::new(10, 0, 2, 3)].into_iter().collect()),
            max_size: None,
            lease_duration: Some(seconds),
            renew_duration: None,
            rebind_duration: None,
            additional_options: &[],
        };
        let mut bytes = alloc::vec![0; repr.buffer_len()];
        repr.emit(&mut DhcpPacket::new_unchecked(&mut bytes[..])).unwrap();
        bytes
    }

    fn ask(client: &mut Client, now: Instant) -> (DhcpMessageType, Outgoing) {
        let mut out = [0; LONGEST_MESSAGE];
        let sent = client.transmit(now, &mut out).expect("there is something to ask");
        let packet = DhcpPacket::new_checked(&out[..sent.len]).unwrap();
        (DhcpRepr::parse(&packet).unwrap().message_type, sent)
    }

    fn bound(now: Instant, seconds: u32) -> (Client, Lease) {
        let mut client = Client::new(now, DEVICE, Key([1, 2]));
        assert_eq!(ask(&mut client, now).0, DhcpMessageType::Discover);
        let offer = answer(&client, DhcpMessageType::Offer, seconds);
        assert_eq!(client.on_message(now, &offer), Ok(None));
        assert_eq!(ask(&mut client, now).0, DhcpMessageType::Request);
        let ack = answer(&client, DhcpMessageType::Ack, seconds);
        let Ok(Some(Event::Bound(lease))) = client.on_message(now, &ack) else { panic!("{client:?}") };
        (client, lease)
    }

    #[test]
    fn a_lease_says_all_that_the_server_says() {
        let (client, lease) = bound(Instant::default(), 3600);
        assert_eq!((lease.address, lease.prefix_len, lease.router), (ADDRESS, 24, Some(SERVER)));
        assert_eq!(lease.dns[0], Some(Ipv4Addr::new(10, 0, 2, 3)));
        assert_eq!(client.deadline(), Some(Instant::default() + Duration::from_secs(1800)));
    }

    #[test]
    fn a_lease_is_renewed_then_rebound_then_lost() {
        let start = Instant::default();
        let at = |seconds| start + Duration::from_secs(seconds);
        let (mut client, _) = bound(start, 3600);
        assert_eq!(client.on_deadline(at(1800)), None);
        let (kind, sent) = ask(&mut client, at(1800));
        assert_eq!((kind, sent.source, sent.destination), (DhcpMessageType::Request, ADDRESS, SERVER));
        let ack = answer(&client, DhcpMessageType::Ack, 3600);
        assert_eq!(client.on_message(at(1801), &ack), Ok(Some(Event::Renewed)));
        // From now on nobody answers.
        let (mut questions, mut broadcasts) = (0, 0);
        let lost = loop {
            let now = client.deadline().unwrap();
            if client.on_deadline(now) == Some(Event::Lost) {
                break now;
            }
            let mut out = [0; LONGEST_MESSAGE];
            if let Some(sent) = client.transmit(now, &mut out) {
                questions += 1;
                broadcasts += u32::from(sent.destination.is_broadcast());
            }
        };
        assert_eq!(lost, at(1801 + 3600));
        assert!(questions < 20 && broadcasts > 1, "{questions} {broadcasts}");
        assert_eq!(client.lease(), None);
    }

    #[test]
    fn without_a_server_it_asks_less_and_less_often() {
        let mut client = Client::new(Instant::default(), DEVICE, Key([1, 2]));
        let mut now = Instant::default();
        for _ in 0..10 {
            now = client.deadline().unwrap();
            client.on_deadline(now);
            assert_eq!(ask(&mut client, now).0, DhcpMessageType::Discover);
        }
        assert!((300..500).contains(&(now.millis() / 1000)), "{now:?}");
    }

    #[test]
    fn a_refusal_begins_anew() {
        let now = Instant::default() + Duration::from_secs(9);
        let (mut client, _) = bound(now, 100);
        client.on_deadline(now + Duration::from_secs(50));
        let nak = answer(&client, DhcpMessageType::Nak, 0);
        assert_eq!(client.on_message(now, &nak), Ok(Some(Event::Lost)));
        let (mut client, _) = bound(now, 100);
        client.decline(now);
        assert_eq!(ask(&mut client, now).0, DhcpMessageType::Decline);
        assert_eq!(client.deadline(), Some(now + AFTER_DECLINE));
        let (mut client, _) = bound(now, 100);
        client.release();
        let (kind, sent) = ask(&mut client, now);
        assert_eq!((kind, sent.destination), (DhcpMessageType::Release, SERVER));
        assert_eq!(client.deadline(), None);
    }
}
