//! The test network: a sender behind a limited link, a switch, and eight racks.

use anyhow::{Context, Result};
use rxo_testbed::{Namespace, Offload, RateLimit, create_veth};

use super::BITS_PER_S;

/// Namespaces on a bridge with one interface each, to which the system assigns no address.
pub(super) struct Bed {
    _switch: Namespace,
    /// Namespace of the sender, then the namespaces of the racks.
    hosts: Vec<Namespace>,
}

impl Bed {
    /// Number of racks, as many as the paper has receiving machines.
    pub(super) const RACKS: usize = 8;
    pub(super) const INTERFACE: &'static str = "eth0";

    pub(super) fn new() -> Result<Self> {
        let switch = Namespace::new("switch")?;
        let bridge = switch.interface("br0");
        bridge.create_bridge()?;
        bridge.up()?;
        let hosts = (0..=Self::RACKS).map(|number| attach(number, &switch));
        let hosts = hosts.collect::<Result<Vec<_>>>()?;
        let bed = Self { _switch: switch, hosts };
        let limit = RateLimit::even(BITS_PER_S / 8, QUEUE_BYTES);
        bed.sender().interface(Self::INTERFACE).limit_rate(limit)?;
        Ok(bed)
    }

    pub(super) fn sender(&self) -> &Namespace {
        &self.hosts[0]
    }

    pub(super) fn rack(&self, number: usize) -> &Namespace {
        &self.hosts[1 + number % Self::RACKS]
    }

    /// Returns the bytes that the sender's interface has sent.
    pub(super) fn sent_bytes(&self) -> Result<u64> {
        let counters = self.sender().interface(Self::INTERFACE).counters();
        Ok(counters.context("the sender's interface is gone")?.sent_bytes)
    }
}

fn attach(number: usize, switch: &Namespace) -> Result<Namespace> {
    let host = Namespace::new(&format!("host {number}"))?;
    for namespace in [&host, switch] {
        if namespace.has_ipv6() {
            namespace.set_sysctl("net.ipv6.conf.default.disable_ipv6", "1")?;
        }
    }
    let (near, far) = (host.interface(Bed::INTERFACE), switch.interface(&format!("port{number}")));
    create_veth(&near, &far)?;
    for end in [&near, &far] {
        for offload in [
            Offload::TransmitSegmentation,
            Offload::GenericSegmentation,
            Offload::TransmitChecksum,
            Offload::GenericReceive,
        ] {
            end.set_offload(offload, false)?;
        }
    }
    far.join_bridge(&switch.interface("br0"))?;
    far.up()?;
    near.up()?;
    Ok(host)
}

const QUEUE_BYTES: u32 = 8 << 20;
