//! `ebb-fuzz link`: bytes go from this machine to a guest and back, over a link that loses, doubles, delays, reorders and changes frames.
//!
//! ```text
//!   guest --virtio-net--> QEMU --datagrams--> relay --datagrams--> QEMU without a machine --> its user network, or a tap device --> this machine
//! ```
//!
//! In the guest one connection's bytes go into another one: all that this machine sends must come back as it was. With `--tap` the other end is Linux's TCP on this machine (somebody has made the device, with the address 10.77.0.1/24);
//! else it is that of QEMU's user network. A changed frame has one bit turned, which each checksum notices.

use crate::random::Random;
use anyhow::{Context, Result, bail};
use ebb_guest::{Cpus, Guest, Image, Input, Kernel, Machine, Program};
use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::io::{Read, Write};
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::os::unix::net::UnixDatagram;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};
use tcpip::OutgoingChecksum;
use tcpip::ethernet::{self, EtherType, Frame, HardwareAddress};
use tcpip::ip::{IpHeader, protocol};

/// What `ebb-fuzz link` takes.
#[derive(Clone, clap::Args)]
pub struct Link {
    /// How many megabytes go there and back.
    #[arg(default_value_t = 20)]
    megabytes: u64,
    /// The tap device whose other end is this machine, with the address 10.77.0.1/24.
    #[arg(long, value_name = "NAME")]
    tap: Option<String>,
    /// Of a thousand frames, how many are lost.
    #[arg(long, default_value_t = 10)]
    lost: u64,
    /// How many come twice.
    #[arg(long, default_value_t = 10)]
    doubled: u64,
    /// How many are late, and so come in another order.
    #[arg(long, default_value_t = 30)]
    late: u64,
    /// How many have a bit turned.
    #[arg(long, default_value_t = 5)]
    changed: u64,
    /// How long each takes, in milliseconds.
    #[arg(long, default_value_t = 2)]
    delay: u64,
}

/// How long bytes may take that come back, for each megabyte and at least.
const LIMIT_FOR_EACH: Duration = Duration::from_secs(30);
const LIMIT: Duration = Duration::from_secs(120);
/// This machine's and the guest's address where a tap device is between them.
const HOST: Ipv4Addr = Ipv4Addr::new(10, 77, 0, 1);
const GUEST: Ipv4Addr = Ipv4Addr::new(10, 77, 0, 2);
/// This machine's address at QEMU's user network.
const USER_HOST: Ipv4Addr = Ipv4Addr::new(10, 0, 2, 2);

/// What became of frames.
#[derive(Default)]
struct Counts {
    passed: AtomicU64,
    lost: AtomicU64,
    doubled: AtomicU64,
    late: AtomicU64,
    changed: AtomicU64,
}

/// One direction of the relay.
struct Direction {
    from: UnixDatagram,
    to: UnixDatagram,
    to_path: PathBuf,
    link: Link,
    random: Random,
    counts: Arc<Counts>,
    is_over: Arc<AtomicBool>,
    /// Where answers to questions for an address go, if this machine gives the guest one.
    answers: Option<(UnixDatagram, PathBuf)>,
}

impl Direction {
    fn happens(&mut self, per_mille: u64, count: impl Fn(&Counts) -> &AtomicU64) -> bool {
        let happens = (self.random.below(1000) as u64) < per_mille;
        if happens {
            count(&self.counts).fetch_add(1, Ordering::Relaxed);
        }
        happens
    }

    /// Passes frames on until all is over.
    fn run(mut self) {
        let mut waiting: BinaryHeap<Reverse<(Instant, u64, Vec<u8>)>> = BinaryHeap::new();
        let mut number = 0;
        let mut bytes = [0; 1 << 16];
        while !self.is_over.load(Ordering::Relaxed) {
            while let Some(Reverse((due, _, _))) = waiting.peek()
                && *due <= Instant::now()
            {
                let Some(Reverse((_, _, frame))) = waiting.pop() else { break };
                // Where nobody listens any more, all is over soon.
                let _ = self.to.send_to(&frame, &self.to_path);
            }
            let until = waiting.peek().map_or(Duration::from_millis(50), |Reverse((due, _, _))| {
                due.saturating_duration_since(Instant::now()).max(Duration::from_micros(50))
            });
            let _ = self.from.set_read_timeout(Some(until));
            let Ok(len) = self.from.recv(&mut bytes) else { continue };
            let frame = &mut bytes[..len];
            if let Some((socket, path)) = &self.answers
                && let Some(answer) = give_address(frame)
            {
                let _ = socket.send_to(&answer, path);
                continue;
            }
            let link = self.link.clone();
            if self.happens(link.lost, |counts| &counts.lost) {
                continue;
            }
            if self.happens(link.changed, |counts| &counts.changed) {
                let bit = self.random.below(8 * len);
                frame[bit / 8] ^= 1 << (bit % 8);
            }
            let copies = 1 + u64::from(self.happens(link.doubled, |counts| &counts.doubled));
            for _ in 0..copies {
                let is_late = self.happens(link.late, |counts| &counts.late);
                let micros = link.delay * 1000 + if is_late { self.random.below(4000) as u64 } else { 0 };
                number += 1;
                self.counts.passed.fetch_add(1, Ordering::Relaxed);
                waiting.push(Reverse((Instant::now() + Duration::from_micros(micros), number, frame.to_vec())));
            }
        }
    }
}

