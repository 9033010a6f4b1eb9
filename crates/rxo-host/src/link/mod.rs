//! The link below a host's TCP: addresses, neighbours, routes, ICMP.
//!
//! The link is sans-IO. [`Link::on_frame`] processes a received frame, [`Link::on_timeout`], due at
//! [`Link::poll_at`], processes timers, [`Link::poll_transmit`] returns the frames to send, and
//! [`Link::resolve`] returns the Ethernet address for a packet. No input causes a panic. Memory is bounded by
//! [`LinkConfig::neighbours`] and a bounded queue of frames.
//!
//! * `cidr.rs`, `routes.rs`: the host's own addresses, and the next hop of a packet.
//! * `neighbours.rs`: the neighbour table: Ethernet addresses, and the time for which they are valid.
//! * `arp.rs`, `discovery.rs`: requests and answers for IPv4 (RFC 826) and IPv6 (RFC 4861).
//! * `groups/`: memberships of multicast groups (IGMPv3, MLDv2).
//! * `gate.rs`: refuses deliveries that are not for this host, including TCP.
//! * `path.rs`: parses ICMP errors about segments, which TCP then validates.
//! * `packet.rs`, `receive.rs`: parsing and handling of received frames.
//! * `closed.rs`: answers UDP datagrams with "port unreachable".
//!
//! * `probe.rs`: checks whether another station uses one of the host's addresses.
//!
//! Not supported: router advertisements and redirects (all routes are configured), packets to groups that are
//! neither TCP nor UDP, fragments, VLANs.

mod allowance;
mod arp;
mod cidr;
mod closed;
mod counters;
mod discovery;
mod frames;
mod gate;
mod groups;
mod membership;
mod neighbours;
mod packet;
mod path;
mod probe;
mod receive;
mod routes;

use std::collections::{BTreeSet, VecDeque};
use std::net::{IpAddr, Ipv6Addr};

use rxo_frame::{Instant, LinkKind};
use rxo_wire::Parsed;
use rxo_wire::checksum::Summer;
use thiserror::Error;

pub(crate) use self::allowance::Allowance;
pub use self::cidr::{CidrError, IpCidr};
pub use self::counters::LinkCounters;
use self::frames::Envelope;
pub(crate) use self::frames::{ETHERTYPE_ARP, group_mac};
use self::gate::Gate;
pub use self::gate::GateCounters;
use self::groups::Groups;
pub use self::groups::{Channel, ChannelError};
use self::neighbours::{Ask, NeighbourLookup, Neighbours};
pub use self::path::{PacketTooBig, Unreachable};
use self::probe::Probing;
pub use self::probe::{Conflict, Probe};
pub use self::routes::Route;
use self::routes::Routes;

/// The configuration of a link.
#[derive(Clone, Debug)]
pub struct LinkConfig {
    /// The link kind. Without Ethernet there are no neighbours, and every address with a route resolves.
    pub kind: LinkKind,
    /// The Ethernet address of the device; ignored without Ethernet.
    pub mac: [u8; 6],
    /// The host's addresses; at least one. On Ethernet, a host with an IPv6 address also gets a link-local
    /// one.
    pub addresses: Vec<IpCidr>,
    /// Routes to other networks; the routes to the networks of `addresses` are implied.
    pub routes: Vec<Route>,
    /// Maximum number of entries in the neighbour table: at least 4 more than the number of gateways. A full
    /// table evicts the least recently used neighbour, but never a gateway.
    pub neighbours: usize,
    /// The seed of the random delays of membership reports.
    pub seed: u64,
}

impl LinkConfig {
    /// Creates the configuration of an Ethernet link with the default of 4,096 neighbours and no routes.
    #[must_use]
    pub const fn ethernet(mac: [u8; 6], addresses: Vec<IpCidr>) -> Self {
        let kind = LinkKind::Ethernet;
        Self { kind, mac, addresses, routes: Vec::new(), neighbours: DEFAULT_NEIGHBOURS, seed: 0 }
    }
}

/// The reason for which the configuration of a link is invalid.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum LinkError {
    /// The host has no address.
    #[error("no address; give one like 10.0.0.2/24")]
    NoAddress,
    /// An address is given twice, or cannot be the address of a host.
    #[error("{address} cannot be this host's; give each address of one host once")]
    Address {
        /// The invalid or repeated address.
        address: IpCidr,
    },
    /// The gateway is not on a network of this host.
    #[error(
        "gateway {gateway} cannot be reached; choose a neighbour's address on a network of this host"
    )]
    Gateway {
        /// The invalid gateway.
        gateway: IpAddr,
    },
    /// The Ethernet address is a group address or zero.
    #[error("{} is no device's address; choose one like 02:00:00:00:00:01", text_of(.mac))]
    Mac {
        /// The invalid Ethernet address.
        mac: [u8; 6],
    },
    /// The neighbour table is too small.
    #[error("room for {given} neighbours is too little; choose at least {least}")]
    Neighbours {
        /// The size that was given, in neighbours.
        given: usize,
        /// The smallest valid size, in neighbours.
        least: usize,
    },
}

