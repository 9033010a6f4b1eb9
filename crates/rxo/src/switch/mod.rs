//! Learning switch: decides by which ports a frame leaves.
//!
//! The switch is between a nic and several guests, before the engines: each guest has its own engine after its
//! port, so that the polls of one guest do not affect the aggregates of another. The switch is separate from
//! the worker because it only decides, without input or output: the addresses of a frame and the time go in,
//! ports come out. The switch learns from source addresses and supports VLANs (IEEE 802.1Q, clauses 8.6 and
//! 8.7), but no spanning tree. Ports may have a [`Guard`], which decides what their devices may claim, and
//! frames of multicast groups are forwarded only to ports that have joined the group (`snooping`).
//!
//! # Contract
//! No input or output, no clock: time is an argument. The address table is bounded for each port: no more
//! addresses are learned at a port that has sent from too many, and other ports keep their space. Frames for an
//! unknown address are forwarded to all ports of their VLAN. No content of a frame causes a panic.

mod guard;
mod header;
mod memory;
mod packet;
mod port;
mod snooping;
mod table;
mod tagging;

use std::time::Duration;

use rxo_frame::{Frame, Instant, reasons};

pub use guard::Guard;
pub use header::MacAddress;
pub use port::{MAX_PORTS, Port, PortSet, PortSettings, SwitchError, Vlans};
pub(crate) use tagging::Tagged;
pub use tagging::Tagging;

use header::Header;
use memory::Memory;
use packet::Packet;
use snooping::{Receivers, Snooping};
use table::{Learned, Table};

/// The settings of a switch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SwitchOptions {
    /// Maximum number of addresses that the switch learns at a port without a fixed address.
    pub most_addresses: usize,
    /// The time for which an address is remembered after its last frame. IEEE 802.1Q, table 8-6, recommends
    /// 300 s.
    pub ageing: Duration,
}

impl Default for SwitchOptions {
    fn default() -> Self {
        Self { most_addresses: 4_096, ageing: Duration::from_secs(300) }
    }
}

/// The decision about a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Forward {
    /// Forward the frame to these ports, never to the port from which it came. The set is empty if no other
    /// port carries the frame's VLAN.
    To(PortSet),
    /// Drop the frame, for this reason.
    Drop(DropReason),
}

reasons! {
    /// The reason why a switch drops a frame.
    DropReason {
        /// The frame is too short for addresses and a type, or for a tag and a type.
        Truncated => "truncated",
        /// The source is a group address, or zero.
        BadSource => "bad_source",
        /// The source differs from the fixed address of its port, or equals the fixed address of another
        /// port.
        ForeignSource => "foreign_source",
        /// The port does not carry the frame's VLAN.
        ForeignVlan => "foreign_vlan",
        /// The destination is reserved for the link itself (pause frames, spanning tree, LLDP).
        LinkLocal => "link_local",
        /// The destination is at the port from which the frame came.
        SamePort => "same_port",
        /// The frame comes from a guarded port and claims to be ARP or IP, but its headers are incomplete or
        /// too many.
        Malformed => "malformed",
        /// The frame's IP source is not an address of its guarded port.
        ForeignIp => "foreign_ip",
        /// The frame's ARP or neighbour discovery claims an address that does not belong to its guarded port.
        ForeignNeighbour => "foreign_neighbour",
        /// The frame is a router's message, from a port that may not route.
        ForeignRouter => "foreign_router",
        /// The frame is a DHCP server's message, from a port that may not serve DHCP.
        ForeignDhcp => "foreign_dhcp",
        /// Both the frame's port and the port of its destination are isolated.
        Isolated => "isolated",
    }
}

rxo_frame::counters! {
    /// Counters of a switch since it was created.
    #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
    pub struct SwitchCounters {
        /// Number of frames that were forwarded to one known port.
        pub forwarded: u64,
        /// Number of frames for a group or an unknown address, which were forwarded to several ports; each
        /// frame counts once.
        pub flooded: u64,
        /// Number of addresses that were learned, including those learned again after they had expired.
        pub learned: u64,
        /// Number of addresses that appeared at another port than before.
        pub moved: u64,
        /// Number of frames whose source was not learned because their port already had its maximum number of
        /// addresses.
        pub not_learned: u64,
        dropped: [u64; DropReason::COUNT],
    }
}

impl SwitchCounters {
    /// Returns the number of frames dropped for this reason.
    #[must_use]
    pub const fn dropped(&self, reason: DropReason) -> u64 {
        self.dropped[reason as usize]
    }

    /// Returns the number of all frames: forwarded, flooded or dropped.
    #[must_use]
    pub fn frames(&self) -> u64 {
        self.forwarded + self.flooded + self.dropped.iter().sum::<u64>()
    }
}

