//! The link under a host's TCP: addresses, neighbours, routes, ICMP.
//!
//! Separate from the sockets because it is sans-IO by itself: frames go in ([`Link::on_frame`]), time goes in
//! ([`Link::on_timeout`], due at [`Link::poll_at`]), frames to send come out ([`Link::poll_transmit`]), and
//! [`Link::resolve`] says where a packet goes. No bytes make it panic. Memory is bounded by
//! [`LinkConfig::neighbours`] and a queue of frames.
//!
//! * `cidr.rs`, `routes.rs`: which addresses are ours, which neighbour gets a packet.
//! * `neighbours.rs`: the neighbour table: Ethernet addresses, and how long they are valid.
//! * `arp.rs`, `discovery.rs`: requests and answers for IPv4 (RFC 826) and IPv6 (RFC 4861).
//! * `groups/`: memberships of multicast groups (IGMPv3, MLDv2).
//! * `gate.rs`: whether a delivery is for this host at all, TCP included.
//! * `path.rs`: errors about segments, for TCP to judge.
//! * `packet.rs`, `hears.rs`: what a frame carries, and what to do with it.
//! * `closed.rs`: the answer to a datagram.
//!
//! * `probe.rs`: whether another station has one of our addresses.
//!
//! What is not here: router advertisements, redirects (all routes are
//! configured), packets to groups, fragments, VLANs.

mod allowance;
mod arp;
mod cidr;
mod closed;
mod counters;
mod discovery;
mod frames;
mod gate;
mod groups;
mod hears;
mod membership;
mod neighbours;
mod packet;
mod path;
mod probe;
mod routes;

use std::collections::{BTreeSet, VecDeque};
use std::fmt;
use std::net::{IpAddr, Ipv6Addr};

use rxo_frame::{Instant, LinkKind};
use rxo_wire::Parsed;
use rxo_wire::checksum::Summer;

pub(crate) use self::allowance::Allowance;
pub use self::cidr::{CidrError, IpCidr};
pub use self::counters::LinkCounters;
pub(crate) use self::frames::ETHERTYPE_ARP;
use self::gate::Gate;
pub use self::gate::GateCounters;
use self::groups::Groups;
pub use self::groups::{Channel, ChannelError};
use self::neighbours::{Ask, Known, Neighbours};
pub use self::path::{PacketTooBig, Unreachable};
use self::probe::Probing;
pub use self::probe::{Conflict, Probe};
pub use self::routes::Route;
use self::routes::Routes;

/// The configuration of a link.
#[derive(Clone, Debug)]
pub struct LinkConfig {
    /// The link kind. Without Ethernet there are no neighbours: every address resolves.
    pub kind: LinkKind,
    /// The Ethernet address of the device; means nothing without Ethernet.
    pub mac: [u8; 6],
    /// The host's addresses; at least one. A host with an IPv6 address also gets a link-local one.
    pub addresses: Vec<IpCidr>,
    /// Routes, without those to the networks of the addresses.
    pub routes: Vec<Route>,
    /// The size of the neighbour table: at least 4 beside the gateways of the routes. A full table evicts the
    /// least recently used neighbour, never a gateway.
    pub neighbours: usize,
    /// Determines the random delays of reports about groups.
    pub seed: u64,
}

impl LinkConfig {
    /// An Ethernet link with room for 4,096 neighbours.
    #[must_use]
    pub const fn ethernet(mac: [u8; 6], addresses: Vec<IpCidr>) -> Self {
        let kind = LinkKind::Ethernet;
        Self { kind, mac, addresses, routes: Vec::new(), neighbours: DEFAULT_NEIGHBOURS, seed: 0 }
    }
}

/// Why the configuration of a link is invalid.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LinkError {
    /// The host has no address.
    NoAddress,
    /// An address is given twice, or cannot be a host's.
    Address {
        /// Which.
        address: IpCidr,
    },
    /// A gateway is on no network of this host.
    Gateway {
        /// Which.
        gateway: IpAddr,
    },
    /// The Ethernet address is a group address, or zero.
    Mac {
        /// The address that was given.
        mac: [u8; 6],
    },
    /// The neighbour table is too small.
    Neighbours {
        /// The size that was given.
        given: usize,
        /// The least valid size.
        least: usize,
    },
}

