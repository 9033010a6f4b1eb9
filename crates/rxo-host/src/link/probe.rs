//! Probes whether another station has an address of this host, and remembers the first that claims one (RFC 5227; RFC 4862,
//! section 5.4).
//!
//! Separate because it is the only time at which a link must not answer for its addresses: they are not its own yet. It is
//! shorter than the RFCs ask for, which suits machines that configure themselves: no random delay, fewer probes, and no
//! wait of seconds before the announcement.

use std::fmt;
use std::net::IpAddr;

use rxo_frame::{Duration, Instant};

use super::{Link, arp, discovery};

/// The probes for the addresses of a host, before it uses them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Probe {
    /// How many are sent for each address. RFC 5227 says 3, RFC 4862 says 1.
    pub count: u8,
    /// The time after each in which an answer is waited for. RFC 5227 says 1 to 2 s, RFC 4862 says 1 s.
    pub interval: Duration,
}

impl Default for Probe {
    /// Two probes, because one may be lost, 200 ms each: a station on the same link answers sooner.
    fn default() -> Self {
        Self { count: 2, interval: Duration::from_millis(200) }
    }
}

/// An address of this host that another station claims.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Conflict {
    /// The address.
    pub address: IpAddr,
    /// The Ethernet address of the other station.
    pub mac: [u8; 6],
}

impl fmt::Display for Conflict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { address, mac: [a, b, c, d, e, g] } = self;
        write!(
            f,
            "address {address} is in use: {a:02x}:{b:02x}:{c:02x}:{d:02x}:{e:02x}:{g:02x} answers for it; stop that host, or choose another address"
        )
    }
}

impl std::error::Error for Conflict {}

/// Probes that are under way.
#[derive(Clone, Copy, Debug)]
pub(super) struct Probing {
    interval: Duration,
    /// How many are still to be sent.
    left: u8,
    /// When the next is sent, or the last is over.
    pub(super) at: Instant,
    /// Whether this shard sends them for all.
    is_sender: bool,
}

impl Link {
    /// Begins to probe this host's addresses; the first probes are due at once ([`Link::on_timeout`]). Until they are over,
    /// the link answers nobody's request for them. Then it announces them if nobody else has claimed one. If `is_sender`
    /// is false, another shard sends all that. Does nothing without Ethernet.
    pub fn probe(&mut self, probe: Probe, is_sender: bool) {
        if self.is_ethernet() {
            let Probe { count, interval } = probe;
            self.probing = Some(Probing { interval, left: count, at: Instant::ZERO, is_sender });
        }
    }

    /// Whether the probes are not over.
    #[must_use]
    pub const fn is_probing(&self) -> bool {
        self.probing.is_some()
    }

    /// The first claim of an address of this host by another station, at any time.
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

    /// Takes note that `mac` claims `address`, which is this host's. Returns whether it is another station.
    pub(super) fn note_claim(&mut self, address: IpAddr, mac: [u8; 6]) -> bool {
        let is_another = mac != self.mac;
        if is_another {
            self.counters.conflicts += 1;
            self.conflict.get_or_insert(Conflict { address, mac });
        }
        is_another
    }
}
