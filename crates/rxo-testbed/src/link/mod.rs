//! Creates, configures, inspects and removes interfaces of a namespace.

mod inspect;
mod offload;
mod rate;
mod route;

use std::io;
use std::net::IpAddr;
use std::os::fd::AsRawFd;
use std::time::Duration;

use netlink_packet_core::{NLM_F_CREATE, NLM_F_EXCL, NLM_F_REPLACE};
use netlink_packet_route::RouteNetlinkMessage;
use netlink_packet_route::address::{AddressAttribute, AddressFlags, AddressMessage};
use netlink_packet_route::link::{
    InfoBridge, InfoData, InfoKind, InfoVeth, InfoVlan, LinkAttribute, LinkFlags, LinkInfo,
    LinkMessage,
};

use crate::error::{Context, Result};
use crate::namespace::Namespace;

pub use inspect::InterfaceCounters;
pub use offload::Offload;
pub use rate::RateLimit;

/// A MAC address.
pub type Mac = [u8; 6];

/// An interface of a namespace, by name. Dropping this handle does not remove it; its namespace or
/// [`Interface::delete`] does.
#[derive(Clone, Debug)]
pub struct Interface<'n> {
    namespace: &'n Namespace,
    name: String,
}

/// Creates a veth pair: frames sent on one interface arrive at the other. Both are down.
///
/// # Errors
/// If a name is taken, or the kernel has no veth.
pub fn create_veth(one: &Interface<'_>, other: &Interface<'_>) -> Result<()> {
    let mut far = named(&other.name);
    far.attributes.push(LinkAttribute::NetNsFd(other.namespace.handle().as_raw_fd()));
    let kind = LinkInfo::Kind(InfoKind::Veth);
    one.create(vec![kind, LinkInfo::Data(InfoData::Veth(InfoVeth::Peer(far)))], None)
}

impl<'n> Interface<'n> {
    pub(crate) fn new(namespace: &'n Namespace, name: &str) -> Self {
        Self { namespace, name: name.to_owned() }
    }