/// The answer to a guest's question for an address (RFC 2131), if a frame is one.
fn give_address(bytes: &[u8]) -> Option<Vec<u8>> {
    /// Where the message is in such a frame, and its options in that.
    const MESSAGE: usize = 14 + 20 + 8;
    const OPTIONS: usize = 240;
    let frame = Frame::parse(bytes).ok()?;
    let is_question =
        frame.kind == EtherType::Ipv4 && bytes.get(23) == Some(&protocol::UDP) && bytes.get(36..38)? == [0, 67];
    let message = bytes.get(MESSAGE..).filter(|message| is_question && message.len() > OPTIONS)?;
    let kind = message[OPTIONS..].windows(3).find(|option| option[..2] == [53, 1]).map(|option| option[2])?;
    let mut answer = vec![0; OPTIONS];
    answer[..4].copy_from_slice(&[2, 1, 6, 0]);
    answer[4..8].copy_from_slice(&message[4..8]);
    answer[16..20].copy_from_slice(&GUEST.octets());
    answer[28..44].copy_from_slice(&message[28..44]);
    answer[236..240].copy_from_slice(&[0x63, 0x82, 0x53, 0x63]);
    answer.extend([53, 1, if kind == 1 { 2 } else { 5 }, 54, 4]);
    answer.extend(HOST.octets());
    answer.extend([51, 4, 0, 1, 0, 0, 1, 4, 255, 255, 255, 0, 3, 4]);
    answer.extend(HOST.octets());
    answer.push(255);
    let mut out = vec![0; MESSAGE];
    out.extend_from_slice(&answer);
    let (source, destination) = (HOST.into(), Ipv4Addr::BROADCAST.into());
    let len =
        tcpip::udp::emit(&mut out[34..], answer.len(), (67, 68), source, destination, OutgoingChecksum::Full).ok()?;
    IpHeader::new(source, destination, protocol::UDP).emit(&mut out[14..], len).ok()?;
    let own = HardwareAddress([0x02, 0, 0, 0, 0, 0x77]);
    ethernet::emit(&mut out, HardwareAddress::BROADCAST, own, EtherType::Ipv4).ok()?;
    Some(out)
}

/// A process that is ended with its owner.
struct Running(Child);

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn datagrams(id: &str, own: &Path, other: &Path) -> String {
    format!(
        "dgram,id={id},local.type=unix,local.path={},remote.type=unix,remote.path={}",
        own.display(),
        other.display()
    )
}

/// QEMU without a machine: it passes frames on between datagrams and a network of this machine's.
fn other_end(tap: Option<&str>, own: &Path, other: &Path) -> Result<Running> {
    let network = match tap {
        Some(name) => format!("tap,id=out,ifname={name},script=no,downscript=no"),
        None => "user,id=out".to_owned(),
    };
    let mut command = Command::new("qemu-system-x86_64");
    command.args(["-M", "none", "-nodefaults", "-no-user-config", "-display", "none"]);
    command.args(["-netdev", &network, "-netdev", &datagrams("in", own, other)]);
    command.args(["-netdev", "hubport,id=a,hubid=0,netdev=out", "-netdev", "hubport,id=b,hubid=0,netdev=in"]);
    Ok(Running(command.stdin(Stdio::null()).spawn().context("starting QEMU")?))
}

/// Moves bytes to the guest and back; 1 if they did not come back as they were.
///
/// # Errors
/// A machine did not start.
pub fn run(kernel: &Kernel, cpus: Cpus, seed: u64, link: &Link, directory: &Path) -> Result<u32> {
    let path = |name: &str| directory.join(name);
    let (guest, host) = (path("guest"), path("host"));
    let (guest_relay, host_relay) = (path("guest-relay"), path("host-relay"));
    let bind = |path: &Path| UnixDatagram::bind(path).with_context(|| format!("{}", path.display()));
    let (at_guest, at_host) = (bind(&guest_relay)?, bind(&host_relay)?);
    let _other_end = other_end(link.tap.as_deref(), &host, &host_relay)?;

    let (counts, is_over) = (Arc::new(Counts::default()), Arc::new(AtomicBool::new(false)));
    let direction = |from: &UnixDatagram, to: &UnixDatagram, to_path: &Path, answers, seed| -> Result<Direction> {
        Ok(Direction {
            from: from.try_clone()?,
            to: to.try_clone()?,
            to_path: to_path.to_owned(),
            link: link.clone(),
            random: Random::new(seed),
            counts: Arc::clone(&counts),
            is_over: Arc::clone(&is_over),
            answers,
        })
    };
    let answers = link.tap.is_some().then(|| at_guest.try_clone().map(|socket| (socket, guest.clone()))).transpose()?;
    let there = direction(&at_guest, &at_host, &host, answers, seed)?;
    let back = direction(&at_host, &at_guest, &guest, None, seed ^ 0x5555)?;
    let relays = [there, back].map(|direction| thread::spawn(move || direction.run()));

    let outcome = move_bytes(kernel, cpus, seed, link, (&guest, &guest_relay));
    is_over.store(true, Ordering::Relaxed);
    for relay in relays {
        let _ = relay.join();
    }
    let count = |count: &AtomicU64| count.load(Ordering::Relaxed);
    let Counts { passed, lost, doubled, late, changed } = &*counts;
    println!(
        "the link passed {} frames, lost {}, doubled {}, was late with {}, and changed {}",
        count(passed),
        count(lost),
        count(doubled),
        count(late),
        count(changed)
    );
    match outcome? {
        (bytes, took) if bytes == link.megabytes << 20 => {
            let rate = bytes as f64 / 1e6 / took.as_secs_f64();
            println!(
                "{bytes} bytes went to the guest and back in {:.1} s ({rate:.1} MB/s), and all were whole",
                took.as_secs_f64()
            );
            Ok(0)
        }
        (bytes, _) => {
            println!("only {bytes} of {} bytes came back whole", link.megabytes << 20);
            Ok(1)
        }
    }
}

