//! RFC 9293's states as tables: what comes in, what goes out, and where that leads.
//!
//! A segment is written as `flags sequence length acknowledgment window`, with numbers from each side's initial one: `SA 0 0 1 5000` is a SYN and ACK. The
//! acknowledgment is `-` where there is none, and the window may be left out: it is 5000, or any of those that go out.

#[expect(dead_code, reason = "only the addresses are used")]
mod link;

use std::net::IpAddr;

use State::*;
use Step::*;
use tcpip::tcp::{
    Blocked, Connection, Endpoints, Error, Header, KeepAlive, Offload, Opening, Segment, Segmentation, Settings, State,
    Verdict,
};
use tcpip::{Checksum, Duration, Instant, OutgoingChecksum};

const OUR_ISN: u32 = u32::MAX - 1;
const THEIR_ISN: u32 = 5000;
const OFFLOAD: Offload = Offload { checksum: OutgoingChecksum::Full, segmentation: Segmentation::None };

#[derive(Clone, Copy, Debug)]
enum Step {
    /// A segment comes.
    In(&'static str),
    /// This is sent next.
    Out(&'static str),
    /// A segment comes, to which this is the reply.
    Reply(&'static str, &'static str),
    /// Nothing is sent.
    Quiet,
    /// The state is this.
    Is(State),
    /// The program writes so many bytes.
    Write(usize),
    /// It reads, and gets so many.
    Read(usize),
    /// It reads the end of the stream.
    ReadEnd,
    /// Reading fails.
    ReadFails(Error),
    ShutWrite,
    ShutRead,
    Close,
    Abort,
    /// So many milliseconds pass, and timers go off.
    Wait(u64),
}

struct Table {
    now: Instant,
    connection: Connection,
}

fn opening(settings: Settings) -> Opening {
    Opening {
        endpoints: Endpoints { local: link::address(0), remote: link::address(1) },
        sequence: OUR_ISN,
        timestamp_offset: 0,
        mtu: 1500,
        settings,
    }
}

fn settings() -> Settings {
    Settings { receive_initial: 10_000, receive_limit: 10_000, ..Settings::default() }
}

/// Reads a segment's text. Its numbers are those of a sender with `ours` as its initial one.
fn header(text: &str, ours: u32, theirs: u32) -> (Header, usize, bool) {
    let fields: Vec<&str> = text.split(' ').collect();
    let flag = |flag| fields[0].contains(flag);
    let number = |at: usize| fields[at].parse::<i64>().expect("it is a number") as u32;
    let acknowledgment = (fields[3] != "-").then(|| theirs.wrapping_add(number(3)));
    assert_eq!(flag('A'), acknowledgment.is_some(), "{text}");
    let header = Header {
        source_port: 4001,
        destination_port: 4000,
        sequence: ours.wrapping_add(number(1)),
        acknowledgment,
        syn: flag('S'),
        fin: flag('F'),
        rst: flag('R'),
        window: fields.get(4).map_or(5000, |window| window.parse().expect("it is a number")),
        ..Header::default()
    };
    (header, number(2) as usize, fields.len() > 4)
}

impl Table {
    fn connect(settings: Settings) -> Self {
        let now = Instant::from_nanos(1_000_000_000);
        Table { now, connection: Connection::connect(now, &opening(settings)) }
    }

    fn transmit(&mut self) -> Option<(Header, usize)> {
        let mut packet = [0; 2000];
        let sent = self.connection.transmit(self.now, OFFLOAD, &mut packet)?;
        let (source, destination): (IpAddr, IpAddr) = (link::address(0).ip(), link::address(1).ip());
        let segment = Segment::parse(&packet[..sent.len], source, destination, Checksum::Verify).expect("it is right");
        Some((segment.header, segment.payload.len()))
    }

    fn check(&self, what: Option<(Header, usize)>, text: &str, step: usize) {
        let Some((got, len)) = what else { panic!("step {step}: nothing instead of {text}") };
        let (expected, expected_len, has_window) = header(text, OUR_ISN, THEIR_ISN);
        let parts = |header: &Header| {
            (header.syn, header.fin, header.rst, header.acknowledgment, has_window.then_some(header.window))
        };
        assert_eq!(
            (parts(&got), got.sequence.wrapping_sub(OUR_ISN), len),
            (parts(&expected), expected.sequence.wrapping_sub(OUR_ISN), expected_len),
            "step {step}: {text}; state {:?}",
            self.connection.state()
        );
    }

    fn feed(&mut self, text: &str) -> Verdict {
        let (header, len, _) = header(text, THEIR_ISN, OUR_ISN);
        let payload = vec![b'x'; len];
        self.connection.on_segment(self.now, &Segment { header, payload: &payload })
    }

    fn run(&mut self, steps: &[Step]) -> &mut Self {
        for (index, step) in steps.iter().enumerate() {
            match *step {
                In(text) => assert_eq!(self.feed(text), Verdict::Taken, "step {index}: {text}"),
                Out(text) => {
                    let sent = self.transmit();
                    self.check(sent, text, index);
                }
                Reply(text, reply) => match self.feed(text) {
                    Verdict::Reply(header) => self.check(Some((header, 0)), reply, index),
                    other => panic!("step {index}: {other:?}"),
                },
                Quiet => assert_eq!(self.transmit(), None, "step {index}"),
                Is(state) => assert_eq!(self.connection.state(), state, "step {index}"),
                Write(count) => assert_eq!(self.connection.write(&vec![b'y'; count]), Ok(count), "step {index}"),
                Read(count) => {
                    let mut bytes = vec![0; 100_000];
                    assert_eq!(self.connection.read(self.now, &mut bytes), Ok(count), "step {index}");
                }
                ReadEnd => assert_eq!(self.connection.read(self.now, &mut [0]), Ok(0), "step {index}"),
                ReadFails(error) => {
                    let result = self.connection.read(self.now, &mut [0]);
                    assert_eq!(result, Err(Blocked::Failed(error)), "step {index}");
                }
                ShutWrite => self.connection.shut_writing(),
                ShutRead => self.connection.shut_reading(),
                Close => self.connection.close(self.now),
                Abort => self.connection.abort(),
                Wait(millis) => self.wait(millis),
            }
        }
        self
    }

    fn wait(&mut self, millis: u64) {
        let end = self.now + Duration::from_millis(millis);
        while let Some(at) = self.connection.deadline().filter(|&at| at <= end) {
            self.now = self.now.max(at);
            self.connection.on_deadline(self.now);
            if at == end {
                break;
            }
        }
        self.now = end;
    }
}

/// An established connection, whose window of 5000 bytes is open.
fn established() -> Table {
    established_with(settings())
}

fn established_with(settings: Settings) -> Table {
    let mut table = Table::connect(settings);
    table.run(&[Out("S 0 0 -"), In("SA 0 0 1"), Is(Established), Out("A 1 0 1"), Quiet]);
    table
}

#[test]
fn an_active_open() {
    established();
    // The answer acknowledges something else: RFC 9293, section 3.10.7.3.
    Table::connect(settings()).run(&[
        Out("S 0 0 -"),
        Reply("SA 0 0 9", "R 9 0 -"),
        Is(SynSent),
        In("R 0 0 -"),
        Is(SynSent),
        Reply("A 0 0 0", "R 0 0 -"),
        In("RA 0 0 9"),
        Is(SynSent),
        In("RA 0 0 1"),
        Is(Closed),
        ReadFails(Error::Refused),
        ReadEnd,
    ]);
}

#[test]
fn a_syn_is_sent_again_less_and_less_often() {
    let mut table = Table::connect(Settings { syn_retries: 3, ..settings() });
    table.run(&[
        Out("S 0 0 -"),
        Wait(999),
        Quiet,
        Wait(1),
        Out("S 0 0 -"),
        Wait(1999),
        Quiet,
        Wait(1),
        Out("S 0 0 -"),
        Wait(4000),
        Out("S 0 0 -"),
        Wait(8000),
        Is(Closed),
        ReadFails(Error::TimedOut),
    ]);
}

#[test]
fn a_simultaneous_open() {
    Table::connect(settings()).run(&[
        Out("S 0 0 -"),
        In("S 0 0 -"),
        Is(SynReceived),
        Out("SA 0 0 1"),
        Quiet,
        In("SA 0 0 1"),
        Is(Established),
        Quiet,
    ]);
}

fn accepted() -> Table {
    let now = Instant::from_nanos(1_000_000_000);
    let (header, ..) = header("S 0 0 -", THEIR_ISN, OUR_ISN);
    let connection = Connection::accept(now, &opening(settings()), &Segment { header, payload: &[] }).expect("a SYN");
    Table { now, connection }
}

#[test]
fn a_passive_open() {
    accepted().run(&[Is(SynReceived), Out("SA 0 0 1"), Quiet, In("A 1 0 1"), Is(Established), Quiet]);
    // The SYN comes again.
    accepted().run(&[Out("SA 0 0 1"), In("S 0 0 -"), Out("SA 0 0 1"), Quiet]);
    // Data comes with the acknowledgment.
    accepted().run(&[Out("SA 0 0 1"), In("A 1 100 1"), Is(Established), Out("A 1 0 101"), Read(100)]);
    // It is refused, or something else is acknowledged.
    accepted().run(&[Out("SA 0 0 1"), In("R 1 0 -"), Is(Closed), Quiet]);
    accepted().run(&[Out("SA 0 0 1"), Reply("A 1 0 7", "R 7 0 -"), Is(SynReceived)]);
    // It closes at once.
    accepted().run(&[Out("SA 0 0 1"), In("FA 1 0 1"), Is(CloseWait), Out("A 1 0 2"), ReadEnd]);
    // The program closes before it is open.
    accepted().run(&[Out("SA 0 0 1"), ShutWrite, Quiet, In("A 1 0 1"), Is(FinWait1), Out("FA 1 0 1")]);
}

#[test]
fn a_passive_close() {
    established().run(&[
        In("FA 1 10 1"),
        Is(CloseWait),
        Out("A 1 0 12"),
        Read(10),
        ReadEnd,
        Write(5),
        Out("A 1 5 12"),
        Close,
        Is(LastAck),
        Out("FA 6 0 12"),
        In("A 12 0 7"),
        Is(Closed),
        Quiet,
    ]);
}

#[test]
fn an_active_close() {
    established().run(&[
        Write(5),
        ShutWrite,
        Is(FinWait1),
        Out("FA 1 5 1"),
        In("A 1 0 6"),
        Is(FinWait1),
        In("A 1 0 7"),
        Is(FinWait2),
        // The other direction goes on.
        In("A 1 100 7"),
        Out("A 7 0 101"),
        Read(100),
        In("FA 101 0 7"),
        Is(TimeWait),
        Out("A 7 0 102"),
        // The last acknowledgment was lost.
        Wait(30_000),
        In("FA 101 0 7"),
        Out("A 7 0 102"),
        Wait(59_999),
        Is(TimeWait),
        Wait(1),
        Is(Closed),
    ]);
}

#[test]
fn a_simultaneous_close() {
    established().run(&[
        ShutWrite,
        Out("FA 1 0 1"),
        In("FA 1 0 1"),
        Is(Closing),
        Out("A 2 0 2"),
        In("A 2 0 2"),
        Is(TimeWait),
        Quiet,
    ]);
    // Their FIN acknowledges ours.
    established().run(&[ShutWrite, Out("FA 1 0 1"), In("FA 1 0 2"), Is(TimeWait), Out("A 2 0 2")]);
}

#[test]
fn time_wait_lets_a_new_connection_through() {
    let mut table = established();
    table.run(&[ShutWrite, Out("FA 1 0 1"), In("FA 1 0 2"), Is(TimeWait), Out("A 2 0 2")]);
    // RFC 1337: a reset does not end it.
    table.run(&[In("R 2 0 -"), Is(TimeWait), In("S 1 0 -"), Out("A 2 0 2")]);
    assert_eq!(table.feed("S 100000 0 -"), Verdict::Reopen);
}

#[test]
fn a_fin_waits_for_what_is_before_it() {
    established().run(&[
        In("FA 11 10 1"),
        Is(Established),
        Out("A 1 0 1"),
        In("A 1 10 1"),
        Is(CloseWait),
        Out("A 1 0 22"),
        Read(20),
        ReadEnd,
    ]);
}

#[test]
fn only_an_exact_reset_is_believed() {
    // RFC 5961, section 3.
    established().run(&[
        In("R 2 0 -"),
        Is(Established),
        Out("A 1 0 1"),
        In("R 20000 0 -"),
        Is(Established),
        Quiet,
        In("R 1 0 -"),
        Is(Closed),
        ReadFails(Error::Reset),
    ]);
}

#[test]
fn what_cannot_be_is_challenged_but_not_for_ever() {
    // RFC 5961, sections 4 and 5.
    established().run(&[
        In("S 1 0 -"),
        Out("A 1 0 1"),
        In("SA 500 0 1"),
        Out("A 1 0 1"),
        In("A 1 0 2"),
        Out("A 1 0 1"),
        In("A 1 10 -20000"),
        Out("A 1 0 1"),
        In("A 20000 0 1"),
        Out("A 1 0 1"),
        In("S 1 0 -"),
        Quiet,
        Wait(1000),
        In("S 1 0 -"),
        Out("A 1 0 1"),
        Is(Established),
    ]);
}

#[test]
fn data_is_acknowledged_soon() {
    let mut table = established();
    // At the beginning at once.
    for at in 0..16 {
        let segment: &'static str = format!("A {} 10 1", 1 + 10 * at).leak();
        let answer: &'static str = format!("A 1 0 {}", 11 + 10 * at).leak();
        table.run(&[In(segment), Out(answer)]);
    }
    table.run(&[
        // Then after 40 ms, or with two segments.
        In("A 161 536 1"),
        Quiet,
        Wait(39),
        Quiet,
        Wait(1),
        Out("A 1 0 697"),
        In("A 697 536 1"),
        Quiet,
        In("A 1233 536 1"),
        Out("A 1 0 1769"),
        // What comes twice is always acknowledged.
        In("A 1233 536 1"),
        Out("A 1 0 1769"),
        In("A 1233 536 1"),
        Out("A 1 0 1769"),
        // And what comes after a gap.
        In("A 2000 10 1"),
        Out("A 1 0 1769"),
    ]);
}

#[test]
fn a_full_buffer_closes_the_window_and_reading_opens_it() {
    established().run(&[
        In("A 1 5000 1"),
        Out("A 1 0 5001 5000"),
        In("A 5001 5000 1"),
        Out("A 1 0 10001 0"),
        // A probe.
        In("A 10001 1 1"),
        Out("A 1 0 10001 0"),
        In("A 10000 0 1"),
        Out("A 1 0 10001 0"),
        Read(10000),
        Out("A 1 0 10001 10000"),
        In("A 10001 1 1"),
        Out("A 1 0 10002"),
        Read(1),
    ]);
}

#[test]
fn a_window_that_closes_is_probed_until_it_opens() {
    let mut table = established();
    table.run(&[In("A 1 1 1 0"), Out("A 1 0 2"), Write(700), Quiet]);
    // The time-out after a round trip of nothing: 200 ms, and doubled each time.
    table.run(&[
        Wait(199),
        Quiet,
        Wait(1),
        Out("A 0 0 2"),
        In("A 2 0 1 0"),
        Wait(399),
        Quiet,
        Wait(1),
        Out("A 0 0 2"),
        In("A 2 0 1 0"),
        Quiet,
        In("A 2 0 1 5000"),
        Out("A 1 536 2"),
        Out("A 537 164 2"),
    ]);
}

#[test]
fn data_that_is_never_acknowledged_ends_it() {
    let mut table = established_with(Settings { data_retries: 3, ..settings() });
    table.run(&[
        Write(10),
        Out("A 1 10 1"),
        Wait(200),
        Out("A 1 10 1"),
        Wait(400),
        Out("A 1 10 1"),
        Wait(800),
        Out("A 1 10 1"),
        Wait(1600),
        Is(Closed),
        ReadFails(Error::TimedOut),
    ]);
    let mut table = established_with(Settings { user_timeout: Some(Duration::from_millis(700)), ..settings() });
    table.run(&[
        Write(10),
        Out("A 1 10 1"),
        Wait(600),
        Is(Established),
        Wait(100),
        Is(Closed),
        ReadFails(Error::TimedOut),
    ]);
}

#[test]
fn an_idle_peer_is_probed() {
    let keep_alive = KeepAlive { idle: Duration::from_secs(100), interval: Duration::from_secs(10), count: 2 };
    let mut table = established_with(Settings { keep_alive: Some(keep_alive), ..settings() });
    table.run(&[
        Wait(99_999),
        Quiet,
        Wait(1),
        Out("A 0 0 1"),
        In("A 1 0 1"),
        Quiet,
        Wait(100_000),
        Out("A 0 0 1"),
        Wait(10_000),
        Out("A 0 0 1"),
        Wait(10_000),
        Is(Closed),
        Out("RA 1 0 1"),
        ReadFails(Error::TimedOut),
    ]);
    // We answer such a probe.
    established().run(&[In("A 0 0 1"), Out("A 1 0 1")]);
}

#[test]
fn an_end_that_loses_data_is_a_reset() {
    // Something was not read.
    established().run(&[In("A 1 10 1"), Out("A 1 0 11"), Close, Is(Closed), Out("RA 1 0 11"), Quiet]);
    // Something comes when nobody reads any more.
    established().run(&[Close, Out("FA 1 0 1"), Reply("A 1 10 2", "R 2 0 -"), Is(Closed), Quiet]);
    // At once.
    established().run(&[Write(10), Abort, Out("RA 1 0 1"), Quiet, ReadFails(Error::Aborted)]);
    // Who only reads no more gets no reset.
    established().run(&[ShutRead, In("A 1 10 1"), Out("A 1 0 11"), ReadEnd, Is(Established)]);
}

#[test]
fn an_orphan_does_not_wait_for_ever() {
    established().run(&[
        Close,
        Out("FA 1 0 1"),
        In("A 1 0 2"),
        Is(FinWait2),
        Wait(59_999),
        Is(FinWait2),
        Wait(1),
        Is(Closed),
    ]);
}

#[test]
fn an_orphan_keeps_nothing_that_arrived_out_of_order() {
    let mut table = established();
    table.run(&[In("A 1001 1400 1"), Out("A 1 0 1"), In("A 4001 1400 1"), Out("A 1 0 1")]);
    assert!(table.connection.held_bytes() > 2800);
    table.run(&[Close, Out("FA 1 0 1")]);
    assert!(table.connection.held_bytes() < 512, "{} bytes", table.connection.held_bytes());
    table.run(&[Reply("A 1 1000 2", "R 2 0 -"), Is(Closed), Quiet]);
}

#[test]
fn small_segments_wait_for_acknowledgments() {
    established().run(&[
        Write(10),
        Out("A 1 10 1"),
        Write(10),
        Quiet,
        Write(10),
        Quiet,
        In("A 1 0 11"),
        Out("A 11 20 1"),
    ]);
    let mut table = established_with(Settings { no_delay: true, ..settings() });
    table.run(&[Write(10), Out("A 1 10 1"), Write(10), Out("A 11 10 1"), Quiet]);
    let mut table = established_with(Settings { cork: true, ..settings() });
    table.run(&[
        Write(10),
        Quiet,
        Write(600),
        Out("A 1 536 1"),
        Quiet,
        Wait(199),
        In("A 1 0 537"),
        Quiet,
        Wait(1),
        Out("A 537 74 1"),
    ]);
}

#[test]
fn three_duplicates_are_a_loss() {
    established().run(&[
        Write(2144),
        Out("A 1 536 1"),
        Out("A 537 536 1"),
        Out("A 1073 536 1"),
        Out("A 1609 536 1"),
        Quiet,
        In("A 1 0 1"),
        In("A 1 0 1"),
        Quiet,
        In("A 1 0 1"),
        Out("A 1 536 1"),
        Quiet,
        // A partial acknowledgment: the next is lost, too.
        In("A 1 0 537"),
        Out("A 537 536 1"),
        In("A 1 0 2145"),
        Quiet,
    ]);
}

#[test]
fn a_smaller_path_is_heeded() {
    let mut table = established();
    table.run(&[Write(600), Out("A 1 536 1"), Out("A 537 64 1"), Quiet]);
    // Of a packet that was never sent.
    table.connection.on_path_mtu(table.now, 552, OUR_ISN.wrapping_add(5000));
    table.run(&[Quiet]);
    table.connection.on_path_mtu(table.now, 300, OUR_ISN.wrapping_add(1));
    // 552 bytes are the least that is believed: 512 of data.
    table.run(&[Out("A 1 512 1"), Out("A 513 24 1")]);
}

#[test]
fn a_host_that_cannot_be_reached_ends_only_an_open() {
    let mut table = Table::connect(settings());
    table.run(&[Out("S 0 0 -")]);
    table.connection.on_unreachable(Error::HostUnreachable, OUR_ISN.wrapping_add(1));
    table.run(&[Is(SynSent)]);
    table.connection.on_unreachable(Error::HostUnreachable, OUR_ISN);
    table.run(&[Is(Closed), ReadFails(Error::HostUnreachable)]);
    let mut table = established_with(Settings { data_retries: 0, ..settings() });
    table.run(&[Write(1), Out("A 1 1 1")]);
    table.connection.on_unreachable(Error::HostUnreachable, OUR_ISN.wrapping_add(1));
    table.run(&[Is(Established), Wait(200), Is(Closed), ReadFails(Error::HostUnreachable)]);
}

#[test]
fn readiness_follows() {
    let mut table = Table::connect(settings());
    assert!(!table.connection.readiness().writable && !table.connection.readiness().readable);
    table.run(&[Out("S 0 0 -"), In("SA 0 0 1"), Out("A 1 0 1")]);
    assert!(table.connection.readiness().writable && !table.connection.readiness().readable);
    table.run(&[In("FA 1 1 1"), Out("A 1 0 3")]);
    let ready = table.connection.readiness();
    assert!(ready.readable && ready.is_peer_done && !ready.is_hung_up && ready.writable);
    table.run(&[ShutWrite, Out("FA 1 0 3")]);
    assert!(table.connection.readiness().is_hung_up);
    table.run(&[In("A 3 0 2"), Is(Closed)]);
    assert!(table.connection.is_finished());
}

#[test]
fn an_idle_connection_is_small() {
    let table = established();
    println!("a connection has {} bytes", size_of::<Connection>());
    assert!(size_of::<Connection>() <= 1024 && table.connection.held_bytes() <= 256);
}
