//! Probes whether another station uses an address of this host, and stores the first such conflict (RFC 5227;
//! RFC 4862, section 5.4).
//!
//! While it probes, a link must not answer requests for its addresses. Probing takes less time than the RFCs
//! require, because these hosts are configured by programs: there is no random delay, fewer probes are sent,
//! and the announcement is not delayed by seconds.

use std::net::IpAddr;

use rxo_frame::{Duration, Instant};
use thiserror::Error;

use super::{Link, arp, discovery, text_of};

/// The number and interval of the probes for a host's addresses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Probe {
    /// The number of probes per address. RFC 5227 specifies 3, RFC 4862 specifies 1.
    pub count: u8,
    /// The time to wait for an answer after each probe; RFC 5227 specifies 1 to 2 s, RFC 4862 specifies 1 s.
    pub interval: Duration,
}

impl Default for Probe {
    /// The default is two probes, because one may be lost, and 200 ms of waiting after each, because a station
    /// on the link answers sooner.
    fn default() -> Self {
        Self { count: 2, interval: Duration::from_millis(200) }
    }
}

/// An address of this host that another station claims.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[error(
    "address {address} is in use: {mac} answers for it; stop that host, or choose another address",
    mac = text_of(.mac)
)]
pub struct Conflict {
    /// The address that this host and the other station claim.
    pub address: IpAddr,
    /// The Ethernet address of the station that claims the address.
    pub mac: [u8; 6],
}

/// The state of the probes while they run.
#[derive(Clone, Copy, Debug)]
pub(super) struct Probing {
    interval: Duration,
    /// Number of probes still to be sent per address.
    left: u8,
    /// The time of the next probe; after the last probe, the time at which probing ends.
    pub(super) at: Instant,
    /// `true` if this shard sends the probes for all shards.
    is_sender: bool,
}

impl Link {
    /// Starts to probe this host's addresses; the first probes are due at once ([`Link::on_timeout`]). Until
    /// probing ends, the link does not answer requests for these addresses. Afterwards the link announces its
    /// addresses, unless another station has claimed one of them. If `is_sender` is `false`, another shard
    /// sends probes and announcements. Does nothing without Ethernet.
    pub fn probe(&mut self, probe: Probe, is_sender: bool) {
        if self.is_ethernet() {
            let Probe { count, interval } = probe;
            self.probing = Some(Probing { interval, left: count, at: Instant::ZERO, is_sender });
        }
    }

    /// Returns `true` while the probes run.
    #[must_use]
    pub const fn is_probing(&self) -> bool {
        self.probing.is_some()
    }

    /// Returns the first claim of an address of this host by another station, during or after the probes;
    /// `None` if there was none.
    #[must_use]
    pub const fn conflict(&self) -> Option<Conflict> {
        self.conflict
    }

    pub(super) fn probe_on_timeout(&mut self, now: Instant) {
        let Some(mut probing) = self.probing.filter(|probing| probing.at <= now) else { return };
        if probing.left == 0 {
            self.probing = None;
            if probing.is_sender && self.conflict.is_none() {
                self.announce();
            }
            return;
        }
        (probing.left, probing.at) = (probing.left - 1, now + probing.interval);
        self.probing = Some(probing);
        if probing.is_sender {
            self.send_probes();
        }
    }

    fn send_probes(&mut self) {
        let addresses: Vec<_> = self.addresses().collect();
        for cidr in addresses {
            self.push(match cidr.address() {
                IpAddr::V4(ip) => arp::probe(self.mac, ip),
                IpAddr::V6(ip) => discovery::probe(self.mac, ip),
            });
        }
    }

    /// Records that `mac` claims `address`, an address of this host. Returns `true` if `mac` is another
    /// station.
    pub(super) fn note_claim(&mut self, address: IpAddr, mac: [u8; 6]) -> bool {
        let is_another = mac != self.mac;
        if is_another {
            self.counters.conflicts += 1;
            self.conflict.get_or_insert(Conflict { address, mac });
        }
        is_another
    }
}
