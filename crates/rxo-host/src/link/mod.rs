//! The link under a host's TCP: its addresses, its neighbours, its routes, and what ICMP says.
//!
//! Separate from the sockets because it is sans-IO by itself: frames go in ([`Link::on_frame`]), time goes in ([`Link::on_timeout`], due at [`Link::poll_at`]), frames to be
//! sent come out ([`Link::poll_transmit`]), and [`Link::resolve`] says where a packet goes. No bytes
//! make it panic; memory is bounded by [`LinkConfig::neighbours`] and a queue of frames.
//!
//! * `cidr.rs`, `routes.rs`: which addresses are ours, which neighbour gets a packet.
//! * `neighbours.rs`: who has which Ethernet address, and for how long that is believed.
//! * `arp.rs`, `discovery.rs`: how it is asked, for IPv4 (RFC 826) and IPv6 (RFC 4861).
//! * `gate.rs`: whether what arrives is for this host at all, TCP included.
//! * `path.rs`: errors about segments, for TCP to judge.
//! * `packet.rs`, `hears.rs`: what a frame carries, and what that says.
//!
//! What is not here: duplicate address detection, router advertisements, redirects (routes are what
//! they were configured), multicast groups beside neighbour discovery's own, fragments, VLANs.

mod allowance;
mod arp;
mod cidr;
mod counters;
mod discovery;
mod frames;
mod gate;
mod hears;
mod neighbours;
mod packet;
mod path;
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
use self::gate::Gate;
pub use self::gate::GateCounters;
use self::neighbours::{Ask, Known, Neighbours};
pub use self::path::{PacketTooBig, Unreachable};
pub use self::routes::Route;
use self::routes::Routes;

/// What a link is to be.
#[derive(Clone, Debug)]
pub struct LinkConfig {
    /// What frames begin with. Without Ethernet there are no neighbours: everything resolves.
    pub kind: LinkKind,
    /// The device's address; means nothing without Ethernet.
    pub mac: [u8; 6],
    /// The host's addresses; at least one. With one of IPv6 it also has a link-local one.
    pub addresses: Vec<IpCidr>,
    /// Routes beside those to the networks of its addresses.
    pub routes: Vec<Route>,
    /// Neighbours that are remembered: at least 4 beside the gateways of the routes. When there are more,
    /// the one used least recently gives way, a gateway never.
    pub neighbours: usize,
}

impl LinkConfig {
    /// An Ethernet link with room for 4,096 neighbours.
    #[must_use]
    pub const fn ethernet(mac: [u8; 6], addresses: Vec<IpCidr>) -> Self {
        let kind = LinkKind::Ethernet;
        Self { kind, mac, addresses, routes: Vec::new(), neighbours: DEFAULT_NEIGHBOURS }
    }
}

/// Why a link cannot be.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LinkError {
    /// The host has no address.
    NoAddress,
    /// An address stands there twice, or is no single host's.
    Address {
        /// Which.
        address: IpCidr,
    },
    /// A gateway is on no network of this host.
    Gateway {
        /// Which.
        gateway: IpAddr,
    },
    /// The device's address is a group's, or nobody's.
    Mac {
        /// What was given.
        mac: [u8; 6],
    },
    /// Room for too few neighbours.
    Neighbours {
        /// How many.
        given: usize,
        /// The least that works.
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
    /// To this Ethernet address; without Ethernet it means nothing.
    Resolved([u8; 6]),
    /// Not known yet; it has been asked for. [`Heard::Neighbour`] says when to try again.
    Pending,
    /// The neighbour does not answer.
    Unreachable,
    /// No route leads there, or it is this host itself, or a group.
    NoRoute,
}

/// What a frame said that others must know.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Heard {
    /// Nothing; it may have been answered.
    Nothing,
    /// This neighbour can be reached now: what waited for it, or for whom it is the gateway, may be
    /// tried again.
    Neighbour(IpAddr),
    /// A segment was too large for its path.
    TooBig(PacketTooBig),
    /// A segment did not arrive.
    Unreachable(Unreachable),
    /// A TCP segment for this host has arrived; its checksums are right.
    Segment(Parsed),
}

/// One host's end of a link.
#[derive(Clone, Debug)]
pub struct Link {
    kind: LinkKind,
    mac: [u8; 6],
    gate: Gate,
    routes: Routes,
    neighbours: Neighbours,
    /// Frames that wait to be sent.
    frames: VecDeque<Vec<u8>>,
    may_ask: Allowance,
    may_answer: Allowance,
    may_echo: Allowance,
    may_defend: Allowance,
    counters: LinkCounters,
    summer: Summer,
}