impl fmt::Display for LinkError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoAddress => f.write_str("no address; give one like 10.0.0.2/24"),
            Self::Address { address } => {
                write!(f, "{address} cannot be this host's; give each address of one host once")
            }
            Self::Gateway { gateway } => write!(
                f,
                "gateway {gateway} cannot be reached; choose a neighbour's address on a network of this host"
            ),
            Self::Mac { mac: [a, b, c, d, e, g] } => write!(
                f,
                "{a:02x}:{b:02x}:{c:02x}:{d:02x}:{e:02x}:{g:02x} is no device's address; choose one like 02:00:00:00:00:01"
            ),
            Self::Neighbours { given, least } => {
                write!(f, "room for {given} neighbours is too little; choose at least {least}")
            }
        }
    }
}

impl std::error::Error for LinkError {}

/// Where a packet goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Resolve {
    /// To this Ethernet address; it means nothing without Ethernet.
    Resolved([u8; 6]),
    /// The address is not known yet, and was requested. [`Heard::Neighbour`] says when to try again.
    Pending,
    /// The neighbour does not answer.
    Unreachable,
    /// There is no route, or the destination is this host itself or a group.
    NoRoute,
}

/// What a frame means for the rest of the host.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Heard {
    /// Nothing. It may have been answered.
    Nothing,
    /// This neighbour is reachable now: packets that waited for it, or for a destination behind it, may be
    /// tried again.
    Neighbour(IpAddr),
    /// A segment was too large for its path.
    TooBig(PacketTooBig),
    /// A segment did not arrive.
    Unreachable(Unreachable),
    /// A TCP segment for this host has arrived; its checksums are right.
    Segment(Parsed),
}

/// A host's end of a link.
#[derive(Clone, Debug)]
pub struct Link {
    kind: LinkKind,
    mac: [u8; 6],
    gate: Gate,
    routes: Routes,
    groups: Groups,
    neighbours: Neighbours,
    /// Frames that wait to be sent.
    frames: VecDeque<Vec<u8>>,
    may_ask: Allowance,
    may_answer: Allowance,
    may_echo: Allowance,
    may_refuse: Allowance,
    may_defend: Allowance,
    probing: Option<Probing>,
    conflict: Option<Conflict>,
    counters: LinkCounters,
    summer: Summer,
}

impl Link {
    /// A link with an empty neighbour table.
    ///
    /// # Errors
    /// If `config` is invalid.
    pub fn new(config: LinkConfig) -> Result<Self, LinkError> {
        let LinkConfig { kind, mac, mut addresses, routes, neighbours, seed } = config;
        let is_ethernet = kind == LinkKind::Ethernet;
        if is_ethernet && (mac[0] & 1 == 1 || mac == [0; 6]) {
            return Err(LinkError::Mac { mac });
        }
        let gateways: BTreeSet<IpAddr> = routes.iter().map(|route| route.gateway).collect();
        let least = LEAST_NEIGHBOURS + gateways.len();
        if neighbours < least {
            return Err(LinkError::Neighbours { given: neighbours, least });
        }
        if is_ethernet {
            add_link_local(&mut addresses, mac);
        }
        Ok(Self {
            kind,
            mac,
            gate: Gate::new(kind, mac),
            routes: Routes::new(addresses, &routes)?,
            groups: Groups::new(seed),
            neighbours: Neighbours::new(neighbours, gateways.into_iter().collect()),
            frames: VecDeque::new(),
            may_ask: Allowance::new(ASK_AT_ONCE, ASK_EACH_SECOND),
            may_answer: Allowance::new(ANSWER_AT_ONCE, ANSWER_EACH_SECOND),
            may_echo: Allowance::new(ECHO_AT_ONCE, ECHO_EACH_SECOND),
            may_refuse: Allowance::new(REFUSE_AT_ONCE, REFUSE_EACH_SECOND),
            may_defend: Allowance::new(1, 1),
            probing: None,
            conflict: None,
            counters: LinkCounters::default(),
            summer: Summer::detect(),
        })
    }

