//! `/proc/net`: sockets, devices and routes, as netstat(8) and others read them; and `/proc/sys/net`.
//!
//! There is one network, so unlike on Linux the files are the machine's, and each process has a link to them. The lists of sockets are made a table at a time.

use core::net::{IpAddr, Ipv4Addr};
use core::sync::atomic::Ordering;

use frame::Cx;

use super::text::Text;
use super::{Entry, Target, directory, text};
use crate::current::Current;
use crate::error::Result;
use crate::net::devices::mask;
use crate::net::inet::datagram::Kind;
use crate::net::inet::listing::{Family, Listing, Row, V4, V6};
use crate::net::inet::options::MOST_BUFFER;
use crate::net::inet::ports::{EPHEMERAL, FIRST_UNPRIVILEGED};
use crate::net::interface::{self, Traffic};

/// `/proc/net`.
pub const ENTRIES: &[Entry] = &[
    text("arp", |text, _, _, _| {
        line(text, "IP address       HW type     Flags       HW address            Mask     Device")
    }),
    text("dev", devices),
    text("icmp", |text, _, _, cx| sockets(text, Listing::Datagram(Kind::Echo), V4, cx)),
    text("icmp6", |text, _, _, cx| sockets(text, Listing::Datagram(Kind::Echo), V6, cx)),
    text("if_inet6", |text, _, _, _| line(text, "00000000000000000000000000000001 01 80 10 80       lo")),
    text("ipv6_route", routes_v6),
    text("netlink", |text, _, _, _| {
        line(text, "sk               Eth Pid        Groups   Rmem     Wmem     Dump  Locks    Drops    Inode")
    }),
    text("packet", |text, _, _, _| line(text, "sk               RefCnt Type Proto  Iface R Rmem   User   Inode")),
    text("protocols", protocols),
    text("raw", |text, _, _, cx| sockets(text, Listing::Datagram(Kind::Raw), V4, cx)),
    text("raw6", |text, _, _, cx| sockets(text, Listing::Datagram(Kind::Raw), V6, cx)),
    text("pnp", name_servers),
    text("route", routes),
    text("tcp", |text, _, _, cx| sockets(text, Listing::Tcp, V4, cx)),
    text("tcp6", |text, _, _, cx| sockets(text, Listing::Tcp, V6, cx)),
    text("udp", |text, _, _, cx| sockets(text, Listing::Datagram(Kind::Udp), V4, cx)),
    text("udp6", |text, _, _, cx| sockets(text, Listing::Datagram(Kind::Udp), V6, cx)),
];

fn line(text: &mut Text, line: &str) -> Result<()> {
    text.add(format_args!("{line}\n"));
    Ok(())
}

/// What has gone through devices. The loopback device counts nothing: no packets are made.
fn devices(text: &mut Text, _target: &Target, _me: &Current, _cx: &Cx) -> Result<()> {
    line(text, "Inter-|   Receive                                                |  Transmit")?;
    line(
        text,
        " face |bytes    packets errs drop fifo frame compressed multicast|bytes    packets errs drop fifo colls carrier compressed",
    )?;
    line(
        text,
        "    lo:       0       0    0    0    0     0          0         0        0       0    0    0    0     0       0          0",
    )?;
    for interface in interface::all() {
        let (received, sent) = interface.card().traffic();
        let counts = |traffic: &Traffic| {
            [&traffic.bytes, &traffic.frames, &traffic.dropped].map(|count| count.load(Ordering::Relaxed))
        };
        let ([in_bytes, in_frames, in_lost], [out_bytes, out_frames, out_lost]) = (counts(received), counts(sent));
        text.add(format_args!(
            "{:>6}: {in_bytes:>7} {in_frames:>7}    0 {in_lost:>4}    0     0          0         0 {out_bytes:>8} {out_frames:>7}    0 {out_lost:>4}    0     0       0          0\n",
            interface.name
        ));
    }
    Ok(())
}