/// A learning switch with VLANs.
#[derive(Debug)]
pub struct Switch {
    ports: Vec<PortSettings>,
    /// The guard of each port; `None` for a trusted port.
    guards: Vec<Option<Guard>>,
    isolated: PortSet,
    /// The ports whose devices may route.
    routers: PortSet,
    memory: Memory,
    counters: SwitchCounters,
}

impl Switch {
    /// Creates a switch; the first of `ports` is [`Port`] 0. Allocates the table.
    ///
    /// # Errors
    /// [`SwitchError`] if there are too many ports, a VLAN is out of range, an address is invalid, or two
    /// ports of a VLAN are fixed to the same address.
    ///
    /// # Examples
    /// ```
    /// use rxo::switch::{PortSettings, Switch, SwitchOptions, Vlans};
    ///
    /// let guest = PortSettings { vlans: Vlans::Only(0), fixed: None };
    /// let switch = Switch::new(vec![guest; 3], SwitchOptions::default())?;
    /// # Ok::<(), rxo::switch::SwitchError>(())
    /// ```
    pub fn new(ports: Vec<PortSettings>, options: SwitchOptions) -> Result<Self, SwitchError> {
        port::check(&ports)?;
        Ok(Self {
            guards: vec![None; ports.len()],
            isolated: PortSet::default(),
            routers: (0..ports.len()).map(Port::nth).collect(),
            memory: Memory::new(Table::new(ports.len(), options), Snooping::new(ports.len())),
            counters: SwitchCounters::default(),
            ports,
        })
    }

    /// Sets the guard of `port`, and replaces an earlier guard. A port without a guard, such as that of a
    /// wire, is trusted: its device may send anything.
    ///
    /// # Panics
    /// If the switch has no such port.
    ///
    /// # Examples
    /// ```
    /// use rxo::switch::{Guard, Port, PortSettings, Switch, SwitchOptions, Vlans};
    ///
    /// let port = PortSettings { vlans: Vlans::Only(0), fixed: None };
    /// let mut switch = Switch::new(vec![port; 2], SwitchOptions::default())?;
    /// switch.guard(Port::new(1), Guard { ips: vec!["192.0.2.7".parse()?], ..Guard::default() });
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn guard(&mut self, port: Port, guard: Guard) {
        let set = |ports: PortSet, is_in: bool| {
            let others = ports.without(port);
            if is_in { others.plus(PortSet::only(port)) } else { others }
        };
        self.isolated = set(self.isolated, guard.is_isolated);
        self.routers = set(self.routers, guard.routes);
        self.guards[port.index()] = Some(guard);
    }

    /// Decides about a frame that arrived by port `from` at time `now`, and learns its source address. Takes
    /// O(1) time, except for a port with too many addresses: for such a port, the table is searched for expired
    /// addresses, at most once per second.
    ///
    /// # Panics
    /// If the switch has no port `from`.
    pub fn forward<B: AsRef<[u8]>>(
        &mut self,
        from: Port,
        frame: &Frame<B>,
        now: Instant,
    ) -> Forward {
        match self.judge(from, frame, now) {
            Ok(to) => Forward::To(to),
            Err(reason) => {
                self.counters.dropped[reason as usize] += 1;
                Forward::Drop(reason)
            }
        }
    }

    /// Returns the counters since the switch was created.
    #[must_use]
    pub const fn counters(&self) -> &SwitchCounters {
        &self.counters
    }

    /// Returns the number of learned addresses. An expired address counts until the address is looked up or replaced.
    #[must_use]
    pub fn address_count(&self) -> usize {
        self.memory.len()
    }

    /// Returns the number of ports.
    #[must_use]
    pub const fn port_count(&self) -> usize {
        self.ports.len()
    }

    /// Forgets the addresses and memberships learned at `port`, because its device has gone or was replaced.
    pub fn forget(&mut self, port: Port) {
        self.memory.forget(port);
    }

    /// Makes `count` switches with these ports, for as many threads. All of them know what one of them has learned;
    /// each has counters of its own. A single switch stays as it is.
    pub(crate) fn for_threads(self, count: usize) -> Vec<Self> {
        if count == 1 {
            return vec![self];
        }
        let Self { ports, guards, isolated, routers, memory, .. } = self;
        let switch = |memory| {
            let (ports, guards, counters) =
                (ports.clone(), guards.clone(), SwitchCounters::default());
            Self { ports, guards, isolated, routers, memory, counters }
        };
        memory.shared(count).into_iter().map(switch).collect()
    }

