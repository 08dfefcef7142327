//! `/proc/net`: sockets, devices and routes, as netstat(8) and others read them; and `/proc/sys/net`.
//!
//! There is one network, so unlike on Linux the files are the machine's, and each process has a link to them. The lists of sockets are made a table at a time.

use core::net::{IpAddr, Ipv4Addr};
use core::sync::atomic::Ordering;

use frame::Cx;
use tcpip::neighbour::Reachability;

use super::text::Text;
use super::{Entry, Target, directory, text};
use crate::current::Current;
use crate::error::Result;
use crate::net::devices::{self, mask};
use crate::net::inet::datagram::{self, Kind};
use crate::net::inet::listing::{Family, Listing, Row, V4, V6};
use crate::net::inet::options::MOST_BUFFER;
use crate::net::inet::ports::{EPHEMERAL, FIRST_UNPRIVILEGED, time_waits};
use crate::net::inet::tcp;
use crate::net::interface::{self, Traffic};
use crate::net::netlink::endpoint as netlink;
use crate::net::packet;
use crate::net::registry::PARTS;
use crate::net::Type;
use crate::net::unix::listing as unix;

/// `/proc/net`.
pub const ENTRIES: &[Entry] = &[
    text("arp", neighbours),
    text("dev", traffic),
    text("icmp", |text, _, _, cx| sockets(text, Listing::Datagram(Kind::Echo), V4, cx)),
    text("icmp6", |text, _, _, cx| sockets(text, Listing::Datagram(Kind::Echo), V6, cx)),
    text("if_inet6", addresses_v6),
    text("ipv6_route", routes_v6),
    text("netlink", netlink_sockets),
    text("packet", packet_sockets),
    text("protocols", protocols),
    text("raw", |text, _, _, cx| sockets(text, Listing::Datagram(Kind::Raw), V4, cx)),
    text("raw6", |text, _, _, cx| sockets(text, Listing::Datagram(Kind::Raw), V6, cx)),
    text("pnp", name_servers),
    text("route", routes),
    text("sockstat", socket_counts),
    text("sockstat6", socket_counts_v6),
    text("tcp", |text, _, _, cx| sockets(text, Listing::Tcp, V4, cx)),
    text("tcp6", |text, _, _, cx| sockets(text, Listing::Tcp, V6, cx)),
    text("udp", |text, _, _, cx| sockets(text, Listing::Datagram(Kind::Udp), V4, cx)),
    text("unix", unix_sockets),
    text("udp6", |text, _, _, cx| sockets(text, Listing::Datagram(Kind::Udp), V6, cx)),
];

fn line(text: &mut Text, line: &str) -> Result<()> {
    text.add(format_args!("{line}\n"));
    Ok(())
}

/// What has gone through devices. The loopback device counts nothing: no packets are made.
fn traffic(text: &mut Text, _target: &Target, _me: &Current, _cx: &Cx) -> Result<()> {
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
    /// RTF_UP, RTF_GATEWAY and RTF_HOST.
    const UP: u16 = 1;
    const GATEWAY: u16 = 2;
    const HOST: u16 = 4;
    let head = "Iface\tDestination\tGateway \tFlags\tRefCnt\tUse\tMetric\tMask\t\tMTU\tWindow\tIRTT";
    text.add(format_args!("{head:<127}\n"));
    let word = |ip: Ipv4Addr| u32::from_le_bytes(ip.octets());
    let mut add = |name: &str, target: Ipv4Addr, gateway: Ipv4Addr, flags: u16, len: u8, metric: u32| {
        let (target, gateway, mask) = (word(target), word(gateway), word(mask(len)));
        let line = alloc::format!("{name}\t{target:08X}\t{gateway:08X}\t{flags:04X}\t0\t0\t{metric}\t{mask:08X}\t0\t0\t0");
        text.add(format_args!("{line:<127}\n"));
    };
    for route in interface::routes::routes(cx) {
        let name = interface::all().find(|interface| interface.index == route.interface);
        if let (Some(interface), IpAddr::V4(target)) = (name, route.prefix.address()) {
            let len = route.prefix.len_bits();
            let host = if len == 32 { HOST } else { 0 };
            match route.gateway {
                Some(IpAddr::V4(gateway)) => {
                    add(&interface.name, target, gateway, UP | GATEWAY | host, len, route.metric);
                }
                _ => add(&interface.name, target, Ipv4Addr::UNSPECIFIED, UP | host, len, route.metric),
            }
        }
    }
    for interface in interface::all() {
        for prefix in interface.addresses(cx).iter().map(|own| own.prefix) {
            let IpAddr::V4(own) = prefix.address() else { continue };
            let network = u32::from(own) & u32::from(mask(prefix.len_bits()));
            if interface.is_up() {
                add(&interface.name, network.into(), Ipv4Addr::UNSPECIFIED, UP, prefix.len_bits(), 0);
            }
        }
    }
    Ok(())
}

