//! The networks that the demo and the live tests run on.
//!
//! ```text
//!  direct:   peer [eth0 10.77.0.1] ===veth=== [eth0 10.77.0.2] host
//!  through:  peer [eth0 10.77.0.1] ===veth=== [wire0] - rxo - [a TAP, 10.77.0.2] host
//!  as a user has it before rxo:
//!            peer [eth0 10.77.0.1] ===veth=== [eth1 10.77.0.2, or no address yet] host
//! ```
//!
//! The peer's kernel segments sent data to the MTU, so that frames on the wire look as if a network card had
//! sent them. In the second network, `wire0` has no address and answers no request: the peer learns everything
//! about the host, including its MAC address, through rxo.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use crate::error::Result;
use crate::link::{Interface, Offload, RateLimit, create_veth};
use crate::namespace::Namespace;

/// Two hosts, each in its own network namespace. Both namespaces are removed when this value is dropped.
#[derive(Debug)]
pub struct Lab {
    peer: Namespace,
    host: Namespace,
    options: LabOptions,
}

/// The parameters of a lab: properties of the wire and of the kernels at its ends, and the peer's ACKs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LabOptions {
    /// The MTU of the wire and of the host's interface, in bytes.
    pub mtu: u32,
    /// `true` if the peer leaves TCP checksums partial, as a veth does by default; `false` if every frame has
    /// a complete checksum.
    pub partial_checksums: bool,
    /// The limit of the peer's sending rate, in bytes per second; `None` for no limit.
    pub limit_bytes_per_s: Option<u64>,
    /// The core on which the peer's kernel processes received frames (0 to 31), as if the interrupt of the
    /// peer's card were bound to this core. The core of the peer's sender is the best choice. With `None`, ACKs
    /// are processed on the core that sent these ACKs; data then leaves from two cores at once, and the veth
    /// reorders the data. No effect on kernels before 6.3.
    pub peer_core: Option<usize>,
    /// The core on which the host's kernel processes frames from the wire; `None` leaves the choice to the
    /// kernel. Frames from a TAP are processed on the core on which they are written. This option is only
    /// useful for measuring the host's cost of sending.
    pub host_core: Option<usize>,
    /// The rate at which the peer acknowledges data from the host.
    pub acks: AckRate,
}

/// The rate at which the peer's kernel acknowledges received segments.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AckRate {
    /// The default of Linux. On a veth, the default is one ACK for 10 to 100 segments, because windows seldom
    /// open and GSO frames arrive whole.
    Default,
    /// One ACK for every segment that TCP receives, as from hosts without GRO. All segments that arrive while
    /// the receiving thread uses the connection share one ACK: 0.3 to 0.6 ACKs per segment were observed.
    EachSegment,
    /// One ACK for up to this number of full segments: the peer's kernel coalesces up to this number of
    /// segments, and acknowledges each aggregate. The value 1 is equivalent to [`AckRate::EachSegment`].
    Groups(u16),
}

impl Default for LabOptions {
    fn default() -> Self {
        Self {
            mtu: 1500,
            partial_checksums: true,
            limit_bytes_per_s: None,
            peer_core: None,
            host_core: None,
            acks: AckRate::Default,
        }
    }
}

/// The state of GRO (receive coalescing) in the host's kernel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KernelGro {
    /// The host's kernel coalesces received frames.
    On,
    /// The host's kernel delivers every frame separately.
    Off,
}

impl Lab {
    /// The name of the peer's only interface, in [`Lab::peer`].
    pub const PEER_INTERFACE: &'static str = "eth0";
    /// The name of the host's interface in a direct lab, in [`Lab::host`].
    pub const HOST_INTERFACE: &'static str = "eth0";
    /// The name of the interface from which rxo receives, in the namespace [`Lab::host`] of a lab that
    /// [`Lab::through`] created.
    pub const WIRE_INTERFACE: &'static str = "wire0";
    /// The name of the host's nic in labs that are set up like a user's machine: [`Lab::with_addressed_nic`],
    /// [`Lab::with_bare_nic`].
    pub const NIC: &'static str = "eth1";
    /// The addresses of the peer, for IPv4 and IPv6.
    pub const PEER_ADDRESSES: (Ipv4Addr, Ipv6Addr) =
        (Ipv4Addr::new(10, 77, 0, 1), Ipv6Addr::new(0xfd77, 0, 0, 0, 0, 0, 0, 1));
    /// The addresses of the host, for IPv4 and IPv6.
    pub const HOST_ADDRESSES: (Ipv4Addr, Ipv6Addr) =
        (Ipv4Addr::new(10, 77, 0, 2), Ipv6Addr::new(0xfd77, 0, 0, 0, 0, 0, 0, 2));

