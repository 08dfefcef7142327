//! `/proc/net`: sockets, devices and routes, as netstat(8) and others read them.
//!
//! There is one network, so unlike on Linux the files are the machine's, and each process has a link to them.

use core::net::{IpAddr, Ipv4Addr};
use core::sync::atomic::Ordering;

use frame::Cx;
use tcpip::neighbour::Reachability;

use super::net_sockets::{
    netlink_sockets, netstat, packet_sockets, snmp, snmp_v6, socket_counts, socket_counts_v6, sockets, unix_sockets,
};
use super::text::Text;
use super::{Entry, Target, text};
use crate::current::Current;
use crate::error::Result;
use crate::net::devices::{self, mask};
use crate::net::inet::datagram::Kind;
use crate::net::inet::listing::{Listing, V4, V6};
use crate::net::interface::{self, Traffic};

/// `/proc/net`.
pub const ENTRIES: &[Entry] = &[
    text("arp", neighbours),
    text("dev", traffic),
    text("icmp", |text, _, _, cx| sockets(text, Listing::Datagram(Kind::Echo), V4, cx)),
    text("icmp6", |text, _, _, cx| sockets(text, Listing::Datagram(Kind::Echo), V6, cx)),
    text("if_inet6", addresses_v6),
    text("ipv6_route", routes_v6),
    text("netlink", netlink_sockets),
    text("netstat", netstat),
    text("packet", packet_sockets),
    text("protocols", protocols),
    text("raw", |text, _, _, cx| sockets(text, Listing::Datagram(Kind::Raw), V4, cx)),
    text("raw6", |text, _, _, cx| sockets(text, Listing::Datagram(Kind::Raw), V6, cx)),
    text("pnp", name_servers),
    text("route", routes),
    text("snmp", snmp),
    text("snmp6", snmp_v6),
    text("sockstat", socket_counts),
    text("sockstat6", socket_counts_v6),
    text("tcp", |text, _, _, cx| sockets(text, Listing::Tcp, V4, cx)),
    text("tcp6", |text, _, _, cx| sockets(text, Listing::Tcp, V6, cx)),
    text("udp", |text, _, _, cx| sockets(text, Listing::Datagram(Kind::Udp), V4, cx)),
    text("unix", unix_sockets),
    text("udp6", |text, _, _, cx| sockets(text, Listing::Datagram(Kind::Udp), V6, cx)),
];

pub(super) fn line(text: &mut Text, line: &str) -> Result<()> {
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
        let line =
            alloc::format!("{name}\t{target:08X}\t{gateway:08X}\t{flags:04X}\t0\t0\t{metric}\t{mask:08X}\t0\t0\t0");
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

/// The routes of IPv6: where they lead, from where, over which router, the metric, how often they are used, flags, the device's name.
fn routes_v6(text: &mut Text, _target: &Target, _me: &Current, cx: &Cx) -> Result<()> {
    /// RTF_UP, RTF_GATEWAY, RTF_NONEXTHOP and RTF_LOCAL.
    const UP: u32 = 1;
    const GATEWAY: u32 = 2;
    const NO_GATEWAY: u32 = 0x20_0000;
    const LOCAL: u32 = 0x8000_0000;
    let mut add = |target: u128, len: u8, gateway: u128, metric: u32, flags: u32, name: &str| {
        let none = 0_u128;
        text.add(format_args!(
            "{target:032x} {len:02x} {none:032x} 00 {gateway:032x} {metric:08x} 00000001 00000000 {flags:08x} {name:>8}\n"
        ));
    };
    let devices = devices::all(cx);
    for route in interface::routes::routes(cx) {
        let name =
            devices.iter().find(|device| device.index as u32 == route.interface).map_or("", |device| device.name);
        if let IpAddr::V6(target) = route.prefix.address() {
            let gateway = route.gateway.map_or(0, |gateway| match gateway {
                IpAddr::V6(gateway) => gateway.into(),
                IpAddr::V4(_) => 0,
            });
            let flags = if gateway == 0 { UP } else { UP | GATEWAY };
            add(target.into(), route.prefix.len_bits(), gateway, route.metric, flags, name);
        }
    }
    for device in devices.iter().filter(|device| device.is_up()) {
        for own in &device.addresses {
            let IpAddr::V6(ip) = own.prefix.address() else { continue };
            let (ip, len) = (u128::from(ip), own.prefix.len_bits());
            if len < 128 || device.is_loopback() {
                let bits = u128::MAX.checked_shl(128 - u32::from(len)).unwrap_or(0);
                add(ip & bits, len, 0, 256, UP, device.name);
            }
            add(ip, 128, 0, 0, UP | NO_GATEWAY | LOCAL, device.name);
        }
    }
    add(0, 0, 0, u32::MAX, NO_GATEWAY | 0x200, "lo");
    Ok(())
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