    /// Announces this host's addresses, so that no neighbour keeps those of a predecessor (RFC 5227, section
    /// 2.3; RFC 4861, section 7.2.6).
    pub fn announce(&mut self) {
        if !self.is_ethernet() {
            return;
        }
        let addresses: Vec<_> = self.addresses().collect();
        for cidr in addresses {
            self.push(match cidr.address() {
                IpAddr::V4(ip) => arp::request(self.mac, ip, ip, None),
                IpAddr::V6(ip) => discovery::advertise(self.mac, ip, None),
            });
        }
    }

    /// The Ethernet address that a packet for `ip` is sent to. Requests it if it is not known.
    pub fn resolve(&mut self, ip: IpAddr, now: Instant) -> Resolve {
        let Some(hop) = self.routes.next_hop(ip) else { return Resolve::NoRoute };
        if self.kind == LinkKind::RawIp {
            return Resolve::Resolved([0; 6]);
        }
        match self.neighbours.resolve(hop, now) {
            Known::Mac(mac) => Resolve::Resolved(mac),
            Known::Pending => Resolve::Pending,
            Known::Failed => Resolve::Unreachable,
            Known::Ask => {
                self.ask(Ask { ip: hop, mac: None }, now);
                Resolve::Pending
            }
            Known::Full => {
                self.counters.neighbours_refused += 1;
                Resolve::Pending
            }
        }
    }

    /// Confirms that packets to `ip` arrive, as TCP knows: its neighbour need not be probed (RFC 4861, section
    /// 7.3.1).
    pub fn confirm(&mut self, ip: IpAddr, now: Instant) {
        if let Some(hop) = self.routes.next_hop(ip) {
            self.neighbours.confirm(hop, now);
        }
    }

    /// The address of this host for a connection to `ip`; `None` if there is no route.
    #[must_use]
    pub fn source_for(&self, ip: IpAddr) -> Option<IpAddr> {
        self.routes.source_for(ip)
    }

    /// Whether `ip` is this host's.
    #[must_use]
    pub fn is_ours(&self, ip: IpAddr) -> bool {
        self.routes.is_ours(ip)
    }

    /// All addresses of this host, with the link-local one that it gave itself.
    pub fn addresses(&self) -> impl Iterator<Item = IpCidr> {
        self.routes.addresses().iter().copied()
    }

    /// The Ethernet address of the device.
    #[must_use]
    pub const fn mac(&self) -> [u8; 6] {
        self.mac
    }

    /// The Ethernet addresses that the device must accept beside its own: the groups of neighbour discovery, and
    /// those that this host belongs to. A device in promiscuous mode accepts them anyway.
    pub fn groups(&self) -> impl Iterator<Item = [u8; 6]> {
        let v6 = self.addresses().filter_map(|cidr| match cidr.address() {
            IpAddr::V6(ip) => Some(discovery::solicited_node(ip)),
            IpAddr::V4(_) => None,
        });
        let discovery = v6.chain([discovery::ALL_NODES]).map(IpAddr::V6);
        discovery.chain(self.groups.groups()).map(groups::mac)
    }

    /// The next frame to send, with complete checksums. Call it until it returns `None` after everything that
    /// goes in.
    pub fn poll_transmit(&mut self) -> Option<Vec<u8>> {
        self.frames.pop_front()
    }

    /// When [`Link::on_timeout`] is to be called; `None` if no timer runs.
    #[must_use]
    pub fn poll_at(&self) -> Option<Instant> {
        let probes_at = self.probing.map(|probing| probing.at);
        [self.neighbours.next_at(), self.groups.next_at(), probes_at].into_iter().flatten().min()
    }