/// The result of resolving the destination of a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Resolve {
    /// The packet must be sent to this Ethernet address. On links other than Ethernet, the address is zero and
    /// unused.
    Resolved([u8; 6]),
    /// The Ethernet address is unknown and has been requested. The caller must try again after
    /// [`FrameOutcome::Neighbour`].
    Pending,
    /// The neighbour did not answer requests for its address.
    Unreachable,
    /// There is no route, or the destination is this host itself or a multicast group.
    NoRoute,
}

/// The consequence of a received frame for the rest of the host.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FrameOutcome {
    /// The frame needs no further processing. The link may have answered it.
    Nothing,
    /// The neighbour with this IP address has become reachable. The caller must retry packets that waited for
    /// this neighbour, or for a destination behind it.
    Neighbour(IpAddr),
    /// A router reports that a segment was too large for its path.
    TooBig(PacketTooBig),
    /// A router or host reports that a segment was not delivered.
    Unreachable(Unreachable),
    /// The frame is a TCP segment for this host; its checksums are right.
    Segment(Parsed),
    /// The frame is a UDP datagram to a group that this host has joined; its checksums are right.
    ToGroup(Parsed),
}

/// The host's end of a link: its addresses, neighbours and routes.
#[derive(Clone, Debug)]
pub struct Link {
    kind: LinkKind,
    mac: [u8; 6],
    gate: Gate,
    routes: Routes,
    groups: Groups,
    neighbours: Neighbours,
    /// The frames that wait to be sent, at most [`MOST_FRAMES`].
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
    /// Creates a link with an empty neighbour table.
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

    /// Announces this host's addresses, so that no neighbour keeps the Ethernet address of a previous owner
    /// (RFC 5227, section 2.3; RFC 4861, section 7.2.6).
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

    /// Returns the Ethernet address to which a packet for `ip` must be sent. If the Ethernet address is
    /// unknown, requests it.
    pub fn resolve(&mut self, ip: IpAddr, now: Instant) -> Resolve {
        let Some(hop) = self.routes.next_hop(ip) else { return Resolve::NoRoute };
        if self.kind == LinkKind::RawIp {
            return Resolve::Resolved([0; 6]);
        }
        match self.neighbours.resolve(hop, now) {
            NeighbourLookup::Mac(mac) => Resolve::Resolved(mac),
            NeighbourLookup::Pending => Resolve::Pending,
            NeighbourLookup::Failed => Resolve::Unreachable,
            NeighbourLookup::Ask => {
                self.ask(Ask { ip: hop, mac: None }, now);
                Resolve::Pending
            }
            NeighbourLookup::Full => {
                self.counters.neighbours_refused += 1;
                Resolve::Pending
            }
        }
    }

    /// Records that packets to `ip` arrive, because TCP has received ACKs for them. So the neighbour need not
    /// be probed (RFC 4861, section 7.3.1).
    pub fn confirm(&mut self, ip: IpAddr, now: Instant) {
        if let Some(hop) = self.routes.next_hop(ip) {
            self.neighbours.confirm(hop, now);
        }
    }

    /// Returns the local address for a connection to `ip`; `None` if there is no route.
    #[must_use]
    pub fn source_for(&self, ip: IpAddr) -> Option<IpAddr> {
        self.routes.source_for(ip)
    }

    /// Returns `true` if `ip` is an address of this host.
    #[must_use]
    pub fn is_ours(&self, ip: IpAddr) -> bool {
        self.routes.is_ours(ip)
    }

    /// Returns all addresses of this host, including the link-local one that it derived itself.
    pub fn addresses(&self) -> impl Iterator<Item = IpCidr> {
        self.routes.addresses().iter().copied()
    }

    /// Returns the Ethernet address of the device.
    #[must_use]
    pub const fn mac(&self) -> [u8; 6] {
        self.mac
    }

    /// Returns the multicast Ethernet addresses that the device must accept: the groups of neighbour
    /// discovery, and the groups that this host has joined. A device in promiscuous mode accepts them anyway.
    pub fn groups(&self) -> impl Iterator<Item = [u8; 6]> {
        let v6 = self.addresses().filter_map(|cidr| match cidr.address() {
            IpAddr::V6(ip) => Some(discovery::solicited_node(ip)),
            IpAddr::V4(_) => None,
        });
        let discovery = v6.chain([discovery::ALL_NODES]).map(IpAddr::V6);
        discovery.chain(self.groups.groups()).map(frames::group_mac)
    }