    fn judge<B: AsRef<[u8]>>(
        &mut self,
        from: Port,
        frame: &Frame<B>,
        now: Instant,
    ) -> Result<PortSet, DropReason> {
        let header = Header::read(frame).ok_or(DropReason::Truncated)?;
        let vlan = self.settings(from).vlan_in(&header).ok_or(DropReason::ForeignVlan)?;
        self.check_source(from, vlan, header.source)?;
        if header.destination.is_link_local() {
            return Err(DropReason::LinkLocal);
        }
        let packet = self.check_guard(from, header.destination, frame.bytes())?;
        if self.settings(from).fixed.is_none() {
            self.learn(from, (vlan, header.source), now);
        }
        if header.destination.is_group() {
            self.counters.flooded += 1;
            let wanted = self.wanted(from, (vlan, header.destination), packet.as_ref(), now);
            return Ok(wanted.minus(self.out_of_reach(from)));
        }
        match self.find((vlan, header.destination), now) {
            Some(port) if port == from => Err(DropReason::SamePort),
            Some(port) if self.out_of_reach(from).contains(port) => Err(DropReason::Isolated),
            Some(port) => {
                self.counters.forwarded += 1;
                Ok(PortSet::only(port))
            }
            None => {
                self.counters.flooded += 1;
                let learning = self.members(vlan, |port| port.fixed.is_none());
                Ok(learning.minus(self.out_of_reach(from)))
            }
        }
    }

    /// Checks a frame with the guard of its port. Returns the parsed packet if the guard or snooping needed
    /// it.
    fn check_guard<'f>(
        &self,
        from: Port,
        destination: MacAddress,
        frame: &'f [u8],
    ) -> Result<Option<Packet<'f>>, DropReason> {
        let guard = self.guards[from.index()].as_ref();
        if guard.is_none() && snooping::family(destination).is_none() {
            return Ok(None);
        }
        let packet = Packet::read(frame);
        guard.map_or(Ok(()), |guard| guard.check(self.settings(from).fixed, &packet))?;
        Ok(Some(packet))
    }

    /// Returns the ports of a VLAN that receive a frame of a multicast group: the ports whose devices have
    /// joined the group, and the ports that receive the frames of every group.
    fn wanted(
        &mut self,
        from: Port,
        (vlan, group): (u16, MacAddress),
        packet: Option<&Packet<'_>>,
        now: Instant,
    ) -> PortSet {
        let all = self.members(vlan, |_| true);
        let Some(packet) = packet else { return all };
        let from = (from, self.routers.contains(from));
        match self.memory.receivers(from, (vlan, group), packet, now) {
            Receivers::All => all,
            Receivers::Routers => all.and(self.routers),
            Receivers::Members(members) => all.and(self.routers.plus(members)),
        }
    }

    /// Returns the ports to which no frame from port `from` is forwarded: `from` itself and, if it is isolated,
    /// all isolated ports.
    const fn out_of_reach(&self, from: Port) -> PortSet {
        let own = PortSet::only(from);
        if self.isolated.contains(from) { own.plus(self.isolated) } else { own }
    }

    fn check_source(&self, from: Port, vlan: u16, source: MacAddress) -> Result<(), DropReason> {
        if source.is_group() || source == MacAddress::ZERO {
            return Err(DropReason::BadSource);
        }
        let is_foreign = match self.settings(from).fixed {
            Some(own) => own != source,
            None => self.find_fixed(vlan, source).is_some(),
        };
        if is_foreign { Err(DropReason::ForeignSource) } else { Ok(()) }
    }

    fn learn(&mut self, from: Port, address: (u16, MacAddress), now: Instant) {
        match self.memory.learn(address, from, now) {
            Learned::Known => {}
            Learned::New => self.counters.learned += 1,
            Learned::Moved => self.counters.moved += 1,
            Learned::Full => self.counters.not_learned += 1,
        }
    }

    fn find(&mut self, address: (u16, MacAddress), now: Instant) -> Option<Port> {
        self.find_fixed(address.0, address.1).or_else(|| self.memory.find(address, now))
    }

    /// Returns the port of VLAN `vlan` that is fixed to the Ethernet address `address`; `None` if there is
    /// none.
    fn find_fixed(&self, vlan: u16, address: MacAddress) -> Option<Port> {
        let is_it = |port: &PortSettings| port.fixed == Some(address) && port.vlans.carry(vlan);
        self.ports.iter().position(is_it).map(Port::nth)
    }

    /// Returns the ports of a VLAN for whose settings `is_meant` returns `true`.
    fn members(&self, vlan: u16, is_meant: impl Fn(&PortSettings) -> bool) -> PortSet {
        let ports = self.ports.iter().enumerate();
        ports
            .filter(|(_, port)| port.vlans.carry(vlan) && is_meant(port))
            .map(|(index, _)| Port::nth(index))
            .collect()
    }

    fn settings(&self, port: Port) -> &PortSettings {
        &self.ports[port.index()]
    }
}
