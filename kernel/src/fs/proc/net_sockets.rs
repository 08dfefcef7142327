//! The lists of sockets in `/proc/net`, and what was counted. What goes through sockets leaves off behind any of them when its time is over ([`Text::ends_part`]).

use core::sync::atomic::Ordering;

use frame::Cx;

use super::Target;
use super::net::line;
use super::text::Text;
use crate::current::Current;
use crate::error::Result;
use crate::fs::left_sockets;
use crate::net::cursor::Cursor;
use crate::net::inet::datagram::{self, Kind};
use crate::net::inet::listing::{Family, Listing, Name, Place, Row, V4, V6};
use crate::net::inet::tcp::{self, time_wait};
use crate::net::netlink::endpoint as netlink;
use crate::net::unix::listing as unix;
use crate::net::{Type, counters, packet};

/// How far a text about sockets was made: which were told of or counted, and how many.
#[derive(Default)]
pub(super) struct SocketsSoFar {
    inet: Place,
    others: Cursor<u64>,
    counts: [usize; 3],
}

/// What the protocols have counted: each protocol has a line with names and one with numbers. What nothing here counts is not named.
pub(super) fn snmp(text: &mut Text, _target: &Target, _me: &Current, cx: &Cx) -> Result<()> {
    use counters::{
        ICMP_LIMITED, IP_V4, TCP_ACTIVE, TCP_BROKEN, TCP_FAILED, TCP_IN, TCP_OUT, TCP_PASSIVE, TCP_WRONG, UDP_V4,
    };
    // TCP_ESTABLISHED and TCP_CLOSE_WAIT.
    let is_established = |name: Name| name.row(cx).is_some_and(|row| matches!(row.state, 1 | 8));
    let Some([established]) = count(text, [Listing::Tcp], is_established) else { return Ok(()) };
    line(text, "Ip: Forwarding DefaultTTL InReceives InHdrErrors InAddrErrors ForwDatagrams InDelivers OutRequests")?;
    text.add(format_args!(
        "Ip: 2 64 {} {} {} 0 {} {}\n",
        IP_V4.received.get(),
        IP_V4.wrong.get(),
        IP_V4.for_others.get(),
        IP_V4.delivered.get(),
        IP_V4.sent.get()
    ));
    text.add(format_args!("Icmp: OutRateLimitGlobal\nIcmp: {}\n", ICMP_LIMITED.get()));
    line(
        text,
        "Tcp: RtoAlgorithm RtoMin RtoMax MaxConn ActiveOpens PassiveOpens AttemptFails EstabResets CurrEstab InSegs OutSegs InErrs",
    )?;
    text.add(format_args!(
        "Tcp: 1 200 120000 -1 {} {} {} {} {} {} {} {}\n",
        TCP_ACTIVE.get(),
        TCP_PASSIVE.get(),
        TCP_FAILED.get(),
        TCP_BROKEN.get(),
        established,
        TCP_IN.get(),
        TCP_OUT.get(),
        TCP_WRONG.get()
    ));
    line(text, "Udp: InDatagrams NoPorts InErrors OutDatagrams RcvbufErrors")?;
    let (received, no_port, sent) = (UDP_V4.received.get(), UDP_V4.no_port.get(), UDP_V4.sent.get());
    let lost = UDP_V4.no_room.get();
    text.add(format_args!("Udp: {received} {no_port} {lost} {sent} {lost}\n"));
    Ok(())
}

/// The same of IPv6: each number has a line.
pub(super) fn snmp_v6(text: &mut Text, _target: &Target, _me: &Current, _cx: &Cx) -> Result<()> {
    use counters::{IP_V6, UDP_V6};
    let counted = [
        ("Ip6InReceives", &IP_V6.received),
        ("Ip6InHdrErrors", &IP_V6.wrong),
        ("Ip6InAddrErrors", &IP_V6.for_others),
        ("Ip6InDelivers", &IP_V6.delivered),
        ("Ip6OutRequests", &IP_V6.sent),
        ("Ip6InOctets", &IP_V6.received_bytes),
        ("Ip6OutOctets", &IP_V6.sent_bytes),
        ("Udp6InDatagrams", &UDP_V6.received),
        ("Udp6NoPorts", &UDP_V6.no_port),
        ("Udp6InErrors", &UDP_V6.no_room),
        ("Udp6OutDatagrams", &UDP_V6.sent),
        ("Udp6RcvbufErrors", &UDP_V6.no_room),
    ];
    for (name, counter) in counted {
        text.add(format_args!("{name:<32}\t{}\n", counter.get()));
    }
    Ok(())
}