    /// Creates a lab in which peer and host are connected by one wire. `gro` is the state of GRO at the host.
    ///
    /// # Errors
    /// If the system refuses; see [`Namespace::new`].
    pub fn direct(gro: KernelGro) -> Result<Self> {
        Self::direct_with(gro, LabOptions::default())
    }

    /// Creates a lab in which peer and host are connected by one wire, with `options`. `gro` is the state of
    /// GRO at the host.
    ///
    /// # Errors
    /// The errors of [`Lab::direct`].
    pub fn direct_with(gro: KernelGro, options: LabOptions) -> Result<Self> {
        let lab = Self::new(options, Self::HOST_INTERFACE)?;
        let interface = lab.host.interface(Self::HOST_INTERFACE);
        interface.set_offload(Offload::GenericReceive, gro == KernelGro::On)?;
        lab.attach_host(Self::HOST_INTERFACE)?;
        lab.await_wire()?;
        Ok(lab)
    }

    /// Creates a lab in which peer and host are not connected, so that rxo can connect them. The caller opens
    /// `packet:wire0` and a TAP in [`Lab::host`] for rxo, then calls [`Lab::attach_host`] with the TAP's name.
    ///
    /// # Errors
    /// If the system refuses; see [`Namespace::new`].
    pub fn through() -> Result<Self> {
        Self::through_with(LabOptions::default())
    }

    /// Creates a lab with `options` in which rxo must connect peer and host; see [`Lab::through`].
    ///
    /// # Errors
    /// The errors of [`Lab::through`].
    pub fn through_with(options: LabOptions) -> Result<Self> {
        let lab = Self::new(options, Self::WIRE_INTERFACE)?;
        let wire = lab.host.interface(Self::WIRE_INTERFACE);
        // Otherwise the host would answer ARP for its address on any interface, and the peer would learn the wrong MAC
        // address.
        wire.set_arp(false)?;
        if lab.host.has_ipv6() && options.mtu >= LEAST_MTU_V6 {
            lab.host.set_sysctl("net.ipv6.conf.wire0.disable_ipv6", "1")?;
        }
        wire.up()?;
        lab.await_wire()?;
        Ok(lab)
    }

    /// Creates a lab in which the host is set up like a user's machine before rxo starts: the host's `eth1` has
    /// the host's addresses, and default routes via the peer. All other settings are the kernel's defaults: the
    /// kernel answers ARP, `eth1` has a link-local IPv6 address, and packets for the host are accepted on any
    /// interface.
    ///
    /// # Errors
    /// If the system refuses; see [`Namespace::new`].
    pub fn with_addressed_nic(options: LabOptions) -> Result<Self> {
        let lab = Self::with_bare_nic(options)?;
        lab.attach_host(Self::NIC)?;
        let nic = lab.host.interface(Self::NIC);
        nic.add_route((Ipv4Addr::UNSPECIFIED.into(), 0), Some(Self::PEER_ADDRESSES.0.into()))?;
        if lab.host.has_ipv6() && options.mtu >= LEAST_MTU_V6 {
            nic.add_route((Ipv6Addr::UNSPECIFIED.into(), 0), Some(Self::PEER_ADDRESSES.1.into()))?;
        }
        Ok(lab)
    }

    /// Creates a lab in which the host is set up like a user's machine before rxo starts, but the host's `eth1`
    /// has no address; see [`Lab::with_addressed_nic`].
    ///
    /// # Errors
    /// If the system refuses; see [`Namespace::new`].
    pub fn with_bare_nic(options: LabOptions) -> Result<Self> {
        let lab = Self::new(options, Self::NIC)?;
        lab.host.interface(Self::NIC).up()?;
        lab.await_wire()?;
        if lab.host.has_ipv6() && options.mtu >= LEAST_MTU_V6 {
            lab.host.await_ipv6(Self::NIC)?;
        }
        Ok(lab)
    }

    /// Connects peer and host again after one end of their wire was deleted. The peer's end gets the peer's
    /// addresses. The host's end, called `interface`, is new and down.
    ///
    /// # Errors
    /// If the system refuses.
    pub fn connect_again(&self, interface: &str) -> Result<()> {
        let near = self.peer.interface(Self::PEER_INTERFACE);
        create_veth(&near, &self.host.interface(interface))?;
        near.set_mtu(self.options.mtu)?;
        address(&near, Self::PEER_ADDRESSES, self.options.mtu)
    }