    /// Returns the next frame to send, with complete checksums. After each input, the caller must call this
    /// function until it returns `None`.
    pub fn poll_transmit(&mut self) -> Option<Vec<u8>> {
        self.frames.pop_front()
    }

    /// Returns the deadline at which to call [`Link::on_timeout`]; `None` if no timer runs.
    #[must_use]
    pub fn poll_at(&self) -> Option<Instant> {
        let probes_at = self.probing.map(|probing| probing.at);
        [self.neighbours.next_at(), self.groups.next_at(), probes_at].into_iter().flatten().min()
    }

    /// Runs the timers that have expired at `now`, if any.
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

    /// Returns the number of neighbours in the table.
    #[must_use]
    pub fn neighbours(&self) -> usize {
        self.neighbours.len()
    }

    /// Returns the counters of the link, including the gate's.
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

    /// Returns the header values of a message from this host to the station `to`.
    fn envelope(&self, to: [u8; 6], hop_limit: u8, traffic_class: u8) -> Envelope {
        let macs = self.is_ethernet().then_some((self.mac, to));
        Envelope { macs, hop_limit, traffic_class }
    }

    /// Queues a frame to be sent. If the queue is full, or the frame could not be built (`None`), drops and
    /// counts the frame.
    fn push(&mut self, frame: Option<Vec<u8>>) {
        match frame {
            Some(frame) if self.frames.len() < MOST_FRAMES => self.frames.push_back(frame),
            _ => self.counters.held_back += 1,
        }
    }

    /// Queues the answer to an address request, subject to the rate limit.
    fn answer(&mut self, now: Instant, frame: Option<Vec<u8>>) {
        if self.may_answer.take(now) {
            self.counters.answers += 1;
            self.push(frame);
        } else {
            self.counters.held_back += 1;
        }
    }
}

/// Formats `mac` for messages.
fn text_of(mac: &[u8; 6]) -> String {
    mac.map(|byte| format!("{byte:02x}")).join(":")
}

/// Returns `true` if `group` is the all-nodes group, or the solicited-node group of one of this host's
/// addresses.
fn is_neighbour_group(routes: &Routes, group: Ipv6Addr) -> bool {
    let mut ours = routes.addresses().iter().map(IpCidr::address);
    group == discovery::ALL_NODES
        || ours.any(|ip| matches!(ip, IpAddr::V6(ip) if discovery::solicited_node(ip) == group))
}

/// Adds a link-local address, which every host with IPv6 must have (RFC 4291, section 2.8), unless there is
/// one.
fn add_link_local(addresses: &mut Vec<IpCidr>, mac: [u8; 6]) {
    let is_link_local =
        |cidr: &IpCidr| matches!(cidr.address(), IpAddr::V6(ip) if ip.is_unicast_link_local());
    let speaks_v6 = addresses.iter().any(|cidr| cidr.address().is_ipv6());
    if speaks_v6 && !addresses.iter().any(is_link_local) {
        addresses.extend(IpCidr::new(routes::link_local(mac).into(), LINK_LOCAL_BITS));
    }
}

const LEAST_NEIGHBOURS: usize = 4;
/// The default size of the neighbour table, in neighbours: enough for all hosts of a /20 network.
pub(crate) const DEFAULT_NEIGHBOURS: usize = 4_096;
const LINK_LOCAL_BITS: u8 = 64;
/// Maximum number of frames that wait for the device.
const MOST_FRAMES: usize = 256;
/// The largest burst of address requests (ARP, neighbour discovery), in packets. A burst is needed to open
/// connections to many neighbours at once. The limit prevents a flood of SYNs with forged sources from causing
/// a flood of requests.
const ASK_AT_ONCE: u32 = 64;
/// The long-term limit of address requests, in packets per second.
const ASK_EACH_SECOND: u32 = 128;
/// The largest burst of answers to address requests, in packets. The limit is ample, because a neighbour
/// repeats a request only once per second.
const ANSWER_AT_ONCE: u32 = 128;
/// The long-term limit of answers to address requests, in packets per second.
const ANSWER_EACH_SECOND: u32 = 1_000;
/// The largest burst of ICMP echo replies, in packets. RFC 1812, section 4.3.2.8, requires a limit without a
/// value for it.
const ECHO_AT_ONCE: u32 = 100;
/// The long-term limit of ICMP echo replies, in packets per second.
const ECHO_EACH_SECOND: u32 = 1_000;
/// The largest burst of ICMP "port unreachable" messages, in packets. The limit is smaller than that of echo
/// replies, because many programs send datagrams without waiting for an answer.
const REFUSE_AT_ONCE: u32 = 20;
/// The long-term limit of "port unreachable" messages, in packets per second.
const REFUSE_EACH_SECOND: u32 = 100;