/// The routes of IPv4, as numbers in hexadecimal in the machine's order of bytes.
fn routes(text: &mut Text, _target: &Target, _me: &Current, cx: &Cx) -> Result<()> {
    /// RTF_UP and RTF_GATEWAY.
    const UP: u16 = 1;
    const GATEWAY: u16 = 2;
    let head = "Iface\tDestination\tGateway \tFlags\tRefCnt\tUse\tMetric\tMask\t\tMTU\tWindow\tIRTT";
    text.add(format_args!("{head:<127}\n"));
    let word = |ip: Ipv4Addr| u32::from_le_bytes(ip.octets());
    let mut add = |name: &str, target: Ipv4Addr, gateway: Ipv4Addr, flags: u16, len: u8| {
        let (target, gateway, mask) = (word(target), word(gateway), word(mask(len)));
        let line = alloc::format!("{name}\t{target:08X}\t{gateway:08X}\t{flags:04X}\t0\t0\t0\t{mask:08X}\t0\t0\t0");
        text.add(format_args!("{line:<127}\n"));
    };
    for route in interface::routes(cx) {
        let name = interface::all().find(|interface| interface.index == route.interface);
        if let (Some(interface), IpAddr::V4(target), Some(IpAddr::V4(gateway))) =
            (name, route.prefix.address(), route.gateway)
        {
            add(&interface.name, target, gateway, UP | GATEWAY, route.prefix.len_bits());
        }
    }
    for interface in interface::all() {
        for prefix in interface.addresses(cx) {
            let IpAddr::V4(own) = prefix.address() else { continue };
            let network = u32::from(own) & u32::from(mask(prefix.len_bits()));
            add(&interface.name, network.into(), Ipv4Addr::UNSPECIFIED, UP, prefix.len_bits());
        }
    }
    Ok(())
}

/// The servers of names that networks have told of, as in a resolv.conf(5).
fn name_servers(text: &mut Text, _target: &Target, _me: &Current, cx: &Cx) -> Result<()> {
    for server in interface::all().flat_map(|interface| interface.name_servers(cx)) {
        text.add(format_args!("nameserver {server}\n"));
    }
    Ok(())
}

fn routes_v6(text: &mut Text, _target: &Target, _me: &Current, _cx: &Cx) -> Result<()> {
    let (own, none) = ("00000000000000000000000000000001", "00000000000000000000000000000000");
    line(text, &alloc::format!("{own} 80 {none} 00 {none} 00000100 00000001 00000000 00000001       lo"))?;
    line(text, &alloc::format!("{own} 80 {none} 00 {none} 00000000 00000002 00000000 80200001       lo"))?;
    line(text, &alloc::format!("{none} 00 {none} 00 {none} ffffffff 00000001 00000000 00200200       lo"))
}

fn protocols(text: &mut Text, _target: &Target, _me: &Current, _cx: &Cx) -> Result<()> {
    line(
        text,
        "protocol  size sockets  memory press maxhdr  slab module     cl co di ac io in de sh ss gs se re sp bi br ha uh gp em",
    )?;
    for name in ["UNIX-STREAM", "UNIX", "NETLINK", "TCPv6", "TCP", "UDPv6", "UDP", "PINGv6", "PING", "RAWv6", "RAW"] {
        text.add(format_args!("{name:<9} 1024      0       0   no       0   yes  kernel      n  n  n  n  n  n  n  n  n  n  n  n  n  n  n  n  n  n  n\n"));
    }
    Ok(())
}

/// How long each line of a list is at least, with spaces behind it.
fn line_len(listing: Listing, family: Family) -> usize {
    match listing {
        _ if family == V6 => 0,
        Listing::Tcp => 149,
        Listing::Datagram(Kind::Raw) => 0,
        Listing::Datagram(_) => 127,
    }
}

fn sockets(text: &mut Text, listing: Listing, family: Family, cx: &Cx) -> Result<()> {
    let first = text.part() as usize;
    if first == 0 {
        head(text, listing, family);
    }
    for part in first..listing.parts() {
        for (index, row) in listing.part(part, family, cx).iter().enumerate() {
            socket(text, listing, family, part * 64 + index, row);
        }
        if part + 1 < listing.parts() && text.ends_part(part as u64 + 1) {
            return Ok(());
        }
    }
    Ok(())
}

fn head(text: &mut Text, listing: Listing, family: Family) {
    const V6_COLUMNS: &str = "local_address                         remote_address                       ";
    let columns = if family == V4 { "local_address rem_address  " } else { V6_COLUMNS };
    let slot = if listing == Listing::Datagram(Kind::Udp) && family == V4 { "   sl" } else { "  sl" };
    let end = if listing == Listing::Tcp { "" } else { " ref pointer drops" };
    let rest = "st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode";
    let line = alloc::format!("{slot}  {columns} {rest}{end}");
    let width = line_len(listing, family);
    text.add(format_args!("{line:<width$}\n"));
}