    /// Gives the host's `interface` the host's addresses and the wire's MTU, and switches the interface on.
    ///
    /// # Errors
    /// If there is no such interface.
    pub fn attach_host(&self, interface: &str) -> Result<()> {
        let interface = self.host.interface(interface);
        interface.set_mtu(self.options.mtu)?;
        address(&interface, Self::HOST_ADDRESSES, self.options.mtu)
    }

    /// Returns the network namespace of the peer.
    #[must_use]
    pub fn peer(&self) -> &Namespace {
        &self.peer
    }

    /// Returns the network namespace of the host.
    #[must_use]
    pub fn host(&self) -> &Namespace {
        &self.host
    }

    /// Returns the host's IPv4 address, for transfers.
    #[must_use]
    pub fn host_address(&self) -> IpAddr {
        Self::HOST_ADDRESSES.0.into()
    }

    /// Returns the peer's IPv4 address, for transfers in the other direction.
    #[must_use]
    pub fn peer_address(&self) -> IpAddr {
        Self::PEER_ADDRESSES.0.into()
    }

    /// Creates both namespaces and the wire, and configures the peer's end. `host_end` is the name of the host's end.
    fn new(options: LabOptions, host_end: &str) -> Result<Self> {
        let lab = Self { peer: Namespace::new("peer")?, host: Namespace::new("host")?, options };
        for namespace in [&lab.peer, &lab.host] {
            // Otherwise TCP would carry metrics from one transfer into the next.
            namespace.set_sysctl("net.ipv4.tcp_no_metrics_save", "1")?;
        }
        let near = lab.peer.interface(Self::PEER_INTERFACE);
        let far = lab.host.interface(host_end);
        for (namespace, core) in [(&lab.peer, options.peer_core), (&lab.host, options.host_core)] {
            core.map_or(Ok(()), |core| namespace.receive_on(Some(core)))?;
        }
        create_veth(&near, &far)?;
        // A TAP that is created from here on processes frames where they are written.
        options.host_core.map_or(Ok(()), |_| lab.host.receive_on(None))?;
        far.set_mtu(options.mtu)?;
        near.set_mtu(options.mtu)?;
        // The host's sends are segmented too: rxo and the peer must see frames of the wire's MTU.
        for end in [&near, &far] {
            end.set_offload(Offload::TransmitSegmentation, false)?;
            end.set_offload(Offload::GenericSegmentation, false)?;
            end.set_offload(Offload::TransmitChecksum, options.partial_checksums)?;
        }
        if let Some(bytes_per_s) = options.limit_bytes_per_s {
            near.limit_rate(RateLimit::new(bytes_per_s))?;
        }
        address(&near, Self::PEER_ADDRESSES, options.mtu)?;
        lab.set_ack_rate()?;
        Ok(lab)
    }

    /// Waits until the peer's end of the wire can send. This is not immediate, because the peer's end was
    /// switched on before the host's end.
    fn await_wire(&self) -> Result<()> {
        self.peer.interface(Self::PEER_INTERFACE).await_wire()
    }

    /// Sets the rate at which the peer acknowledges, according to the options.
    fn set_ack_rate(&self) -> Result<()> {
        let near = self.peer.interface(Self::PEER_INTERFACE);
        let segments = match self.options.acks {
            AckRate::Default => return Ok(()),
            AckRate::EachSegment => 1,
            AckRate::Groups(segments) => segments.max(1),
        };
        if segments > 1 {
            near.set_offload(Offload::GenericReceive, true)?;
            // Space for headers and the full segments, but not for one more segment.
            let bytes = u32::from(segments) * self.options.mtu + self.options.mtu / 2;
            near.set_coalesced_bytes(bytes)?;
        }
        near.acknowledge_at_once(Self::HOST_ADDRESSES.0.into())?;
        if self.peer.has_ipv6() {
            near.acknowledge_at_once(Self::HOST_ADDRESSES.1.into())?;
        }
        Ok(())
    }
}

fn address(interface: &Interface<'_>, addresses: (Ipv4Addr, Ipv6Addr), mtu: u32) -> Result<()> {
    interface.add_address(addresses.0.into(), 24)?;
    if interface.namespace().has_ipv6() && mtu >= LEAST_MTU_V6 {
        interface.add_address(addresses.1.into(), 64)?;
    }
    interface.up()
}

/// The minimum MTU of an IPv6 link in bytes (RFC 8200, section 5).
const LEAST_MTU_V6: u32 = 1280;