    /// The name of the interface.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The namespace it is in.
    #[must_use]
    pub fn namespace(&self) -> &'n Namespace {
        self.namespace
    }

    /// Creates this interface as a bridge.
    ///
    /// # Errors
    /// If the name is taken, or the kernel has no bridges.
    pub fn create_bridge(&self) -> Result<()> {
        self.create(vec![LinkInfo::Kind(InfoKind::Bridge)], None)
    }

    /// Creates this interface as a bridge that asks for memberships of groups and forwards a group to its members only,
    /// a second after it is up.
    ///
    /// # Errors
    /// If the name is taken, or the kernel has no bridges.
    pub fn create_querier(&self) -> Result<()> {
        let bridge = |settings| {
            let kind = LinkInfo::Kind(InfoKind::Bridge);
            vec![kind, LinkInfo::Data(InfoData::Bridge(settings))]
        };
        let response = InfoBridge::MulticastQueryResponseInterval(TICKS_A_SECOND / 2);
        self.create(bridge(vec![response, InfoBridge::MulticastIgmpVersion(3)]), None)?;
        // By itself: it forwards by memberships when the interval has passed that holds now.
        let mut message = named(&self.name);
        let querier = bridge(vec![InfoBridge::MulticastQuerier(true)]);
        message.attributes.push(LinkAttribute::LinkInfo(querier));
        self.change(RouteNetlinkMessage::NewLink(message), 0).context(|| self.cannot("set up"))
    }

    /// Creates this interface as VLAN `id` of `parent`.
    ///
    /// # Errors
    /// If the name is taken, or the kernel has no VLAN interfaces.
    pub fn create_vlan(&self, parent: &Self, id: u16) -> Result<()> {
        let data = InfoData::Vlan(vec![InfoVlan::Id(id)]);
        let info = vec![LinkInfo::Kind(InfoKind::Vlan), LinkInfo::Data(data)];
        self.create(info, Some(LinkAttribute::Link(parent.index()?)))
    }

    /// Creates this interface as a macvlan on `parent`: it shares the wire but has its own MAC
    /// address.
    ///
    /// # Errors
    /// If the name is taken, or the kernel has no macvlan.
    pub fn create_macvlan(&self, parent: &Self) -> Result<()> {
        let info = vec![LinkInfo::Kind(InfoKind::MacVlan)];
        self.create(info, Some(LinkAttribute::Link(parent.index()?)))
    }

    /// Removes the interface. Removing one end of a veth removes the other.
    ///
    /// # Errors
    /// If it does not exist.
    pub fn delete(&self) -> Result<()> {
        let request = RouteNetlinkMessage::DelLink(named(&self.name));
        self.change(request, 0).context(|| self.cannot("remove"))
    }

    /// Switches the interface on.
    ///
    /// # Errors
    /// If it does not exist.
    pub fn up(&self) -> Result<()> {
        self.set_flags(LinkFlags::Up, true)
    }

    /// Switches the interface off.
    ///
    /// # Errors
    /// If it does not exist.
    pub fn down(&self) -> Result<()> {
        self.set_flags(LinkFlags::Up, false)
    }

    /// Renames the interface.
    ///
    /// # Errors
    /// If it does not exist, the name is taken, or the kernel requires it to be down (before 6.2).
    pub fn rename(&self, name: &str) -> Result<()> {
        let mut message = LinkMessage::default();
        message.header.index = self.index()?;
        message.attributes.push(LinkAttribute::IfName(name.to_owned()));
        self.change(RouteNetlinkMessage::SetLink(message), 0).context(|| self.cannot("rename"))
    }

    /// Switches ARP on this interface on or off.
    ///
    /// # Errors
    /// If it does not exist.
    pub fn set_arp(&self, on: bool) -> Result<()> {
        self.set_flags(LinkFlags::Noarp, !on)
    }

    /// Sets the MAC address.
    ///
    /// # Errors
    /// If the interface does not exist, or its kind requires it to be down.
    pub fn set_mac(&self, mac: Mac) -> Result<()> {
        self.set(LinkAttribute::Address(mac.to_vec()), "set the MAC address of")
    }

    /// Sets the MTU, in bytes.
    ///
    /// # Errors
    /// If the interface does not exist or rejects this size.
    pub fn set_mtu(&self, bytes: u32) -> Result<()> {
        self.set(LinkAttribute::Mtu(bytes), "set the MTU of")
    }

    /// Makes the interface a port of `bridge`.
    ///
    /// # Errors
    /// If one of them does not exist, or `bridge` is not a bridge.
    pub fn join_bridge(&self, bridge: &Self) -> Result<()> {
        self.set(LinkAttribute::Controller(bridge.index()?), "add to a bridge")
    }

    /// Adds an address. It is usable at once, without duplicate address detection.
    ///
    /// # Errors
    /// If the interface does not exist or has the address already.
    pub fn add_address(&self, address: IpAddr, prefix_bits: u8) -> Result<()> {
        let mut message = AddressMessage::default();
        message.header.family = route::family(address);
        message.header.prefix_len = prefix_bits;
        message.header.index = self.index()?;
        message.attributes = vec![
            AddressAttribute::Local(address),
            AddressAttribute::Address(address),
            AddressAttribute::Flags(AddressFlags::Nodad),
        ];
        self.change(RouteNetlinkMessage::NewAddress(message), NLM_F_CREATE | NLM_F_EXCL)
            .context(|| self.cannot(&format!("add the address {address}/{prefix_bits} to")))
    }

    /// Routes packets for `destination` out of this interface, via `gateway` if given.
    ///
    /// # Errors
    /// If the interface is down, or the route exists.
    pub fn add_route(&self, destination: (IpAddr, u8), gateway: Option<IpAddr>) -> Result<()> {
        let message = route::route(self.index()?, destination, gateway);
        self.change(RouteNetlinkMessage::NewRoute(message), NLM_F_CREATE | NLM_F_EXCL).context(
            || self.cannot(&format!("add the route to {}/{} by", destination.0, destination.1)),
        )
    }

    /// Routes packets for `destination`, which must be on this link, out of this interface, and
    /// makes TCP acknowledge every packet from there at once.
    ///
    /// # Errors
    /// As [`Interface::add_route`].
    pub fn acknowledge_at_once(&self, destination: IpAddr) -> Result<()> {
        let bits = if destination.is_ipv4() { 32 } else { 128 };
        let route = route::route(self.index()?, (destination, bits), None);
        let message = route::with_quick_acks(route);
        self.change(RouteNetlinkMessage::NewRoute(message), NLM_F_CREATE | NLM_F_EXCL)
            .context(|| self.cannot(&format!("add the route to {destination} by")))
    }

    /// Limits the size of the packets that the kernel's GRO makes, in bytes from the IP header. No
    /// effect on IPv4 before Linux 6.3.
    ///
    /// # Errors
    /// If the interface does not exist.
    pub fn set_coalesced_bytes(&self, bytes: u32) -> Result<()> {
        self.set(LinkAttribute::GroMaxSize(bytes), "limit what is coalesced on")
    }

    /// Limits the size of the GSO packets that the stack sends, in bytes. Above 65,536 they are
    /// what Linux calls BIG TCP. No effect on IPv4 before Linux 6.3.
    ///
    /// # Errors
    /// If the interface does not exist, or rejects packets that large.
    pub fn set_large_send_bytes(&self, bytes: u32) -> Result<()> {
        self.set(LinkAttribute::GsoMaxSize(bytes), "limit what is segmented on")?;
        self.set(LinkAttribute::GsoIpv4MaxSize(bytes), "limit what is segmented on")
    }

    /// Sets the MAC address of a neighbour, so that no ARP or neighbour discovery is needed.
    ///
    /// # Errors
    /// If the interface does not exist.
    pub fn add_neighbour(&self, address: IpAddr, mac: Mac) -> Result<()> {
        let message = route::neighbour(self.index()?, address, mac);
        self.change(RouteNetlinkMessage::NewNeighbour(message), NLM_F_CREATE | NLM_F_REPLACE)
            .context(|| self.cannot(&format!("add the neighbour {address} to")))
    }

    /// Switches an offload on or off.
    ///
    /// # Errors
    /// If the interface does not exist, or its kind does not allow the change.
    pub fn set_offload(&self, which: Offload, on: bool) -> Result<()> {
        offload::set(self, which, on)
    }

    /// Whether an offload is on.
    ///
    /// # Errors
    /// If the interface does not exist.
    pub fn offload(&self, which: Offload) -> Result<bool> {
        offload::get(self, which)
    }

    /// Lets the kernel hold what it coalesces beyond the end of a poll, for this time at most, and until its clock
    /// ticks (1 to 10 ms).
    ///
    /// # Errors
    /// If the interface does not exist.
    pub fn hold_coalesced(&self, at_most: Duration) -> Result<()> {
        offload::hold_coalesced(self, at_most)
    }

    /// Lets a kernel thread process what the interface receives (threaded NAPI, since Linux 5.12). Otherwise the
    /// kernel does it inside the system call of the thread that sent it, on a veth, and charges that thread.
    ///
    /// # Errors
    /// If the interface does not exist, or its kind or the kernel does not allow it.
    pub fn receive_in_thread(&self) -> Result<()> {
        offload::receive_in_thread(self)
    }

    /// Limits the sending rate of the interface with the kernel's token bucket.
    ///
    /// # Errors
    /// `Unsupported` if the kernel has no token bucket. Senders can then be limited one by one (see
    /// `BulkConfig::limit_bytes_per_s`).
    pub fn limit_rate(&self, limit: RateLimit) -> Result<()> {
        rate::limit_rate(self, limit)
    }

    pub(crate) fn change(&self, request: RouteNetlinkMessage, flags: u16) -> io::Result<()> {
        self.namespace.netlink().change(request, flags)
    }

    pub(crate) fn cannot(&self, verb: &str) -> String {
        format!("cannot {verb} {} in namespace \"{}\"", self.name, self.namespace.label())
    }

    fn create(&self, info: Vec<LinkInfo>, extra: Option<LinkAttribute>) -> Result<()> {
        let mut message = named(&self.name);
        message.attributes.push(LinkAttribute::LinkInfo(info));
        message.attributes.extend(extra);
        self.change(RouteNetlinkMessage::NewLink(message), NLM_F_CREATE | NLM_F_EXCL)
            .context(|| self.cannot("make the interface"))
    }

    fn set(&self, attribute: LinkAttribute, verb: &str) -> Result<()> {
        let mut message = named(&self.name);
        message.attributes.push(attribute);
        self.change(RouteNetlinkMessage::SetLink(message), 0).context(|| self.cannot(verb))
    }

    fn set_flags(&self, flags: LinkFlags, on: bool) -> Result<()> {
        let mut message = named(&self.name);
        message.header.flags = if on { flags } else { LinkFlags::empty() };
        message.header.change_mask = flags;
        self.change(RouteNetlinkMessage::SetLink(message), 0)
            .context(|| self.cannot("switch on or off"))
    }
}

fn named(name: &str) -> LinkMessage {
    let mut message = LinkMessage::default();
    message.attributes.push(LinkAttribute::IfName(name.to_owned()));
    message
}

/// The unit of a bridge's intervals is a hundredth of a second.
const TICKS_A_SECOND: u64 = 100;