impl Link {
    /// A link on which nothing has been heard yet.
    ///
    /// # Errors
    /// What of `config` cannot be.
    pub fn new(config: LinkConfig) -> Result<Self, LinkError> {
        let LinkConfig { kind, mac, mut addresses, routes, neighbours } = config;
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
            neighbours: Neighbours::new(neighbours, gateways.into_iter().collect()),
            frames: VecDeque::new(),
            may_ask: Allowance::new(ASK_AT_ONCE, ASK_EACH_SECOND),
            may_answer: Allowance::new(ANSWER_AT_ONCE, ANSWER_EACH_SECOND),
            may_echo: Allowance::new(ECHO_AT_ONCE, ECHO_EACH_SECOND),
            may_defend: Allowance::new(1, 1),
            counters: LinkCounters::default(),
            summer: Summer::detect(),
        })
    }

    /// Tells everybody on the link who has this host's addresses, so that nobody keeps those of a
    /// predecessor (RFC 5227, section 2.3; RFC 4861, section 7.2.6).
    pub fn announce(&mut self) {
        if self.kind == LinkKind::RawIp {
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

    /// The Ethernet address that a packet for `ip` is sent to. Asks for it when it is not known.
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

    /// TCP knows that what it sent to `ip` arrives: its neighbour need not be asked whether it is
    /// still there (RFC 4861, section 7.3.1).
    pub fn confirm(&mut self, ip: IpAddr, now: Instant) {
        if let Some(hop) = self.routes.next_hop(ip) {
            self.neighbours.confirm(hop, now);
        }
    }

    /// The address of this host that a connection to `ip` comes from; `None` when no route leads
    /// there.
    #[must_use]
    pub fn source_for(&self, ip: IpAddr) -> Option<IpAddr> {
        self.routes.source_for(ip)
    }

    /// Whether `ip` is this host's.
    #[must_use]
    pub fn is_ours(&self, ip: IpAddr) -> bool {
        self.routes.is_ours(ip)
    }

    /// All of this host's addresses, the link-local one that it gave itself included.
    pub fn addresses(&self) -> impl Iterator<Item = IpCidr> {
        self.routes.addresses().iter().copied()
    }

    /// The device's address.
    #[must_use]
    pub const fn mac(&self) -> [u8; 6] {
        self.mac
    }

    /// The Ethernet addresses beside its own that the device must let through: the groups of
    /// neighbour discovery. A device that lets everything through needs none.
    pub fn groups(&self) -> impl Iterator<Item = [u8; 6]> {
        let v6 = self.addresses().filter_map(|cidr| match cidr.address() {
            IpAddr::V6(ip) => Some(discovery::solicited_node(ip)),
            IpAddr::V4(_) => None,
        });
        v6.chain([discovery::ALL_NODES]).map(discovery::group_mac)
    }

    /// The next frame to be sent, from its first byte; checksums are complete. To be called until
    /// `None` after everything that goes in.
    pub fn poll_transmit(&mut self) -> Option<Vec<u8>> {
        self.frames.pop_front()
    }

    /// When [`Link::on_timeout`] is to be called; `None` when nothing waits for time.
    #[must_use]
    pub fn poll_at(&self) -> Option<Instant> {
        self.neighbours.next_at()
    }

    /// Time has come to `now`; does what is due, which may be nothing.
    pub fn on_timeout(&mut self, now: Instant) {
        let mut asks = Vec::new();
        self.neighbours.on_timeout(now, |ask| asks.push(ask));
        for ask in asks {
            self.ask(ask, now);
        }
    }

    /// How many neighbours are remembered.
    #[must_use]
    pub fn neighbours(&self) -> usize {
        self.neighbours.len()
    }

    /// What was counted so far.
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

    /// Puts a frame into the queue, if there is one and there is room.
    fn push(&mut self, frame: Option<Vec<u8>>) {
        match frame {
            Some(frame) if self.frames.len() < MOST_FRAMES => self.frames.push_back(frame),
            _ => self.counters.held_back += 1,
        }
    }

    /// The answer to somebody who asked may leave now.
    fn answer(&mut self, now: Instant, frame: Option<Vec<u8>>) {
        if self.may_answer.take(now) {
            self.counters.answers += 1;
            self.push(frame);
        } else {
            self.counters.held_back += 1;
        }
    }
}

/// Whether this host is of `group`: all nodes, or those whose addresses end alike.
fn hears_group(routes: &Routes, group: Ipv6Addr) -> bool {
    let mut ours = routes.addresses().iter().map(IpCidr::address);
    group == discovery::ALL_NODES
        || ours.any(|ip| matches!(ip, IpAddr::V6(ip) if discovery::solicited_node(ip) == group))
}

/// Every host that speaks IPv6 has one (RFC 4291, section 2.8).
fn add_link_local(addresses: &mut Vec<IpCidr>, mac: [u8; 6]) {
    let is_link_local =
        |cidr: &IpCidr| matches!(cidr.address(), IpAddr::V6(ip) if ip.is_unicast_link_local());
    let speaks_v6 = addresses.iter().any(|cidr| cidr.address().is_ipv6());
    if speaks_v6 && !addresses.iter().any(is_link_local) {
        addresses.extend(IpCidr::new(routes::link_local(mac).into(), LINK_LOCAL_BITS));
    }
}

const LEAST_NEIGHBOURS: usize = 4;
/// A network of /20 in full.
pub(crate) const DEFAULT_NEIGHBOURS: usize = 4_096;
const LINK_LOCAL_BITS: u8 = 64;
/// Frames that wait for the device at most.
const MOST_FRAMES: usize = 256;
/// A connection to each of many neighbours may be opened at once; a flood of SYNs from names that
/// do not exist must not become one of questions.
const ASK_AT_ONCE: u32 = 64;
const ASK_EACH_SECOND: u32 = 128;
/// A neighbour asks once a second.
const ANSWER_AT_ONCE: u32 = 128;
const ANSWER_EACH_SECOND: u32 = 1_000;
/// RFC 1812, section 4.3.2.8, asks for a limit and leaves its size open.
const ECHO_AT_ONCE: u32 = 100;
const ECHO_EACH_SECOND: u32 = 1_000;
