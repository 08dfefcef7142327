//! `/proc/sys/net`: settings of the network.

use frame::Cx;

use super::node::Node;
use super::text::Text;
use super::{Entry, What, directory, setting, text};
use crate::credentials::Capability;
use crate::current::Current;
use crate::error::{Errno, Result};
use crate::net::filter::MOST_BYTES as MOST_FILTER_BYTES;
use crate::net::inet::options::MOST_BUFFER;
use crate::net::inet::ports::{FIRST_UNPRIVILEGED, ephemeral, set_ephemeral};
use crate::net::inet::settings::{KEEP_COUNT_DEFAULT, KEEP_IDLE, KEEP_INTERVAL, SYN_COOKIES};
use crate::net::inet::tcp::time_wait;
use crate::net::{SOMAXCONN, inet, interface};
use crate::sysctl;

/// A file with a number, which nobody changes.
macro_rules! fixed {
    ($name:literal, $value:expr) => {
        text($name, |text, _, _, _| {
            text.add(format_args!("{}\n", $value));
            Ok(())
        })
    };
}

/// A file for a [`Tunable`](crate::sysctl::Tunable).
macro_rules! tunable {
    ($name:literal, $tunable:expr) => {
        setting(
            $name,
            |text, _, _, _| {
                text.add(format_args!("{}\n", $tunable.get()));
                Ok(())
            },
            |bytes, _, me, cx| {
                let [value] = told(bytes, me, cx)?;
                $tunable.set(value)
            },
        )
    };
}

/// A file with a number that can be no other: what it would turn on is not there (EOPNOTSUPP).
macro_rules! only {
    ($name:literal, $value:literal) => {
        setting(
            $name,
            |text, _, _, _| {
                text.add(format_args!("{}\n", $value));
                Ok(())
            },
            |bytes, _, me, cx| if told::<u32, 1>(bytes, me, cx)? == [$value] { Ok(()) } else { Err(Errno::EOPNOTSUPP) },
        )
    };
}

/// The numbers that a program wrote which may change the network.
///
/// # Errors
/// EPERM; EINVAL: they are none, or fewer.
fn told<T: TryFrom<i128>, const N: usize>(bytes: &[u8], me: &Current, cx: &Cx) -> Result<[T; N]> {
    me.require(Capability::NetAdmin, cx)?;
    let numbers: alloc::vec::Vec<T> = sysctl::words(bytes).take(N).map(sysctl::number).collect::<Result<_>>()?;
    numbers.try_into().map_err(|_| Errno::EINVAL)
}

fn pair<T: core::fmt::Display>(text: &mut Text, (first, last): (T, T)) -> Result<()> {
    text.add(format_args!("{first}\t{last}\n"));
    Ok(())
}

/// `/proc/sys/net`.
pub const ENTRIES: &[Entry] =
    &[directory("core", CORE), directory("ipv4", IPV4), directory("ipv6", IPV6), directory("unix", UNIX)];

const CORE: &[Entry] = &[
    tunable!("somaxconn", SOMAXCONN),
    fixed!("rmem_max", MOST_BUFFER),
    fixed!("rmem_default", MOST_BUFFER),
    fixed!("wmem_max", MOST_BUFFER),
    fixed!("wmem_default", MOST_BUFFER),
    fixed!("optmem_max", MOST_FILTER_BYTES),
    fixed!("netdev_max_backlog", 1000),
];

