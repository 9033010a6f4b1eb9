//! Creates, configures, inspects and removes interfaces of a namespace.

mod inspect;
mod offload;
mod rate;
mod route;
mod tunnel;

use std::io;
use std::net::IpAddr;
use std::os::fd::AsRawFd;
use std::time::Duration;

use rxo_netlink::{Request, nested};

use crate::error::{Context, Result};
use crate::namespace::Namespace;

pub use inspect::InterfaceCounters;
pub use offload::{CoalescingHold, Offload};
pub use rate::RateLimit;
pub use tunnel::Vxlan;

/// A MAC address.
pub type Mac = [u8; 6];

/// A handle of an interface of a namespace, identified by its name. Dropping the handle does not remove the
/// interface. The interface exists until [`Interface::delete`] is called or its namespace is removed.
#[derive(Clone, Debug)]
pub struct Interface<'n> {
    namespace: &'n Namespace,
    name: String,
}

/// Creates a veth pair: frames sent on one interface arrive at the other. Both interfaces are down.
///
/// # Errors
/// If a name is taken, or the kernel has no veth.
pub fn create_veth(one: &Interface<'_>, other: &Interface<'_>) -> Result<()> {
    create_veth_of(one, other, &[])
}

/// Creates a veth pair with `queues` queues in each direction at each end; both ends are down. See
/// [`create_veth`].
///
/// # Errors
/// Returns the errors of [`create_veth`].
pub fn create_veth_with_queues(
    one: &Interface<'_>,
    other: &Interface<'_>,
    queues: u32,
) -> Result<()> {
    let queues = queues.to_ne_bytes();
    create_veth_of(one, other, &[(SEND_QUEUES, &queues), (RECEIVE_QUEUES, &queues)])
}

fn create_veth_of(one: &Interface<'_>, other: &Interface<'_>, both: &[(u16, &[u8])]) -> Result<()> {
    let (name, namespace) = (format!("{}\0", other.name), other.namespace.handle().as_raw_fd());
    let namespace = namespace.to_ne_bytes();
    let far: [(u16, &[u8]); 2] =
        [(libc::IFLA_IFNAME, name.as_bytes()), (libc::IFLA_NET_NS_FD, &namespace)];
    // The value of the attribute begins with an `ifinfomsg`, as a request does.
    let peer = [[0; HEADER_BYTES].as_slice(), &nested(&[&far, both].concat())].concat();
    let near = one.of_kind("veth", &[(VETH_PEER, &peer)]);
    one.create(both.iter().fold(near, |near, (kind, value)| near.attribute(*kind, value)))
}

/// The number of the netlink attribute `IFLA_NUM_TX_QUEUES`.
const SEND_QUEUES: u16 = 31;
const RECEIVE_QUEUES: u16 = 32;

impl<'n> Interface<'n> {
    pub(crate) fn new(namespace: &'n Namespace, name: &str) -> Self {
        Self { namespace, name: name.to_owned() }
    }