fn listen() -> Result<(TcpListener, u16)> {
    let listener = TcpListener::bind("0.0.0.0:0")?;
    let port = listener.local_addr()?.port();
    Ok((listener, port))
}

/// Has a guest send back what it gets: how many bytes came back as they were, and how long that took.
fn move_bytes(
    kernel: &Kernel,
    cpus: Cpus,
    seed: u64,
    link: &Link,
    (own, relay): (&Path, &Path),
) -> Result<(u64, Duration)> {
    let ((to_guest, first), (from_guest, second)) = (listen()?, listen()?);
    let host = if link.tap.is_some() { HOST } else { USER_HOST };
    let total = link.megabytes << 20;
    let limit = LIMIT + LIMIT_FOR_EACH * u32::try_from(link.megabytes).unwrap_or(u32::MAX);
    let sender = thread::spawn(move || -> Result<()> {
        let (mut stream, _) = to_guest.accept()?;
        let mut bytes = Bytes::new(seed);
        let mut left = total;
        while left > 0 {
            let piece = bytes.next(left.min(1 << 16) as usize);
            stream.write_all(&piece)?;
            left -= piece.len() as u64;
        }
        stream.shutdown(std::net::Shutdown::Write)?;
        // It is closed by the other side.
        let _ = stream.read(&mut [0]);
        Ok(())
    });
    let receiver = thread::spawn(move || -> Result<(u64, Duration)> {
        let (stream, _) = from_guest.accept()?;
        stream.set_read_timeout(Some(LIMIT))?;
        compare(stream, &mut Bytes::new(seed))
    });

    let mut machine = Machine { cpus, ..Machine::new(kernel.clone()) };
    machine.qemu_options = vec![
        "-netdev".into(),
        datagrams("network", own, relay),
        "-device".into(),
        "virtio-net-pci,netdev=network,disable-legacy=on,romfile=".into(),
    ];
    let mut image = Image::empty();
    image.add_busybox()?;
    image.complete();
    image.add_agent(None)?;
    let mut guest = Guest::boot(machine, &image)?;
    let script = format!(
        "until ping -c 1 -W 1 {host} >/dev/null 2>&1; do i=$((i+1)); [ $i -lt 60 ] || exit 99; done
        nc {host} {first} </dev/null | nc {host} {second}"
    );
    let output = guest.run(&Program::new("sh").arg("-c").arg(&script), Input::Null, Some(limit))?;
    if !output.exit.is_success() {
        bail!("the guest did not reach this machine: {}", String::from_utf8_lossy(&output.stderr));
    }
    let outcome = receiver.join().map_err(|_| anyhow::anyhow!("the receiver panicked"))?;
    sender.join().map_err(|_| anyhow::anyhow!("the sender panicked"))??;
    outcome
}

/// How many bytes of a stream are as they should be.
fn compare(mut stream: TcpStream, expected: &mut Bytes) -> Result<(u64, Duration)> {
    let began = Instant::now();
    let (mut whole, mut bytes) = (0, vec![0; 1 << 16]);
    loop {
        let len = stream.read(&mut bytes)?;
        if len == 0 {
            return Ok((whole, began.elapsed()));
        }
        let right = expected.next(len).iter().zip(&bytes).take_while(|(expected, came)| expected == came).count();
        whole += right as u64;
        if right < len {
            return Ok((whole, began.elapsed()));
        }
    }
}

/// Bytes from a seed.
struct Bytes(u64);

impl Bytes {
    fn new(seed: u64) -> Self {
        Bytes(seed.wrapping_mul(2) + 1)
    }

    fn next(&mut self, len: usize) -> Vec<u8> {
        let next = |_| {
            self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (self.0 >> 56) as u8
        };
        (0..len).map(next).collect()
    }
}
