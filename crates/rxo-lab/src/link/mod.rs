//! Interfaces of a namespace: made, configured, asked and removed.

mod inspect;
mod offload;
mod rate;
mod route;

use std::io;
use std::net::IpAddr;
use std::os::fd::AsRawFd;

use netlink_packet_core::{NLM_F_CREATE, NLM_F_EXCL, NLM_F_REPLACE};
use netlink_packet_route::RouteNetlinkMessage;
use netlink_packet_route::address::{AddressAttribute, AddressFlags, AddressMessage};
use netlink_packet_route::link::{
    InfoData, InfoKind, InfoVeth, InfoVlan, LinkAttribute, LinkFlags, LinkInfo, LinkMessage,
};

use crate::error::{Context, Result};
use crate::namespace::Namespace;

pub use inspect::InterfaceCounters;
pub use offload::Offload;
pub use rate::RateLimit;

/// A MAC address.
pub type Mac = [u8; 6];

/// An interface of a namespace, by name. It is not removed when dropped: it goes with its
/// namespace, or by [`Interface::delete`].
#[derive(Clone, Debug)]
pub struct Interface<'n> {
    namespace: &'n Namespace,
    name: String,
}

/// Makes a veth pair: what goes into one interface comes out of the other. Both are down.
///
/// # Errors
/// When a name is taken or the kernel has no veth.
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

    /// Its name.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The namespace it is in.
    #[must_use]
    pub fn namespace(&self) -> &'n Namespace {
        self.namespace
    }

    /// Makes this interface a bridge.
    ///
    /// # Errors
    /// When the name is taken or the kernel has no bridges.
    pub fn create_bridge(&self) -> Result<()> {
        self.create(vec![LinkInfo::Kind(InfoKind::Bridge)], None)
    }

    /// Makes this interface the VLAN `id` of `parent`.
    ///
    /// # Errors
    /// When the name is taken or the kernel has no VLAN interfaces.
    pub fn create_vlan(&self, parent: &Self, id: u16) -> Result<()> {
        let data = InfoData::Vlan(vec![InfoVlan::Id(id)]);
        let info = vec![LinkInfo::Kind(InfoKind::Vlan), LinkInfo::Data(data)];
        self.create(info, Some(LinkAttribute::Link(parent.index()?)))
    }

    /// Makes this interface one with a hardware address of its own on the wire of `parent`.
    ///
    /// # Errors
    /// When the name is taken or the kernel has no such interfaces.
    pub fn create_macvlan(&self, parent: &Self) -> Result<()> {
        let info = vec![LinkInfo::Kind(InfoKind::MacVlan)];
        self.create(info, Some(LinkAttribute::Link(parent.index()?)))
    }

    /// Removes the interface; a veth's other end goes with it.
    ///
    /// # Errors
    /// When it does not exist.
    pub fn delete(&self) -> Result<()> {
        let request = RouteNetlinkMessage::DelLink(named(&self.name));
        self.change(request, 0).context(|| self.cannot("remove"))
    }

    /// Switches the interface on.
    ///
    /// # Errors
    /// When it does not exist.
    pub fn up(&self) -> Result<()> {
        self.set_flags(LinkFlags::Up, true)
    }

    /// Switches the interface off.
    ///
    /// # Errors
    /// When it does not exist.
    pub fn down(&self) -> Result<()> {
        self.set_flags(LinkFlags::Up, false)
    }

    /// Gives it another name.
    ///
    /// # Errors
    /// When it does not exist, the name is taken, or the kernel wants it down for that (before 6.2).
    pub fn rename(&self, name: &str) -> Result<()> {
        let mut message = LinkMessage::default();
        message.header.index = self.index()?;
        message.attributes.push(LinkAttribute::IfName(name.to_owned()));
        self.change(RouteNetlinkMessage::SetLink(message), 0).context(|| self.cannot("rename"))
    }

    /// Switches ARP on this interface on or off.
    ///
    /// # Errors
    /// When it does not exist.
    pub fn set_arp(&self, on: bool) -> Result<()> {
        self.set_flags(LinkFlags::Noarp, !on)
    }

    /// Sets the MAC address.
    ///
    /// # Errors
    /// When the interface does not exist or is of a kind that needs to be down.
    pub fn set_mac(&self, mac: Mac) -> Result<()> {
        self.set(LinkAttribute::Address(mac.to_vec()), "set the MAC address of")
    }

    /// Sets the largest IP packet, in bytes.
    ///
    /// # Errors
    /// When the interface does not exist or does not take this size.
    pub fn set_mtu(&self, bytes: u32) -> Result<()> {
        self.set(LinkAttribute::Mtu(bytes), "set the MTU of")
    }

    /// Makes the interface a port of `bridge`.
    ///
    /// # Errors
    /// When one of them does not exist or `bridge` is none.
    pub fn join_bridge(&self, bridge: &Self) -> Result<()> {
        self.set(LinkAttribute::Controller(bridge.index()?), "add to a bridge")
    }

    /// Gives the interface an address, usable at once (without duplicate address detection).
    ///
    /// # Errors
    /// When the interface does not exist or has the address.
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

    /// Sends what is for `destination` out of this interface, by way of `gateway` if given.
    ///
    /// # Errors
    /// When the interface is down or there is such a route.
    pub fn add_route(&self, destination: (IpAddr, u8), gateway: Option<IpAddr>) -> Result<()> {
        let message = route::route(self.index()?, destination, gateway);
        self.change(RouteNetlinkMessage::NewRoute(message), NLM_F_CREATE | NLM_F_EXCL).context(
            || self.cannot(&format!("add the route to {}/{} by", destination.0, destination.1)),
        )
    }

    /// Sends what is for `destination`, which is on this link, out of this interface, and lets TCP
    /// acknowledge what comes from there at once: every packet that it is given.
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

    /// Limits the packets that the kernel's own coalescing makes of what comes in, in bytes from
    /// the IP header on. Without effect on IPv4 before Linux 6.3.
    ///
    /// # Errors
    /// When the interface does not exist.
    pub fn set_coalesced_bytes(&self, bytes: u32) -> Result<()> {
        self.set(LinkAttribute::GroMaxSize(bytes), "limit what is coalesced on")
    }

    /// Limits the packets that the stack leaves to the interface to be segmented, in bytes; above
    /// 65,536 they are what Linux calls BIG TCP. Without effect on IPv4 before Linux 6.3.
    ///
    /// # Errors
    /// When the interface does not exist, or does not take packets that large.
    pub fn set_large_send_bytes(&self, bytes: u32) -> Result<()> {
        self.set(LinkAttribute::GsoMaxSize(bytes), "limit what is segmented on")?;
        self.set(LinkAttribute::GsoIpv4MaxSize(bytes), "limit what is segmented on")
    }

    /// Fixes the MAC address of a neighbour, so that nobody is asked for it.
    ///
    /// # Errors
    /// When the interface does not exist.
    pub fn add_neighbour(&self, address: IpAddr, mac: Mac) -> Result<()> {
        let message = route::neighbour(self.index()?, address, mac);
        self.change(RouteNetlinkMessage::NewNeighbour(message), NLM_F_CREATE | NLM_F_REPLACE)
            .context(|| self.cannot(&format!("add the neighbour {address} to")))
    }

    /// Switches an offload on or off.
    ///
    /// # Errors
    /// When the interface does not exist or its kind does not let the offload be changed.
    pub fn set_offload(&self, which: Offload, on: bool) -> Result<()> {
        offload::set(self, which, on)
    }

    /// Whether an offload is on.
    ///
    /// # Errors
    /// When the interface does not exist.
    pub fn offload(&self, which: Offload) -> Result<bool> {
        offload::get(self, which)
    }

    /// Limits what the interface sends, with the kernel's token bucket.
    ///
    /// # Errors
    /// `Unsupported` when the kernel has no token buckets; senders can then be limited one by one
    /// (see `BulkConfig::limit_bytes_per_s`).
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