/// What Linux counts beyond the standards.
pub(super) fn netstat(text: &mut Text, _target: &Target, _me: &Current, _cx: &Cx) -> Result<()> {
    use counters::{COOKIES_BACK, COOKIES_SENT, COOKIES_WRONG, IP_V4, LISTENER_FULL, RESET_AT_ONCE, RESET_UNREAD};
    line(
        text,
        "TcpExt: SyncookiesSent SyncookiesRecv SyncookiesFailed ListenOverflows ListenDrops TCPAbortOnData TCPAbortOnClose",
    )?;
    let full = LISTENER_FULL.get();
    text.add(format_args!(
        "TcpExt: {} {} {} {full} {full} {} {}\n",
        COOKIES_SENT.get(),
        COOKIES_BACK.get(),
        COOKIES_WRONG.get(),
        RESET_AT_ONCE.get(),
        RESET_UNREAD.get()
    ));
    line(text, "IpExt: InOctets OutOctets")?;
    text.add(format_args!("IpExt: {} {}\n", IP_V4.received_bytes.get(), IP_V4.sent_bytes.get()));
    Ok(())
}

/// Which sockets are counted.
const COUNTED: [Listing; 3] = [Listing::Tcp, Listing::Datagram(Kind::Udp), Listing::Datagram(Kind::Raw)];

/// How many sockets there are of each kind that are found by others, and how many pages they have: none that are counted.
pub(super) fn socket_counts(text: &mut Text, _target: &Target, _me: &Current, cx: &Cx) -> Result<()> {
    let Some([tcp, udp, raw]) = count(text, COUNTED, |name| name.family(cx) == Some(V4)) else { return Ok(()) };
    let unix = unix::SOCKETS.count().saturating_sub(left_sockets());
    let used = tcp::count() + datagram::count() + unix + netlink::SOCKETS.count() + packet::SOCKETS.count();
    text.add(format_args!("sockets: used {used}\n"));
    text.add(format_args!("TCP: inuse {tcp} orphan 0 tw {} alloc {} mem 0\n", time_wait::count(), tcp::count()));
    text.add(format_args!("UDP: inuse {udp} mem 0\nUDPLITE: inuse 0\n"));
    text.add(format_args!("RAW: inuse {raw}\nFRAG: inuse 0 memory 0\n"));
    Ok(())
}

pub(super) fn socket_counts_v6(text: &mut Text, _target: &Target, _me: &Current, cx: &Cx) -> Result<()> {
    let Some([tcp, udp, raw]) = count(text, COUNTED, |name| name.family(cx) == Some(V6)) else { return Ok(()) };
    text.add(format_args!("TCP6: inuse {tcp}\n"));
    text.add(format_args!("UDP6: inuse {udp}\nUDPLITE6: inuse 0\n"));
    text.add(format_args!("RAW6: inuse {raw}\nFRAG6: inuse 0 memory 0\n"));
    Ok(())
}

/// How many sockets of each list are wanted; `None`: the text goes on counting when it is made further.
fn count<const N: usize>(
    text: &mut Text,
    listings: [Listing; N],
    is_wanted: impl Fn(Name) -> bool,
) -> Option<[usize; N]> {
    for (at, listing) in listings.into_iter().enumerate().skip(text.part() as usize) {
        while let Some(name) = listing.next(&mut text.sockets.inet) {
            text.sockets.counts[at] += usize::from(is_wanted(name));
            if text.ends_part(at as u64) {
                return None;
            }
        }
        text.sockets.inet = Place::default();
    }
    text.sockets.counts.first_chunk().copied()
}

