//! The networks that the demo and the live tests run on.
//!
//! ```text
//!  direct:   peer [eth0 10.77.0.1] ===veth=== [eth0 10.77.0.2] host
//!  through:  peer [eth0 10.77.0.1] ===veth=== [wire0] - rxo - [a TAP, 10.77.0.2] host
//!  as a user has it before rxo:
//!            peer [eth0 10.77.0.1] ===veth=== [eth1 10.77.0.2, or no address yet] host
//! ```
//!
//! The peer's interface cuts what it sends to the MTU, as a network card's wire does. In the
//! second network `wire0` has no address and answers nobody: whatever the peer learns of the
//! host, its MAC address too, has crossed rxo.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use crate::error::Result;
use crate::link::{Interface, Offload, RateLimit, create_veth};
use crate::namespace::Namespace;

/// Two hosts in private networks. Removed when dropped.
#[derive(Debug)]
pub struct Lab {
    peer: Namespace,
    host: Namespace,
    options: LabOptions,
}

/// How the wire is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LabOptions {
    /// The largest IP packet, in bytes, on the wire and on the host's interface.
    pub mtu: u32,
    /// Whether the peer leaves TCP checksums partial, as a veth does by default. Off, every frame
    /// carries a full one.
    pub partial_checksums: bool,
    /// A limit for what the peer sends; `None` is as fast as it goes.
    pub limit_bytes_per_s: Option<u64>,
    /// The core on which the peer's kernel handles what it receives (0 to 31), as if its card's
    /// interrupt were bound there; best the core of its sender. With `None`, acknowledgements are
    /// handled where they were sent, data leaves from two cores at once, and the veth reorders it.
    /// Without effect on kernels that cannot (before 6.3).
    pub peer_core: Option<usize>,
    /// The same for what the host receives from the wire; what it gets by a TAP is handled where it
    /// is written. Only of use where the host sends and what it costs the host is to be measured.
    pub host_core: Option<usize>,
    /// How often the peer acknowledges what the host sends.
    pub acks: AckRate,
}

/// How often the peer's kernel acknowledges.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AckRate {
    /// As Linux does by itself on such a wire: an ACK for 10 to 100 segments, because windows open
    /// seldom and large sends arrive together.
    Default,
    /// Every segment that is given to TCP, as hosts do that take segments one by one. Where the
    /// receiving thread holds a connection, what comes meanwhile is acknowledged together: 0.3 to
    /// 0.6 ACKs for a segment are what is seen.
    EachSegment,
    /// One ACK for up to this many full segments: the peer's kernel coalesces so many, and each
    /// aggregate is acknowledged. 1 is as [`AckRate::EachSegment`].
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

/// Whether the host's kernel coalesces what it receives.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KernelGro {
    /// It does.
    On,
    /// Every frame goes up on its own.
    Off,
}

impl Lab {
    /// The peer's only interface, in [`Lab::peer`].
    pub const PEER_INTERFACE: &'static str = "eth0";
    /// The host's interface of a direct lab, in [`Lab::host`].
    pub const HOST_INTERFACE: &'static str = "eth0";
    /// Where rxo takes frames from, in [`Lab::host`] of a lab made by [`Lab::through`].
    pub const WIRE_INTERFACE: &'static str = "wire0";
    /// The host's nic where it is as a user has it: [`Lab::with_addressed_nic`],
    /// [`Lab::with_bare_nic`].
    pub const NIC: &'static str = "eth1";
    /// The peer's addresses.
    pub const PEER_ADDRESSES: (Ipv4Addr, Ipv6Addr) =
        (Ipv4Addr::new(10, 77, 0, 1), Ipv6Addr::new(0xfd77, 0, 0, 0, 0, 0, 0, 1));
    /// The host's addresses.
    pub const HOST_ADDRESSES: (Ipv4Addr, Ipv6Addr) =
        (Ipv4Addr::new(10, 77, 0, 2), Ipv6Addr::new(0xfd77, 0, 0, 0, 0, 0, 0, 2));

    /// Peer and host on one wire.
    ///
    /// # Errors
    /// When the system refuses; see [`Namespace::new`].
    pub fn direct(gro: KernelGro) -> Result<Self> {
        Self::direct_with(gro, LabOptions::default())
    }

    /// Peer and host on one wire that is as `options` say.
    ///
    /// # Errors
    /// As [`Lab::direct`].
    pub fn direct_with(gro: KernelGro, options: LabOptions) -> Result<Self> {
        let lab = Self::new(options, Self::HOST_INTERFACE)?;
        let interface = lab.host.interface(Self::HOST_INTERFACE);
        interface.set_offload(Offload::GenericReceive, gro == KernelGro::On)?;
        lab.attach_host(Self::HOST_INTERFACE)?;
        Ok(lab)
    }

    /// Peer and host with room for rxo between them: open `packet:wire0` and a TAP in
    /// [`Lab::host`], then call [`Lab::attach_host`] with the TAP's name.
    ///
    /// # Errors
    /// When the system refuses; see [`Namespace::new`].
    pub fn through() -> Result<Self> {
        Self::through_with(LabOptions::default())
    }