const IPV4: &[Entry] = &[
    setting(
        "ip_local_port_range",
        |text, _, _, _| pair(text, ephemeral().into_inner()),
        |bytes, _, me, cx| {
            let [first, last] = told(bytes, me, cx)?;
            set_ephemeral(first, last)
        },
    ),
    tunable!("ip_unprivileged_port_start", FIRST_UNPRIVILEGED),
    fixed!("ip_default_ttl", 64),
    only!("ip_forward", 0),
    fixed!("ip_nonlocal_bind", 0),
    setting(
        "ping_group_range",
        |text, _, _, _| pair(text, inet::echo_groups().into_inner()),
        |bytes, _, me, cx| {
            let [first, last] = told(bytes, me, cx)?;
            inet::set_echo_groups(first, last)
        },
    ),
    fixed!("igmp_max_memberships", 20),
    fixed!("tcp_rmem", "4096\t131072\t6291456"),
    fixed!("tcp_wmem", "4096\t16384\t4194304"),
    fixed!("tcp_fin_timeout", 60),
    tunable!("tcp_keepalive_time", KEEP_IDLE),
    tunable!("tcp_keepalive_intvl", KEEP_INTERVAL),
    tunable!("tcp_keepalive_probes", KEEP_COUNT_DEFAULT),
    fixed!("tcp_syn_retries", 6),
    fixed!("tcp_synack_retries", 5),
    tunable!("tcp_syncookies", SYN_COOKIES),
    fixed!("tcp_max_syn_backlog", 128),
    tunable!("tcp_max_tw_buckets", time_wait::MOST),
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

const OF_LOOPBACK: &[Entry] = &[only!("disable_ipv6", 0), only!("forwarding", 0), fixed!("mtu", 65_536)];

/// What is said of all interfaces but the loopback device, now and at any time.
const OF_ALL: &[Entry] = &[
    setting(
        "disable_ipv6",
        |text, _, _, cx| {
            let is_disabled = interface::all().next().is_some() && !interface::all().any(|one| one.may_have_v6(cx));
            text.add(format_args!("{}\n", u8::from(is_disabled)));
            Ok(())
        },
        |bytes, _, me, cx| {
            let [is_disabled] = told::<u8, 1>(bytes, me, cx)?;
            for interface in interface::all() {
                interface.set_v6(is_disabled == 0, cx);
            }
            Ok(())
        },
    ),
    only!("forwarding", 0),
    fixed!("mtu", 65_536),
];

/// What is said of one interface.
struct OfCard<const NUMBER: usize>;

impl<const NUMBER: usize> OfCard<NUMBER> {
    const ENTRIES: &'static [Entry] = &[
        setting(
            "disable_ipv6",
            |text, _, _, cx| {
                let is_disabled = !interface::all().nth(NUMBER).ok_or(Errno::ENOENT)?.may_have_v6(cx);
                text.add(format_args!("{}\n", u8::from(is_disabled)));
                Ok(())
            },
            |bytes, _, me, cx| {
                let [is_disabled] = told::<u8, 1>(bytes, me, cx)?;
                interface::all().nth(NUMBER).ok_or(Errno::ENOENT)?.set_v6(is_disabled == 0, cx);
                Ok(())
            },
        ),
        only!("forwarding", 0),
        text("mtu", |text, _, _, _| {
            text.add(format_args!("{}\n", interface::all().nth(NUMBER).ok_or(Errno::ENOENT)?.mtu()));
            Ok(())
        }),
    ];
}

/// The directories of `conf`: behind the first ones those of the interfaces, of which there may be fewer.
static CONF: [Entry; OTHERS + interface::MOST_INTERFACES] = [
    directory("all", OF_ALL),
    directory("default", OF_ALL),
    directory("lo", OF_LOOPBACK),
    directory("eth0", OfCard::<0>::ENTRIES),
    directory("eth1", OfCard::<1>::ENTRIES),
    directory("eth2", OfCard::<2>::ENTRIES),
    directory("eth3", OfCard::<3>::ENTRIES),
    directory("eth4", OfCard::<4>::ENTRIES),
    directory("eth5", OfCard::<5>::ENTRIES),
    directory("eth6", OfCard::<6>::ENTRIES),
    directory("eth7", OfCard::<7>::ENTRIES),
];
const OTHERS: usize = 3;

const IPV6: &[Entry] = &[
    fixed!("bindv6only", 0),
    Entry {
        name: "conf",
        permissions: 0o555,
        what: What::Special(|target| Node::directory(target, &CONF[..OTHERS + interface::all().count()])),
    },
];

const UNIX: &[Entry] = &[fixed!("max_dgram_qlen", 10)];