pub(super) fn unix_sockets(text: &mut Text, _target: &Target, _me: &Current, cx: &Cx) -> Result<()> {
    if text.part() == 0 {
        line(text, "Num       RefCount Protocol Flags    Type St Inode Path")?;
    }
    while let Some(name) = unix::SOCKETS.next(&mut text.sockets.others) {
        if let Some(row) = unix::row(name, cx) {
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
                for &byte in &name[..end] {
                    text.add_bytes(&[if byte == 0 { b'@' } else { byte }]);
                }
            }
            text.add_bytes(b"\n");
        }
        if text.ends_part(1) {
            return Ok(());
        }
    }
    Ok(())
}

pub(super) fn packet_sockets(text: &mut Text, _target: &Target, _me: &Current, cx: &Cx) -> Result<()> {
    if text.part() == 0 {
        line(text, "sk               RefCnt Type Proto  Iface R Rmem   User   Inode")?;
    }
    while let Some(name) = packet::SOCKETS.next(&mut text.sockets.others) {
        if let Ok(endpoint) = name.upgrade(cx) {
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
        if text.ends_part(1) {
            return Ok(());
        }
    }
    Ok(())
}

pub(super) fn netlink_sockets(text: &mut Text, _target: &Target, _me: &Current, cx: &Cx) -> Result<()> {
    if text.part() == 0 {
        line(text, "sk               Eth Pid        Groups   Rmem     Wmem     Dump  Locks    Drops    Inode")?;
    }
    while let Some(name) = netlink::SOCKETS.next(&mut text.sockets.others) {
        if let Ok(endpoint) = name.upgrade(cx) {
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
        if text.ends_part(1) {
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

pub(super) fn sockets(text: &mut Text, listing: Listing, family: Family, cx: &Cx) -> Result<()> {
    if text.part() == 0 {
        head(text, listing, family);
    }
    while let Some(name) = listing.next(&mut text.sockets.inet) {
        if let Some(row) = name.row(cx).filter(|row| row.family == family) {
            socket(text, listing, &row);
        }
        if text.ends_part(1) {
            return Ok(());
        }
    }
    Ok(())
}

/// Ends a line that began at `start`, with spaces up to the length of all lines.
fn end_line(text: &mut Text, start: usize, listing: Listing, family: Family) {
    let missing = line_len(listing, family).saturating_sub(text.len() - start);
    text.add(format_args!("{:missing$}\n", ""));
}

fn head(text: &mut Text, listing: Listing, family: Family) {
    const V6_COLUMNS: &str = "local_address                         remote_address                       ";
    let columns = if family == V4 { "local_address rem_address  " } else { V6_COLUMNS };
    let slot = if listing == Listing::Datagram(Kind::Udp) && family == V4 { "   sl" } else { "  sl" };
    let end = if listing == Listing::Tcp { "" } else { " ref pointer drops" };
    let rest = "st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode";
    let start = text.len();
    text.add(format_args!("{slot}  {columns} {rest}{end}"));
    end_line(text, start, listing, family);
}

fn socket(text: &mut Text, listing: Listing, row: &Row) {
    let start = text.len();
    let number = text.sockets.counts[0];
    text.sockets.counts[0] += 1;
    let width = if listing == Listing::Tcp { 4 } else { 5 };
    text.add(format_args!("{number:>width$}:"));
    for (address, port) in [&row.local, &row.remote].into_iter().zip(row.ports) {
        text.add_bytes(b" ");
        for word in &address[..row.family.words()] {
            text.add(format_args!("{word:08X}"));
        }
        text.add(format_args!(":{port:04X}"));
    }
    let (state, waiting, user, inode) = (row.state, row.waiting, row.user, row.inode);
    // The timer of TIME_WAIT, and when it goes off, in hundredths of a second.
    let (timer, when) = row.left.map_or((0, 0), |left| (3, left / 10_000_000));
    let end = match listing {
        Listing::Tcp if row.left.is_some() => " 3 0000000000000000",
        Listing::Tcp => " 1 0000000000000000 100 0 0 10 0",
        Listing::Datagram(_) => " 2 0000000000000000 0",
    };
    text.add(format_args!(
        " {state:02X} 00000000:{waiting:08X} {timer:02X}:{when:08X} 00000000 {user:>5}        0 {inode}{end}"
    ));
    end_line(text, start, listing, row.family);
}