    /// The same with a wire that is as `options` say.
    ///
    /// # Errors
    /// As [`Lab::through`].
    pub fn through_with(options: LabOptions) -> Result<Self> {
        let lab = Self::new(options, Self::WIRE_INTERFACE)?;
        let wire = lab.host.interface(Self::WIRE_INTERFACE);
        // The host would answer ARP for its address on any interface, and the peer would learn
        // the wrong MAC address.
        wire.set_arp(false)?;
        if lab.host.has_ipv6() && options.mtu >= LEAST_MTU_V6 {
            lab.host.set_sysctl("net.ipv6.conf.wire0.disable_ipv6", "1")?;
        }
        wire.up()?;
        Ok(lab)
    }

    /// Peer and host as users have them before rxo: the host's `eth1` has its addresses, and default
    /// routes by way of the peer. Everything else is as the kernel sets it up by itself: ARP is
    /// answered, IPv6 has its link-local address, and packets for the host are taken on whichever
    /// interface they arrive.
    ///
    /// # Errors
    /// When the system refuses; see [`Namespace::new`].
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

    /// The same where `eth1` has no address yet.
    ///
    /// # Errors
    /// When the system refuses; see [`Namespace::new`].
    pub fn with_bare_nic(options: LabOptions) -> Result<Self> {
        let lab = Self::new(options, Self::NIC)?;
        lab.host.interface(Self::NIC).up()?;
        if lab.host.has_ipv6() && options.mtu >= LEAST_MTU_V6 {
            lab.host.await_ipv6(Self::NIC)?;
        }
        Ok(lab)
    }

    /// Peer and host have a wire again after an end of it was deleted. The peer's end has its addresses;
    /// the host's, `interface`, is new and down.
    ///
    /// # Errors
    /// When the system refuses.
    pub fn connect_again(&self, interface: &str) -> Result<()> {
        let near = self.peer.interface(Self::PEER_INTERFACE);
        create_veth(&near, &self.host.interface(interface))?;
        near.set_mtu(self.options.mtu)?;
        address(&near, Self::PEER_ADDRESSES, self.options.mtu)
    }

    /// Gives `interface` of the host the host's addresses and the wire's MTU, and switches it on.
    ///
    /// # Errors
    /// When there is no such interface.
    pub fn attach_host(&self, interface: &str) -> Result<()> {
        let interface = self.host.interface(interface);
        interface.set_mtu(self.options.mtu)?;
        address(&interface, Self::HOST_ADDRESSES, self.options.mtu)
    }

    /// The namespace of the peer, who sends.
    #[must_use]
    pub fn peer(&self) -> &Namespace {
        &self.peer
    }

    /// The namespace of the host, who receives.
    #[must_use]
    pub fn host(&self) -> &Namespace {
        &self.host
    }

    /// The host's IPv4 address, for transfers.
    #[must_use]
    pub fn host_address(&self) -> IpAddr {
        Self::HOST_ADDRESSES.0.into()
    }

    /// The peer's IPv4 address, for transfers in the other direction.
    #[must_use]
    pub fn peer_address(&self) -> IpAddr {
        Self::PEER_ADDRESSES.0.into()
    }

    /// Both namespaces, the wire, and the peer's end configured.
    fn new(options: LabOptions, host_end: &str) -> Result<Self> {
        let lab = Self { peer: Namespace::new("peer")?, host: Namespace::new("host")?, options };
        for namespace in [&lab.peer, &lab.host] {
            // Or a transfer would begin with what TCP remembers of the one before.
            namespace.set_sysctl("net.ipv4.tcp_no_metrics_save", "1")?;
        }
        let near = lab.peer.interface(Self::PEER_INTERFACE);
        let far = lab.host.interface(host_end);
        for (namespace, core) in [(&lab.peer, options.peer_core), (&lab.host, options.host_core)] {
            core.map_or(Ok(()), |core| namespace.receive_on(Some(core)))?;
        }
        create_veth(&near, &far)?;
        // A TAP made from here on is handled where it is written.
        options.host_core.map_or(Ok(()), |_| lab.host.receive_on(None))?;
        far.set_mtu(options.mtu)?;
        near.set_mtu(options.mtu)?;
        // What the host sends is cut too: rxo and the peer are to see frames of the wire's MTU.
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

    /// Lets the peer acknowledge as often as the options say.
    fn set_ack_rate(&self) -> Result<()> {
        let near = self.peer.interface(Self::PEER_INTERFACE);
        let segments = match self.options.acks {
            AckRate::Default => return Ok(()),
            AckRate::EachSegment => 1,
            AckRate::Groups(segments) => segments.max(1),
        };
        if segments > 1 {
            near.set_offload(Offload::GenericReceive, true)?;
            // Headers, the full segments, and half of one that shall not fit.
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

/// RFC 8200, section 5: on a link with less there is no IPv6.
const LEAST_MTU_V6: u32 = 1280;
