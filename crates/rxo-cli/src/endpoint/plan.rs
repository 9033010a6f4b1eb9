//! The plan of a command that is one end of a connection (`rxo cat`, `sink`, `source`), from its flags.

use std::net::{IpAddr, SocketAddr};

use anyhow::{Error, Result};
use rxo::switch::MacAddress;
use rxo::tcp::AckPolicy;
use rxo_coalesce::{Config as EngineConfig, Policy};
use rxo_host::HostConfig;

use crate::exit::usage;
use crate::flags::{AcksFlag, EndpointFlags, PolicyFlags, WorkersFlags};
use crate::hosting::HostPlan;
use crate::rules;

/// The plan of a command that is one end of a connection: its host, and the host's peer.
#[derive(Clone, Debug)]
pub(crate) struct EndpointPlan {
    pub(crate) host: HostPlan,
    pub(crate) other: Other,
    mac: Option<[u8; 6]>,
    policy: Policy,
    acks: AcksFlag,
}

/// The way in which the connection is opened.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Other {
    /// This host connects to the peer at this address.
    Connect(SocketAddr),
    /// This host listens on these addresses, and the peer connects to any of them.
    Listen(Vec<SocketAddr>),
}

impl EndpointPlan {
    /// Makes the plan from the flags.
    ///
    /// # Errors
    /// If a value is invalid; the message describes valid values.
    pub(crate) fn from_flags(flags: &EndpointFlags) -> Result<Self> {
        let host = HostPlan::from_flags(&flags.host)?;
        let policy =
            PolicyFlags { policy: flags.policy.clone(), set: flags.set.clone(), hold: None };
        let ours: Vec<IpAddr> = host.addresses().collect();
        Ok(Self {
            other: other(flags, &ours)?,
            host,
            mac: flags.mac.as_deref().map(mac).transpose()?,
            policy: rules::policy(&policy)?,
            acks: flags.acks,
        })
    }

    /// Sets the host's workers from `flags`.
    ///
    /// # Errors
    /// If a value is invalid, or the device cannot have several workers.
    pub(crate) fn with_workers(self, flags: &WorkersFlags) -> Result<Self> {
        Ok(Self { host: self.host.with_workers(flags)?, ..self })
    }

    /// Applies the flags to `config`, the configuration of the host.
    pub(super) fn configure(&self, config: &mut HostConfig) {
        config.mac = self.mac.or(config.mac);
        config.engine = EngineConfig::new(self.policy, config.secret[0]);
        config.tcp.acks = match self.acks {
            AcksFlag::Stretch => AckPolicy::OneForATurn,
            AcksFlag::Templates => AckPolicy::EverySecondSegment,
        };
    }
}

fn other(flags: &EndpointFlags, ours: &[IpAddr]) -> Result<Other> {
    match (&flags.peer, &flags.listen) {
        (Some(peer), None) => connect(peer, ours).map(Other::Connect),
        (None, Some(text)) => listen(text, ours).map(Other::Listen),
        (Some(peer), Some(_)) => Err(usage(format!(
            "{peer} and --listen: either this side connects or it waits; leave one out"
        ))),
        (None, None) => Err(usage(
            "nobody to talk to: name the peer, such as 10.0.0.1:7000, or wait for it with --listen PORT",
        )),
    }
}

fn connect(text: &str, ours: &[IpAddr]) -> Result<SocketAddr> {
    let peer: SocketAddr = text.parse().map_err(|_| {
        usage(format!(
            "{text}: give an address and a port, such as 10.0.0.1:7000 or [fd00::1]:7000"
        ))
    })?;
    if peer.port() == 0 {
        return Err(usage(format!("{text}: port 0 is nobody's; choose 1 to 65535")));
    }
    if ours.contains(&peer.ip()) {
        return Err(usage(format!("{text}: that is this host itself; name another one")));
    }
    if !ours.iter().any(|ip| ip.is_ipv4() == peer.is_ipv4()) {
        let version = if peer.is_ipv4() { "IPv4" } else { "IPv6" };
        return Err(usage(format!("{text}: no --ip is of {version}; add one that is")));
    }
    Ok(peer)
}

fn listen(text: &str, ours: &[IpAddr]) -> Result<Vec<SocketAddr>> {
    if let Ok(port @ 1..) = text.parse::<u16>() {
        return Ok(ours.iter().map(|&ip| SocketAddr::new(ip, port)).collect());
    }
    let address: SocketAddr = text.parse().map_err(|_| invalid_listen(text))?;
    if address.port() == 0 || !ours.contains(&address.ip()) {
        return Err(invalid_listen(text));
    }
    Ok(vec![address])
}

fn invalid_listen(text: &str) -> Error {
    usage(format!(
        "--listen {text}: give a port from 1 to 65535, or an address of --ip with a port"
    ))
}

fn mac(text: &str) -> Result<[u8; 6]> {
    let wrong = || usage(format!("--mac {text}: write six bytes, such as 02:00:00:00:00:01"));
    let mac: MacAddress = text.parse().map_err(|_| wrong())?;
    if mac.is_group() || mac == MacAddress::ZERO { Err(wrong()) } else { Ok(mac.0) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ours() -> Vec<IpAddr> {
        vec![IpAddr::from([10, 0, 0, 2])]
    }

    #[test]
    fn a_port_alone_is_that_of_all_addresses() {
        let all = [IpAddr::from([10, 0, 0, 2]), "fd00::2".parse().unwrap()];
        let both = listen("7000", &all).unwrap();
        assert_eq!(both, ["10.0.0.2:7000".parse().unwrap(), "[fd00::2]:7000".parse().unwrap()]);
        assert_eq!(listen("10.0.0.2:7000", &all).unwrap().len(), 1);
    }

    #[test]
    fn an_invalid_value_is_named_with_valid_ones() {
        let connect_says = |text: &str| connect(text, &ours()).unwrap_err().to_string();
        assert!(connect_says("10.0.0.1").contains("such as 10.0.0.1:7000"));
        assert!(connect_says("10.0.0.1:0").contains("1 to 65535"));
        assert!(connect_says("10.0.0.2:7").contains("this host itself"));
        assert!(connect_says("[fd00::1]:7").contains("no --ip is of IPv6"));
        for text in ["0", "x", "70000", "10.0.0.3:7", "10.0.0.2:0"] {
            let said = listen(text, &ours()).unwrap_err().to_string();
            assert!(said.starts_with(&format!("--listen {text}: give a port")), "{said}");
        }
    }

    #[test]
    fn a_hardware_address_is_six_bytes_of_one_device() {
        assert_eq!(mac("02:00:0a:ff:00:01").unwrap(), [2, 0, 10, 255, 0, 1]);
        for text in [
            "",
            "02:00:00:00:00",
            "02:00:00:00:00:01:02",
            "2:0:0:0:0:1",
            "zz:0:0:0:0:1",
            "01:00:00:00:00:01",
            "00:00:00:00:00:00",
        ] {
            assert!(mac(text).is_err(), "{text}");
        }
    }
}
