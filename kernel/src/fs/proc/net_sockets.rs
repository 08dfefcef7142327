//! The lists of sockets in `/proc/net`, which are made a table at a time, and what was counted.

use core::sync::atomic::Ordering;

use frame::Cx;

use super::Target;
use super::net::line;
use super::text::Text;
use crate::current::Current;
use crate::error::Result;
use crate::net::inet::datagram::{self, Kind};
use crate::net::inet::listing::{Family, Listing, Row, V4, V6};
use crate::net::inet::ports::time_waits;
use crate::net::inet::tcp;
use crate::net::netlink::endpoint as netlink;
use crate::net::registry::PARTS;
use crate::net::unix::listing as unix;
use crate::net::{Type, counters, packet};

/// What the protocols have counted: each protocol has a line with names and one with numbers. What nothing here counts is not named.
pub(super) fn snmp(text: &mut Text, _target: &Target, _me: &Current, cx: &Cx) -> Result<()> {
    use counters::{
        ICMP_LIMITED, IP_V4, TCP_ACTIVE, TCP_BROKEN, TCP_FAILED, TCP_IN, TCP_OUT, TCP_PASSIVE, TCP_WRONG, UDP_V4,
    };
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
        established(cx),
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

/// How many connections there are.
fn established(cx: &Cx) -> usize {
    /// TCP_ESTABLISHED and TCP_CLOSE_WAIT.
    const ESTABLISHED: [u8; 2] = [1, 8];
    let of_part = |part| {
        let rows = [V4, V6].map(|family| Listing::Tcp.part(part, family, cx));
        rows.iter().flatten().filter(|row| ESTABLISHED.contains(&row.state)).count()
    };
    (0..Listing::Tcp.parts()).map(of_part).sum()
}

/// How many sockets there are of each kind that are found by others, and how many pages they have: none that are counted.
pub(super) fn socket_counts(text: &mut Text, _target: &Target, _me: &Current, cx: &Cx) -> Result<()> {
    let used =
        tcp::count() + datagram::count() + unix::SOCKETS.count() + netlink::SOCKETS.count() + packet::SOCKETS.count();
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

pub(super) fn socket_counts_v6(text: &mut Text, _target: &Target, _me: &Current, cx: &Cx) -> Result<()> {
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

pub(super) fn unix_sockets(text: &mut Text, _target: &Target, _me: &Current, cx: &Cx) -> Result<()> {
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

pub(super) fn packet_sockets(text: &mut Text, _target: &Target, _me: &Current, cx: &Cx) -> Result<()> {
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

pub(super) fn netlink_sockets(text: &mut Text, _target: &Target, _me: &Current, cx: &Cx) -> Result<()> {
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

pub(super) fn sockets(text: &mut Text, listing: Listing, family: Family, cx: &Cx) -> Result<()> {
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
