//! Two connections and a link between them that loses, repeats, delays and changes packets, all from a seed, in simulated time.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::net::SocketAddr;

use tcpip::tcp::{
    Blocked, Connection, Endpoints, Offload, Opening, Segment, Segmentation, Settings, State, Transmission, Verdict,
};
use tcpip::{Checksum, Duration, Instant, OutgoingChecksum};

/// Numbers from a seed.
#[derive(Clone)]
pub struct Random(pub u64);

impl Random {
    pub fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ mixed >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ mixed >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ mixed >> 31
    }

    pub fn below(&mut self, below: u64) -> u64 {
        self.next() % below.max(1)
    }

    /// True so many times of a thousand.
    pub fn happens(&mut self, per_mille: u64) -> bool {
        self.below(1000) < per_mille
    }
}

/// What a link does to packets, of a thousand.
#[derive(Clone, Copy)]
pub struct Link {
    pub latency: Duration,
    /// At most so much more, which puts packets out of order.
    pub jitter: Duration,
    pub lost: u64,
    pub doubled: u64,
    pub corrupted: u64,
    /// Bytes in a second.
    pub bandwidth: u64,
    /// Bytes that wait for the link at most.
    pub queue: u64,
}

impl Default for Link {
    fn default() -> Self {
        Link {
            latency: Duration::from_millis(10),
            jitter: Duration::ZERO,
            lost: 0,
            doubled: 0,
            corrupted: 0,
            bandwidth: 12_500_000,
            queue: 250_000,
        }
    }
}

/// What a program at one end does.
#[derive(Clone, Copy)]
pub struct Program {
    /// It sends so many bytes, then it closes its direction.
    pub sends: u64,
    /// It writes at most so many at a time, once in so long.
    pub write: (usize, Duration),
    /// It reads at most so many at a time, once in so long.
    pub read: (usize, Duration),
    /// It reads nothing before.
    pub reads_from: Instant,
    pub settings: Settings,
}

impl Default for Program {
    fn default() -> Self {
        Program {
            sends: 0,
            write: (usize::MAX, Duration::ZERO),
            read: (usize::MAX, Duration::ZERO),
            reads_from: Instant::from_nanos(0),
            settings: Settings::default(),
        }
    }
}

/// All of a run.
#[derive(Clone, Copy)]
pub struct Scenario {
    pub seed: u64,
    pub link: Link,
    pub programs: [Program; 2],
    pub mtu: usize,
    pub segmentation: Segmentation,
    /// Long segments arrive as they were sent, as if a device had joined their pieces again.
    pub joins: bool,
    /// The initial sequence numbers.
    pub sequences: [u32; 2],
    /// SACK, time stamps and window scaling are taken out of SYNs.
    pub is_plain: bool,
    /// Both send a SYN.
    pub opens_at_once: bool,
}

impl Default for Scenario {
    fn default() -> Self {
        Scenario {
            seed: 1,
            link: Link::default(),
            programs: [Program::default(); 2],
            mtu: 1500,
            segmentation: Segmentation::None,
            joins: false,
            sequences: [1000, 77],
            is_plain: false,
            opens_at_once: false,
        }
    }
}

/// What a run showed.
#[derive(Debug)]
pub struct Outcome {
    pub took: Duration,
    /// The longest time in which no program read or wrote anything, from the first byte to the last.
    pub stall: Duration,
    pub packets: u64,
    pub dropped: u64,
    pub retransmitted: u64,
    pub held_most: usize,
}

/// The byte at a place of a program's stream.
pub fn byte_at(program: usize, at: u64) -> u8 {
    ((at ^ at >> 8 ^ at >> 17).wrapping_mul(31) as u8).wrapping_add(program as u8)
}

struct End {
    connection: Option<Connection>,
    program: Program,
    written: u64,
    read: u64,
    saw_end: bool,
    has_closed: bool,
    next_write: Instant,
    next_read: Instant,
}

type Event = Reverse<(Instant, u64, usize, Vec<u8>)>;

struct World {
    now: Instant,
    scenario: Scenario,
    random: Random,
    ends: [End; 2],
    events: BinaryHeap<Event>,
    serial: u64,
    busy_until: [Instant; 2],
    progress: Instant,
    outcome: Outcome,
    packet: Vec<u8>,
}

pub fn address(end: usize) -> SocketAddr {
    ([10, 0, 0, end as u8 + 1], 4000 + end as u16).into()
}

pub fn opening(scenario: &Scenario, end: usize) -> Opening {
    Opening {
        endpoints: Endpoints { local: address(end), remote: address(1 - end) },
        sequence: scenario.sequences[end],
        timestamp_offset: u32::MAX - 500,
        mtu: scenario.mtu,
        settings: scenario.programs[end].settings,
    }
}

