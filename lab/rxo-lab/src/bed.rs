//! The test network of casts: a sender behind a limited link, a switch, and hosts.

use std::process::Command;

use anyhow::{Context, Result, ensure};
use rxo_testbed::{Namespace, Offload, RateLimit, create_veth};

/// Namespaces on a bridge with one interface each, to which the system assigns no address.
pub(crate) struct Bed {
    switch: Namespace,
    /// Namespace of the sender, then the namespaces of the others.
    hosts: Vec<Namespace>,
}

impl Bed {
    pub(crate) const INTERFACE: &'static str = "eth0";

    /// Makes a network of a sender, whose link carries `bits_per_s`, and `others` other hosts.
    pub(crate) fn new(others: usize, bits_per_s: u64) -> Result<Self> {
        let switch = Namespace::new("switch")?;
        let bridge = switch.interface("br0");
        bridge.create_bridge()?;
        bridge.up()?;
        let hosts = (0..=others).map(|number| attach(number, &switch));
        let hosts = hosts.collect::<Result<Vec<_>>>()?;
        let bed = Self { switch, hosts };
        let limit = RateLimit::even(bits_per_s / 8, QUEUE_BYTES);
        bed.sender().interface(Self::INTERFACE).limit_rate(limit)?;
        Ok(bed)
    }

    pub(crate) fn sender(&self) -> &Namespace {
        &self.hosts[0]
    }

    /// Returns the host `number` behind the switch, counted from 0.
    pub(crate) fn host(&self, number: usize) -> &Namespace {
        &self.hosts[1 + number]
    }

    /// Lets the switch drop `per_mille` of 1000 UDP and TCP packets to each port, the sender's included.
    ///
    /// # Errors
    /// If the package nftables is missing, or the kernel has no rules for bridges.
    pub(crate) fn lose(&self, per_mille: u64) -> Result<()> {
        if per_mille == 0 {
            return Ok(());
        }
        let rules = format!(
            "add table bridge losses
             add chain bridge losses forwarded {{ type filter hook forward priority 0; }}
             add rule bridge losses forwarded ip protocol {{ tcp, udp }} numgen random mod 1000 < {per_mille} drop"
        );
        let nft = self.switch.run(|| Command::new("nft").arg(rules).output())?;
        let nft = nft.context("cannot run nft; install it with `apt-get install nftables`")?;
        ensure!(nft.status.success(), "nft: {}", String::from_utf8_lossy(&nft.stderr));
        Ok(())
    }

    /// Returns the bytes that the sender's interface has sent.
    pub(crate) fn sent_bytes(&self) -> Result<u64> {
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