fn socket(text: &mut Text, listing: Listing, family: Family, number: usize, row: &Row) {
    use core::fmt::Write;
    let mut line = alloc::string::String::new();
    let words =
        |words: &[u32]| words.iter().map(|word| alloc::format!("{word:08X}")).collect::<alloc::string::String>();
    let (local, remote) = (words(&row.local), words(&row.remote));
    let [port, other] = row.ports;
    let width = if listing == Listing::Tcp { 4 } else { 5 };
    let (state, waiting, user, inode) = (row.state, row.waiting, row.user, row.inode);
    // A text of its own cannot fail.
    _ = write!(
        line,
        "{number:>width$}: {local}:{port:04X} {remote}:{other:04X} {state:02X} 00000000:{waiting:08X} 00:00000000 00000000 {user:>5}        0 {inode}"
    );
    let end = if listing == Listing::Tcp { " 1 0000000000000000 100 0 0 10 0" } else { " 2 0000000000000000 0" };
    line.push_str(end);
    let width = line_len(listing, family);
    text.add(format_args!("{line:<width$}\n"));
}

/// A file with a number, which nobody changes.
macro_rules! fixed {
    ($name:literal, $value:expr) => {
        text($name, |text, _, _, _| {
            text.add(format_args!("{}\n", $value));
            Ok(())
        })
    };
}

/// `/proc/sys/net`.
pub const SETTINGS: &[Entry] =
    &[directory("core", CORE), directory("ipv4", IPV4), directory("ipv6", IPV6), directory("unix", UNIX)];

const CORE: &[Entry] = &[
    fixed!("somaxconn", 4096),
    fixed!("rmem_max", MOST_BUFFER),
    fixed!("rmem_default", MOST_BUFFER),
    fixed!("wmem_max", MOST_BUFFER),
    fixed!("wmem_default", MOST_BUFFER),
    fixed!("optmem_max", 20_480),
    fixed!("netdev_max_backlog", 1000),
];

const IPV4: &[Entry] = &[
    text("ip_local_port_range", |text, _, _, _| {
        text.add(format_args!("{}\t{}\n", EPHEMERAL.start(), EPHEMERAL.end()));
        Ok(())
    }),
    fixed!("ip_unprivileged_port_start", FIRST_UNPRIVILEGED),
    fixed!("ip_default_ttl", 64),
    fixed!("ip_forward", 0),
    fixed!("ip_nonlocal_bind", 0),
    fixed!("ping_group_range", "0\t2147483647"),
    fixed!("igmp_max_memberships", 20),
    fixed!("tcp_rmem", "4096\t131072\t6291456"),
    fixed!("tcp_wmem", "4096\t16384\t4194304"),
    fixed!("tcp_fin_timeout", 60),
    fixed!("tcp_keepalive_time", 7200),
    fixed!("tcp_keepalive_intvl", 75),
    fixed!("tcp_keepalive_probes", 9),
    fixed!("tcp_syn_retries", 6),
    fixed!("tcp_synack_retries", 5),
    fixed!("tcp_syncookies", 1),
    fixed!("tcp_max_syn_backlog", 128),
    fixed!("tcp_max_tw_buckets", 16_384),
    fixed!("tcp_tw_reuse", 2),
    fixed!("tcp_timestamps", 1),
    fixed!("tcp_window_scaling", 1),
    fixed!("tcp_sack", 1),
    fixed!("tcp_fastopen", 1),
    fixed!("tcp_congestion_control", "cubic"),
    fixed!("tcp_available_congestion_control", "reno cubic"),
    fixed!("tcp_allowed_congestion_control", "reno cubic"),
    fixed!("udp_rmem_min", 4096),
    fixed!("udp_wmem_min", 4096),
];

const OF_DEVICE: &[Entry] = &[fixed!("disable_ipv6", 0), fixed!("forwarding", 0), fixed!("mtu", 65_536)];

const IPV6: &[Entry] = &[
    fixed!("bindv6only", 0),
    directory("conf", &[directory("all", OF_DEVICE), directory("default", OF_DEVICE), directory("lo", OF_DEVICE)]),
];

const UNIX: &[Entry] = &[fixed!("max_dgram_qlen", 10)];
