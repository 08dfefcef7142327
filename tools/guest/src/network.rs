//! [`Network`]: the network that a machine has a card at.

use std::ffi::OsString;
use std::net::IpAddr;
use std::str::FromStr;

/// A network.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum Network {
    /// None: there is no card.
    #[default]
    None,
    /// QEMU's own, which needs no rights: it gives addresses (10.0.2.15 to the machine), and connects for the guest as a program of this machine.
    User,
    /// A tap device of this machine's, which somebody has made for who runs this.
    Tap(String),
}

impl FromStr for Network {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text {
            "none" => Ok(Network::None),
            "user" => Ok(Network::User),
            _ => match text.strip_prefix("tap=") {
                // What separates options of QEMU's is no part of a device's name.
                Some(name) if !name.is_empty() && !name.contains([',', '=', '/', ' ']) => Ok(Network::Tap(name.into())),
                _ => Err("expected none, user or tap=NAME".into()),
            },
        }
    }
}

/// The protocol of a port.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Protocol {
    Tcp,
    Udp,
}

/// A port of this machine's that leads to one of the guest's.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PublishedPort {
    /// At which of this machine's addresses; `None`: at all.
    address: Option<IpAddr>,
    host: u16,
    guest: u16,
    protocol: Protocol,
}

impl FromStr for PublishedPort {
    type Err = String;

    /// `[ADDRESS:]HOST:GUEST[/tcp|udp]`, as with `docker run -p`.
    fn from_str(text: &str) -> Result<Self, String> {
        let expected = || "expected [ADDRESS:]HOST:GUEST[/tcp|udp], such as 8080:80".to_owned();
        let (ports, protocol) = match text.split_once('/') {
            None | Some((_, "tcp")) => (text.split('/').next().unwrap_or(text), Protocol::Tcp),
            Some((ports, "udp")) => (ports, Protocol::Udp),
            Some(_) => return Err(expected()),
        };
        let (rest, guest) = ports.rsplit_once(':').ok_or_else(expected)?;
        let (address, host) = match rest.rsplit_once(':') {
            Some((address, host)) => {
                let address = address.trim_start_matches('[').trim_end_matches(']');
                (Some(address.parse().map_err(|_| format!("{address} is no address"))?), host)
            }
            None => (None, rest),
        };
        let port = |text: &str| match text.parse() {
            Ok(0) | Err(_) => Err(format!("{text} is no port")),
            Ok(port) => Ok(port),
        };
        Ok(PublishedPort { address, host: port(host)?, guest: port(guest)?, protocol })
    }
}

impl PublishedPort {
    /// As QEMU's user network has it.
    fn rule(&self) -> String {
        let protocol = match self.protocol {
            Protocol::Tcp => "tcp",
            Protocol::Udp => "udp",
        };
        let address = self.address.map(|address| address.to_string()).unwrap_or_default();
        format!(",hostfwd={protocol}:{address}:{}-:{}", self.host, self.guest)
    }
}

/// QEMU's arguments for the card.
pub(crate) fn arguments(network: &Network, ports: &[PublishedPort], has_iommu: bool) -> Vec<OsString> {
    let backend = match network {
        Network::None => return Vec::new(),
        Network::User => {
            let rules: String = ports.iter().map(PublishedPort::rule).collect();
            format!("user,id=network{rules}")
        }
        Network::Tap(name) => format!("tap,id=network,ifname={name},script=no,downscript=no"),
    };
    let behind = if has_iommu { "on" } else { "off" };
    let device = format!("virtio-net-pci,netdev=network,disable-legacy=on,romfile=,iommu_platform={behind}");
    vec!["-netdev".into(), backend.into(), "-device".into(), device.into()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ports_are_written_as_docker_has_them() {
        let rule = |text: &str| text.parse::<PublishedPort>().map(|port| port.rule());
        assert_eq!(rule("8080:80").unwrap(), ",hostfwd=tcp::8080-:80");
        assert_eq!(rule("127.0.0.1:53:5353/udp").unwrap(), ",hostfwd=udp:127.0.0.1:53-:5353");
        for bad in ["", "80", "80:", ":80", "0:80", "80:65536", "80:80/sctp", "here:80:80", "80:80/tcp/udp"] {
            assert!(rule(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn networks_have_names() {
        assert_eq!("user".parse(), Ok(Network::User));
        assert_eq!("tap=tap0".parse(), Ok(Network::Tap("tap0".into())));
        for bad in ["", "tap", "tap=", "tap=a,script=x", "bridge"] {
            assert!(bad.parse::<Network>().is_err(), "{bad}");
        }
        assert!(arguments(&Network::None, &[], false).is_empty());
        let all = arguments(&Network::User, &["1:2".parse().unwrap(), "3:4/udp".parse().unwrap()], true);
        assert_eq!(all[1], "user,id=network,hostfwd=tcp::1-:2,hostfwd=udp::3-:4");
    }
}