/// The neighbours of IPv4.
fn neighbours(text: &mut Text, _target: &Target, _me: &Current, cx: &Cx) -> Result<()> {
    /// ATF_COM and ATF_PERM.
    const COMPLETE: u8 = 2;
    const PERMANENT: u8 = 4;
    line(text, "IP address       HW type     Flags       HW address            Mask     Device")?;
    for interface in interface::all() {
        for (ip, hardware, known) in interface.neighbours(cx) {
            let IpAddr::V4(ip) = ip else { continue };
            let [a, b, c, d, e, f] = hardware.map_or([0; 6], |hardware| hardware.0);
            let flags = match known {
                Reachability::Permanent => COMPLETE | PERMANENT,
                _ if hardware.is_some() => COMPLETE,
                _ => 0,
            };
            text.add(format_args!(
                "{:<16} 0x{:<10x}0x{flags:<10x}{a:02x}:{b:02x}:{c:02x}:{d:02x}:{e:02x}:{f:02x}     *        {}\n",
                alloc::format!("{ip}"),
                1,
                interface.name
            ));
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

/// The addresses of IPv6: the address, the device's number, the length of the network, how far it reaches, its flags, the device's name.
fn addresses_v6(text: &mut Text, _target: &Target, _me: &Current, cx: &Cx) -> Result<()> {
    const PERMANENT: u8 = 0x80;
    for device in devices::all(cx) {
        for prefix in device.addresses.iter().map(|own| own.prefix) {
            let IpAddr::V6(ip) = prefix.address() else { continue };
            let scope = match ip {
                ip if ip.is_loopback() => 0x10,
                ip if ip.is_unicast_link_local() => 0x20,
                _ => 0,
            };
            let (ip, len) = (u128::from(ip), prefix.len_bits());
            text.add(format_args!(
                "{ip:032x} {:02x} {len:02x} {scope:02x} {PERMANENT:02x} {:>8}\n",
                device.index, device.name
            ));
        }
    }
    Ok(())
}

/// How many sockets there are of each kind that are found by others, and how many pages they have: none that are counted.
fn socket_counts(text: &mut Text, _target: &Target, _me: &Current, cx: &Cx) -> Result<()> {
    let used = tcp::count()
        + datagram::count()
        + unix::SOCKETS.len()
        + netlink::SOCKETS.len()
        + packet::SOCKETS.len();
    let count = |listing: Listing| count(listing, V4, cx);
    text.add(format_args!("sockets: used {used}\n"));
    text.add(format_args!(
        "TCP: inuse {} orphan 0 tw {} alloc {} mem 0\n",
        count(Listing::Tcp),
        time_waits(),
        tcp::count()
    ));
    text.add(format_args!("UDP: inuse {} mem 0\nUDPLITE: inuse 0\n", count(Listing::Datagram(Kind::Udp))));
    text.add(format_args!("RAW: inuse {}\nFRAG: inuse 0 memory 0\n", count(Listing::Datagram(Kind::Raw))));
    Ok(())
}

fn socket_counts_v6(text: &mut Text, _target: &Target, _me: &Current, cx: &Cx) -> Result<()> {
    let count = |listing: Listing| count(listing, V6, cx);
    text.add(format_args!("TCP6: inuse {}\n", count(Listing::Tcp)));
    text.add(format_args!("UDP6: inuse {}\nUDPLITE6: inuse 0\n", count(Listing::Datagram(Kind::Udp))));
    text.add(format_args!("RAW6: inuse {}\nFRAG6: inuse 0 memory 0\n", count(Listing::Datagram(Kind::Raw))));
    Ok(())
}

/// How many sockets of a kind are found by others.
fn count(listing: Listing, family: Family, cx: &Cx) -> usize {
    (0..listing.parts()).map(|part| listing.count(part, family, cx)).sum()
}

fn unix_sockets(text: &mut Text, _target: &Target, _me: &Current, cx: &Cx) -> Result<()> {
    let first = text.part() as usize;
    if first == 0 {
        line(text, "Num       RefCount Protocol Flags    Type St Inode Path")?;
    }
    for part in first..PARTS {
        for row in unix::SOCKETS.part(part).into_iter().filter_map(|name| unix::row(name, cx)) {
            // SS_UNCONNECTED and SS_CONNECTED; __SO_ACCEPTCON.
            let (state, flags) = match row.state {
                unix::State::Unconnected => (1, 0),
                unix::State::Connected => (3, 0),
                unix::State::Listening => (1, 0x10000),
            };
            let (kind, inode) = (row.kind, row.inode);
            text.add(format_args!("0000000000000000: 00000002 00000000 {flags:08X} {kind:04X} {state:02X} {inode:>5}"));
            if let Some(name) = &row.name {
                text.add_bytes(b" ");
                let is_abstract = name.first() == Some(&0);
                let end = if is_abstract { name.len() } else { name.len().saturating_sub(1) };
                let shown: alloc::vec::Vec<u8> =
                    name[..end].iter().map(|&byte| if byte == 0 { b'@' } else { byte }).collect();
                text.add_bytes(&shown);
            }
            text.add_bytes(b"\n");
        }
        if part + 1 < PARTS && text.ends_part(part as u64 + 1) {
            return Ok(());
        }
    }
    Ok(())
}

fn packet_sockets(text: &mut Text, _target: &Target, _me: &Current, cx: &Cx) -> Result<()> {
    let first = text.part() as usize;
    if first == 0 {
        line(text, "sk               RefCnt Type Proto  Iface R Rmem   User   Inode")?;
    }
    for part in first..PARTS {
        for endpoint in packet::SOCKETS.part(part).iter().filter_map(|name| name.upgrade(cx).ok()) {
            let told = endpoint.told(cx);
            text.add(format_args!(
                "0000000000000000 3      {:<4} {:04x}   {:<5} {} {:<6} {:<6} {:<6}\n",
                if endpoint.kind == Type::Raw { 3 } else { 2 },
                told.protocol,
                told.device,
                u8::from(told.protocol != 0),
                told.used,
                told.user,
                endpoint.inode.load(Ordering::Relaxed)
            ));
        }
        if part + 1 < PARTS && text.ends_part(part as u64 + 1) {
            return Ok(());
        }
    }
    Ok(())
}

fn netlink_sockets(text: &mut Text, _target: &Target, _me: &Current, cx: &Cx) -> Result<()> {
    let first = text.part() as usize;
    if first == 0 {
        line(text, "sk               Eth Pid        Groups   Rmem     Wmem     Dump  Locks    Drops    Inode")?;
    }
    for part in first..PARTS {
        for endpoint in netlink::SOCKETS.part(part).iter().filter_map(|name| name.upgrade(cx).ok()) {
            let told = endpoint.told(cx);
            text.add(format_args!(
                "0000000000000000 {:<3} {:<10} {:08x} {:<8} {:<8} {:<5} {:<8} {:<8} {:<8}\n",
                endpoint.protocol.number(),
                told.port,
                told.groups as u32,
                told.used,
                0,
                u8::from(told.is_dumping),
                2,
                told.drops,
                endpoint.inode.load(Ordering::Relaxed)
            ));
        }
        if part + 1 < PARTS && text.ends_part(part as u64 + 1) {
            return Ok(());
        }
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