    /// Returns the name of the interface.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Returns the interface's namespace.
    #[must_use]
    pub fn namespace(&self) -> &'n Namespace {
        self.namespace
    }

    /// Creates this interface as a bridge.
    ///
    /// # Errors
    /// If the name is taken, or the kernel has no bridges.
    pub fn create_bridge(&self) -> Result<()> {
        self.create(self.of_kind("bridge", &[]))
    }

    /// Creates this interface as a bridge that queries group memberships. From one second after the bridge is
    /// switched on, it forwards frames of a group only to members of the group.
    ///
    /// # Errors
    /// If the name is taken, or the kernel has no bridges.
    pub fn create_querier(&self) -> Result<()> {
        let response = (TICKS_A_SECOND / 2).to_ne_bytes();
        let settings: [(u16, &[u8]); 2] =
            [(BRIDGE_QUERY_RESPONSE_INTERVAL, &response), (BRIDGE_IGMP_VERSION, &[3])];
        self.create(self.of_kind("bridge", &settings))?;
        // Set alone first: the bridge forwards by memberships only after the interval that is set at this moment.
        let querier = self.of_kind("bridge", &[(BRIDGE_QUERIER, &[1])]);
        self.change(&querier).context(|| self.cannot("set up"))
    }

    /// Creates this interface as VLAN `id` of `parent`.
    ///
    /// # Errors
    /// If the name is taken, or the kernel has no VLAN interfaces.
    pub fn create_vlan(&self, parent: &Self, id: u16) -> Result<()> {
        self.create_on(parent, self.of_kind("vlan", &[(VLAN_ID, &id.to_ne_bytes())]))
    }

    /// Creates this interface as a macvlan on `parent`: both interfaces share a wire, but each has a MAC
    /// address of its own.
    ///
    /// # Errors
    /// If the name is taken, or the kernel has no macvlan.
    pub fn create_macvlan(&self, parent: &Self) -> Result<()> {
        self.create_on(parent, self.of_kind("macvlan", &[]))
    }

    /// Removes the interface. Removing one end of a veth also removes the other end.
    ///
    /// # Errors
    /// If the interface does not exist.
    pub fn delete(&self) -> Result<()> {
        self.change(&named(libc::RTM_DELLINK, &self.name)).context(|| self.cannot("remove"))
    }

    /// Moves the interface to another namespace, where it is down and has no addresses.
    ///
    /// # Errors
    /// If the interface does not exist, or its name is taken there.
    pub fn move_to(&self, namespace: &Namespace) -> Result<()> {
        let number = namespace.handle().as_raw_fd().cast_unsigned();
        self.set_number(libc::IFLA_NET_NS_FD, number, "move")
    }

    /// Switches the interface on.
    ///
    /// # Errors
    /// If the interface does not exist.
    pub fn up(&self) -> Result<()> {
        self.set_flag(libc::IFF_UP, true)
    }

    /// Switches the interface off.
    ///
    /// # Errors
    /// If the interface does not exist.
    pub fn down(&self) -> Result<()> {
        self.set_flag(libc::IFF_UP, false)
    }

    /// Renames the interface.
    ///
    /// # Errors
    /// If the interface does not exist, the name is taken, or the kernel (before 6.2) requires the interface to
    /// be down.
    pub fn rename(&self, name: &str) -> Result<()> {
        let request = request(libc::RTM_SETLINK, [0, self.index()?, 0, 0]);
        self.change(&request.string(libc::IFLA_IFNAME, name)).context(|| self.cannot("rename"))
    }

    /// Switches ARP on this interface on or off.
    ///
    /// # Errors
    /// If the interface does not exist.
    pub fn set_arp(&self, on: bool) -> Result<()> {
        self.set_flag(libc::IFF_NOARP, !on)
    }

    /// Sets the MAC address.
    ///
    /// # Errors
    /// If the interface does not exist, or its kind requires the interface to be down.
    pub fn set_mac(&self, mac: Mac) -> Result<()> {
        self.set(libc::IFLA_ADDRESS, &mac, "set the MAC address of")
    }

    /// Sets the MTU, in bytes.
    ///
    /// # Errors
    /// If the interface does not exist or rejects this size.
    pub fn set_mtu(&self, bytes: u32) -> Result<()> {
        self.set_number(libc::IFLA_MTU, bytes, "set the MTU of")
    }

    /// Makes the interface a port of `bridge`.
    ///
    /// # Errors
    /// If one of the two interfaces does not exist, or `bridge` is not a bridge.
    pub fn join_bridge(&self, bridge: &Self) -> Result<()> {
        self.set_number(libc::IFLA_MASTER, bridge.index()?, "add to a bridge")
    }

    /// Adds an address. The address is usable at once, without duplicate address detection.
    ///
    /// # Errors
    /// If the interface does not exist or has the address already.
    pub fn add_address(&self, address: IpAddr, prefix_bits: u8) -> Result<()> {
        self.change(&route::address(self.index()?, address, prefix_bits))
            .context(|| self.cannot(&format!("add the address {address}/{prefix_bits} to")))
    }

    /// Routes packets for `destination` out of this interface, via `gateway` if given.
    ///
    /// # Errors
    /// If the interface is down, or the route exists.
    pub fn add_route(&self, destination: (IpAddr, u8), gateway: Option<IpAddr>) -> Result<()> {
        self.change(&route::route(self.index()?, destination, gateway)).context(|| {
            self.cannot(&format!("add the route to {}/{} by", destination.0, destination.1))
        })
    }

    /// Routes packets for `destination`, which must be on this link, out of this interface, and makes TCP
    /// acknowledge every packet from `destination` at once.
    ///
    /// # Errors
    /// The errors of [`Interface::add_route`].
    pub fn acknowledge_at_once(&self, destination: IpAddr) -> Result<()> {
        let bits = if destination.is_ipv4() { 32 } else { 128 };
        let route = route::route(self.index()?, (destination, bits), None);
        self.change(&route::with_quick_acks(route))
            .context(|| self.cannot(&format!("add the route to {destination} by")))
    }

    /// Limits the size of the aggregates that the kernel's GRO builds, in bytes from the start of the IP
    /// header. No effect on IPv4 before Linux 6.3.
    ///
    /// # Errors
    /// If the interface does not exist.
    pub fn set_coalesced_bytes(&self, bytes: u32) -> Result<()> {
        self.set_number(libc::IFLA_GRO_MAX_SIZE, bytes, "limit what is coalesced on")
    }

    /// Limits the size of the GSO packets that the stack sends, in bytes. Linux calls packets above 65,536
    /// bytes BIG TCP. No effect on IPv4 before Linux 6.3.
    ///
    /// # Errors
    /// If the interface does not exist, or rejects packets of this size.
    pub fn set_large_send_bytes(&self, bytes: u32) -> Result<()> {
        self.set_number(libc::IFLA_GSO_MAX_SIZE, bytes, "limit what is segmented on")?;
        self.set_number(GSO_IPV4_MAX_SIZE, bytes, "limit what is segmented on")
    }

    /// Sets the MAC address of a neighbour, so that no ARP or neighbour discovery is needed.
    ///
    /// # Errors
    /// If the interface does not exist.
    pub fn add_neighbour(&self, address: IpAddr, mac: Mac) -> Result<()> {
        self.change(&route::neighbour(self.index()?, address, mac))
            .context(|| self.cannot(&format!("add the neighbour {address} to")))
    }

    /// Switches an offload on or off.
    ///
    /// # Errors
    /// If the interface does not exist, or its kind does not allow the change.
    pub fn set_offload(&self, which: Offload, on: bool) -> Result<()> {
        offload::set(self, which, on)
    }

    /// Returns `true` if an offload is on.
    ///
    /// # Errors
    /// If the interface does not exist.
    pub fn offload(&self, which: Offload) -> Result<bool> {
        offload::get(self, which)
    }

    /// Lets the kernel hold coalesced packets beyond the end of a poll, for at most this time plus the time
    /// until its next clock tick (1 to 10 ms).
    ///
    /// # Errors
    /// If the interface does not exist.
    pub fn hold_coalesced(&self, at_most: Duration) -> Result<()> {
        self.coalescing_hold()?.set(at_most).context(|| self.cannot("hold what is coalesced on"))
    }

    /// Opens the setting of [`Interface::hold_coalesced`], for a caller that changes the setting repeatedly.
    ///
    /// # Errors
    /// If the interface does not exist.
    pub fn coalescing_hold(&self) -> Result<CoalescingHold> {
        CoalescingHold::open(self)
    }

    /// Lets a kernel thread process received frames (threaded NAPI, since Linux 5.12). Without such a thread,
    /// the kernel processes the frames of a veth inside the sender's system call, and charges the processor
    /// time to the sending thread. Returns the thread's id; `None` if kernel threads are not visible to this
    /// process.
    ///
    /// # Errors
    /// If the interface does not exist, or its kind or the kernel does not allow it.
    pub fn receive_in_thread(&self) -> Result<Option<u32>> {
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

    pub(crate) fn change(&self, request: &Request) -> io::Result<()> {
        self.namespace.netlink().change(request)
    }

    /// Returns the beginning of an error message: "cannot", `verb`, and the interface.
    pub fn cannot(&self, verb: &str) -> String {
        format!("cannot {verb} {} in namespace \"{}\"", self.name, self.namespace.label())
    }

    /// Builds a request for an interface with this name and the kind `kind`. `settings` are attributes of
    /// that kind.
    fn of_kind(&self, kind: &str, settings: &[(u16, &[u8])]) -> Request {
        let settings = nested(settings);
        let info: [(u16, &[u8]); 2] =
            [(libc::IFLA_INFO_KIND, kind.as_bytes()), (libc::IFLA_INFO_DATA, &settings)];
        named(libc::RTM_NEWLINK, &self.name).nest(libc::IFLA_LINKINFO, &info)
    }

    fn create(&self, request: Request) -> Result<()> {
        self.change(&request.flags(libc::NLM_F_CREATE | libc::NLM_F_EXCL))
            .context(|| self.cannot("make the interface"))
    }

    fn create_on(&self, parent: &Self, request: Request) -> Result<()> {
        self.create(request.attribute(libc::IFLA_LINK, &parent.index()?.to_ne_bytes()))
    }

    fn set(&self, attribute: u16, value: &[u8], verb: &str) -> Result<()> {
        let request = named(libc::RTM_SETLINK, &self.name).attribute(attribute, value);
        self.change(&request).context(|| self.cannot(verb))
    }

    fn set_number(&self, attribute: u16, number: u32, verb: &str) -> Result<()> {
        self.set(attribute, &number.to_ne_bytes(), verb)
    }

    fn set_flag(&self, flag: libc::c_int, on: bool) -> Result<()> {
        let flag = flag.cast_unsigned();
        let request = request(libc::RTM_SETLINK, [0, 0, if on { flag } else { 0 }, flag]);
        self.change(&request.string(libc::IFLA_IFNAME, &self.name))
            .context(|| self.cannot("switch on or off"))
    }
}

fn named(kind: u16, name: &str) -> Request {
    request(kind, [0; 4]).string(libc::IFLA_IFNAME, name)
}

/// Builds a request about interfaces. `header` is the structure `ifinfomsg` in words: family and type, index,
/// flags, and the mask of flags to change.
fn request(kind: u16, header: [u32; 4]) -> Request {
    Request::new(kind, &header.map(u32::to_ne_bytes).concat())
}

/// The length of the structure `ifinfomsg`, in bytes.
const HEADER_BYTES: usize = 16;
/// The number of units per second in which the kernel counts a bridge's intervals.
const TICKS_A_SECOND: u64 = 100;
// linux/if_link.h and linux/veth.h.
const GSO_IPV4_MAX_SIZE: u16 = 63;
const VLAN_ID: u16 = 1;
const VETH_PEER: u16 = 1;
const BRIDGE_QUERIER: u16 = 25;
const BRIDGE_QUERY_RESPONSE_INTERVAL: u16 = 34;
const BRIDGE_IGMP_VERSION: u16 = 43;