    /// Does what is due at `now`, which may be nothing.
    pub fn on_timeout(&mut self, now: Instant) {
        self.probe_on_timeout(now);
        let mut asks = Vec::new();
        self.neighbours.on_timeout(now, |ask| asks.push(ask));
        for ask in asks {
            self.ask(ask, now);
        }
        for records in self.groups.take_due(now) {
            self.report(&records);
        }
    }

    /// How many neighbours the table has.
    #[must_use]
    pub fn neighbours(&self) -> usize {
        self.neighbours.len()
    }

    /// The counters.
    #[must_use]
    pub const fn counters(&self) -> LinkCounters {
        LinkCounters { refused: self.gate.counters, ..self.counters }
    }

    fn ask(&mut self, ask: Ask, now: Instant) {
        let source = self.routes.source_for(ask.ip);
        let (Some(source), true) = (source, self.may_ask.take(now)) else {
            self.counters.held_back += 1;
            return;
        };
        self.counters.questions += 1;
        self.push(match (source, ask.ip) {
            (IpAddr::V4(source), IpAddr::V4(target)) => {
                arp::request(self.mac, source, target, ask.mac)
            }
            (IpAddr::V6(source), IpAddr::V6(target)) => {
                discovery::solicit(self.mac, source, target, ask.mac)
            }
            _ => None,
        });
    }

    fn is_ethernet(&self) -> bool {
        self.kind == LinkKind::Ethernet
    }

    /// Puts a frame into the queue if there is room.
    fn push(&mut self, frame: Option<Vec<u8>>) {
        match frame {
            Some(frame) if self.frames.len() < MOST_FRAMES => self.frames.push_back(frame),
            _ => self.counters.held_back += 1,
        }
    }

    /// Puts the answer to a request into the queue, at a limited rate.
    fn answer(&mut self, now: Instant, frame: Option<Vec<u8>>) {
        if self.may_answer.take(now) {
            self.counters.answers += 1;
            self.push(frame);
        } else {
            self.counters.held_back += 1;
        }
    }
}

/// Whether this host belongs to `group`: all nodes, or a solicited-node group of its addresses.
fn hears_group(routes: &Routes, group: Ipv6Addr) -> bool {
    let mut ours = routes.addresses().iter().map(IpCidr::address);
    group == discovery::ALL_NODES
        || ours.any(|ip| matches!(ip, IpAddr::V6(ip) if discovery::solicited_node(ip) == group))
}

/// Every host with IPv6 has a link-local address (RFC 4291, section 2.8).
fn add_link_local(addresses: &mut Vec<IpCidr>, mac: [u8; 6]) {
    let is_link_local =
        |cidr: &IpCidr| matches!(cidr.address(), IpAddr::V6(ip) if ip.is_unicast_link_local());
    let speaks_v6 = addresses.iter().any(|cidr| cidr.address().is_ipv6());
    if speaks_v6 && !addresses.iter().any(is_link_local) {
        addresses.extend(IpCidr::new(routes::link_local(mac).into(), LINK_LOCAL_BITS));
    }
}

const LEAST_NEIGHBOURS: usize = 4;
/// All hosts of a /20 network.
pub(crate) const DEFAULT_NEIGHBOURS: usize = 4_096;
const LINK_LOCAL_BITS: u8 = 64;
/// The most frames that wait for the device.
const MOST_FRAMES: usize = 256;
/// Connections to many neighbours may be opened at once, but a flood of SYNs from addresses that do not exist
/// must not become a flood of requests.
const ASK_AT_ONCE: u32 = 64;
const ASK_EACH_SECOND: u32 = 128;
/// A neighbour repeats a request once a second.
const ANSWER_AT_ONCE: u32 = 128;
const ANSWER_EACH_SECOND: u32 = 1_000;
/// RFC 1812, section 4.3.2.8, asks for a limit and leaves its size open.
const ECHO_AT_ONCE: u32 = 100;
const ECHO_EACH_SECOND: u32 = 1_000;
/// Errors are fewer, because datagrams are often sent without care for an answer.
const REFUSE_AT_ONCE: u32 = 20;
const REFUSE_EACH_SECOND: u32 = 100;