/// Runs until both programs have read and sent everything and both connections are over.
///
/// # Panics
///
/// A byte is wrong, a connection fails, or nothing happens any more.
pub fn run(scenario: Scenario) -> Outcome {
    let start = Instant::from_nanos(1_000_000_000);
    let end = |program: Program| End {
        connection: None,
        program,
        written: 0,
        read: 0,
        saw_end: false,
        has_closed: false,
        next_write: start,
        next_read: start,
    };
    let mut world = World {
        now: start,
        scenario,
        random: Random(scenario.seed),
        ends: scenario.programs.map(end),
        events: BinaryHeap::new(),
        serial: 0,
        busy_until: [start; 2],
        progress: start,
        outcome: Outcome {
            took: Duration::ZERO,
            stall: Duration::ZERO,
            packets: 0,
            dropped: 0,
            retransmitted: 0,
            held_most: 0,
        },
        packet: vec![0; 70_000],
    };
    world.ends[0].connection = Some(Connection::connect(start, &opening(&scenario, 0)));
    if scenario.opens_at_once {
        world.ends[1].connection = Some(Connection::connect(start, &opening(&scenario, 1)));
    }
    world.run();
    world.outcome
}

impl World {
    fn run(&mut self) {
        let mut last_transfer = self.now;
        let mut steps = 0u64;
        loop {
            for end in 0..2 {
                self.settle(end);
            }
            if self.ends.iter().all(|end| end.saw_end && end.has_closed && end.written == end.program.sends) {
                if last_transfer < self.progress {
                    last_transfer = self.progress;
                }
                if self.ends.iter().all(|end| {
                    matches!(end.connection.as_ref().map(Connection::state), Some(State::Closed | State::TimeWait))
                }) {
                    break;
                }
            }
            let timers = self.ends.iter().filter_map(End::wakes_at).min();
            let arrival = self.events.peek().map(|Reverse((at, ..))| *at);
            let next = match (timers, arrival) {
                (Some(timer), Some(arrival)) => timer.min(arrival),
                (timer, arrival) => timer.or(arrival).unwrap_or_else(|| panic!("nothing happens any more: {self:?}")),
            };
            self.now = self.now.max(next);
            steps += 1;
            assert!(steps < 20_000_000 && self.now.nanos() < 4_000_000_000_000, "it does not end: {self:?}");
            if arrival.is_some_and(|at| at <= self.now) {
                let Reverse((_, _, to, bytes)) = self.events.pop().expect("it was looked at");
                self.arrive(to, &bytes);
            }
            for end in &mut self.ends {
                if let Some(connection) = &mut end.connection
                    && connection.deadline().is_some_and(|at| at <= self.now)
                {
                    connection.on_deadline(self.now);
                }
            }
        }
        self.outcome.took = last_transfer.since(Instant::from_nanos(1_000_000_000));
        for end in &self.ends {
            let info = end.connection.as_ref().expect("it is there").info();
            self.outcome.retransmitted += info.bytes_retransmitted;
        }
    }

    fn arrive(&mut self, to: usize, bytes: &[u8]) {
        let (source, destination) = (address(1 - to).ip(), address(to).ip());
        let Ok(mut segment) = Segment::parse(bytes, source, destination, Checksum::Verify) else {
            self.outcome.dropped += 1;
            return;
        };
        if self.scenario.is_plain {
            segment.header.options.sack_permitted = false;
            segment.header.options.timestamps = None;
            segment.header.options.window_scale = None;
        }
        let now = self.now;
        let Some(connection) = &mut self.ends[to].connection else {
            let mut accepted = Connection::accept(now, &opening(&self.scenario, to), &segment);
            if let Some(connection) = &mut accepted {
                connection.settings_mut().time_wait = Duration::from_secs(60);
            }
            self.ends[to].connection = accepted;
            return;
        };
        match connection.on_segment(now, &segment) {
            Verdict::Taken => {}
            // The peer is over: what it would get is a reset for a connection that it has forgotten.
            Verdict::Reply(_) if connection.state() == State::Closed => {}
            other => panic!("{other:?} in {:?} to {segment:?}", connection.state()),
        }
    }

    fn settle(&mut self, index: usize) {
        loop {
            if self.ends[index].step(index, self.now) {
                self.outcome.stall = self.outcome.stall.max(self.now.since(self.progress));
                self.progress = self.now;
            }
            let Some(connection) = &mut self.ends[index].connection else { return };
            self.outcome.held_most = self.outcome.held_most.max(connection.held_bytes());
            let offload = Offload { checksum: OutgoingChecksum::Full, segmentation: self.scenario.segmentation };
            let Some(sent) = connection.transmit(self.now, offload, &mut self.packet) else { return };
            let sent = if self.scenario.joins { Transmission { segment_payload: None, ..sent } } else { sent };
            for packet in cut(&self.packet[..sent.len], sent, index) {
                self.send(1 - index, packet);
            }
        }
    }

    fn send(&mut self, to: usize, mut packet: Vec<u8>) {
        let link = self.scenario.link;
        self.outcome.packets += 1;
        let waiting = self.busy_until[to].since(self.now);
        if self.random.happens(link.lost) || waiting.nanos() * link.bandwidth / 1_000_000_000 > link.queue {
            self.outcome.dropped += 1;
            return;
        }
        let duration = Duration::from_nanos((packet.len() as u64 + 40) * 1_000_000_000 / link.bandwidth);
        self.busy_until[to] = self.busy_until[to].max(self.now) + duration;
        if self.random.happens(link.corrupted) {
            let at = self.random.below(packet.len() as u64) as usize;
            packet[at] ^= 1 << self.random.below(8);
        }
        let copies = if self.random.happens(link.doubled) { 2 } else { 1 };
        for _ in 0..copies {
            let jitter = Duration::from_nanos(self.random.below(link.jitter.nanos() + 1));
            self.serial += 1;
            let at = self.busy_until[to] + link.latency + jitter;
            self.events.push(Reverse((at, self.serial, to, packet.clone())));
        }
    }
}

impl std::fmt::Debug for World {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        writeln!(formatter, "at {:?}, {} packets under way", self.now, self.events.len())?;
        for end in &self.ends {
            writeln!(formatter, "read {} wrote {} end {}", end.read, end.written, end.saw_end)?;
            writeln!(formatter, "{:#?}", end.connection)?;
        }
        Ok(())
    }
}

/// Cuts a long segment as a device does.
fn cut(packet: &[u8], sent: Transmission, from: usize) -> Vec<Vec<u8>> {
    let Some(most) = sent.segment_payload else { return vec![packet.to_vec()] };
    let (source, destination) = (address(from).ip(), address(1 - from).ip());
    let whole = Segment::parse(packet, source, destination, Checksum::Verify).expect("it was made right");
    let count = whole.payload.chunks(most).count();
    let piece = |(index, payload): (usize, &[u8])| {
        let mut header = whole.header;
        header.sequence = header.sequence.wrapping_add((index * most) as u32);
        header.fin &= index + 1 == count;
        header.push &= index + 1 == count;
        let mut bytes = vec![0; header.len_bytes() + payload.len()];
        bytes[header.len_bytes()..].copy_from_slice(payload);
        header.emit(&mut bytes, payload.len(), source, destination, OutgoingChecksum::Full).expect("it fits");
        bytes
    };
    whole.payload.chunks(most).enumerate().map(piece).collect()
}

impl End {
    /// When it has something to do by itself.
    fn wakes_at(&self) -> Option<Instant> {
        let connection = self.connection.as_ref()?;
        let ready = connection.readiness();
        let write = (ready.writable && self.written < self.program.sends).then_some(self.next_write);
        let read = (ready.readable && !self.saw_end).then_some(self.next_read.max(self.program.reads_from));
        [connection.deadline(), write, read].into_iter().flatten().min()
    }

    /// Reads and writes what it may. Whether there was anything.
    fn step(&mut self, index: usize, now: Instant) -> bool {
        let Some(connection) = &mut self.connection else { return false };
        let mut has_moved = false;
        if self.written < self.program.sends && self.next_write <= now {
            let most = (self.program.sends - self.written).min(self.program.write.0 as u64) as usize;
            let mut at = self.written;
            let result = connection.write_with(most, |space| {
                for byte in space.iter_mut() {
                    *byte = byte_at(index, at);
                    at += 1;
                }
                space.len()
            });
            match result {
                Ok(count) => {
                    self.written += count as u64;
                    has_moved = true;
                    self.next_write = now + self.program.write.1;
                }
                Err(Blocked::WouldBlock) => {}
                Err(error) => panic!("writing: {error:?}"),
            }
        }
        let is_up = !matches!(connection.state(), State::SynSent | State::SynReceived);
        if is_up && self.written == self.program.sends && !self.has_closed {
            connection.shut_writing();
            self.has_closed = true;
        }
        if !self.saw_end && self.next_read.max(self.program.reads_from) <= now {
            let mut at = self.read;
            let result = connection.read_with(now, self.program.read.0, |bytes| {
                for &byte in bytes {
                    assert_eq!(byte, byte_at(1 - index, at), "byte {at}");
                    at += 1;
                }
                bytes.len()
            });
            match result {
                Ok(0) => (self.saw_end, has_moved) = (true, true),
                Ok(count) => {
                    self.read += count as u64;
                    has_moved = true;
                    self.next_read = now + self.program.read.1;
                }
                Err(Blocked::WouldBlock) => {}
                Err(error) => panic!("reading: {error:?}"),
            }
        }
        has_moved
    }
}
