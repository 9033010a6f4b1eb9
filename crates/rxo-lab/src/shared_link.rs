//! Many senders and one slower link: the network of the RSC paper's traces (2006, section 5).
//!
//! ```text
//!  sender 1 [eth0 10.78.1.1] ==veth== [port1] \
//!  sender 2 [eth0 10.78.1.2] ==veth== [port2]  switch [link0] ==veth== [eth0 10.78.0.1] receiver
//!  ...                                        /
//! ```
//!
//! Every sender is a host of its own: a namespace with one interface, whose rate is that of the
//! shared link. What it hands to the interface at once is cut to the MTU there, by its own kernel,
//! as a card with large sends does, and leaves frame after frame; the frames of several that send
//! at the same time take turns in the switch, as they do on real links. The receiver's link is the
//! queue in which they wait, and decides when acknowledgements come back.
//!
//! All frames have full checksums, as off a wire, and the receiver's kernel coalesces nothing.

use std::net::{IpAddr, Ipv4Addr};

use crate::error::{Result, usage};
use crate::link::{Offload, RateLimit, create_veth};
use crate::namespace::Namespace;

/// Senders, a switch, and a receiver behind a limited link. Removed when dropped.
#[derive(Debug)]
pub struct SharedLink {
    senders: Vec<Namespace>,
    _switch: Namespace,
    receiver: Namespace,
}

/// How the network is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SharedLinkOptions {
    /// How many hosts send, 1 to 250.
    pub senders: usize,
    /// The largest IP packet, in bytes.
    pub mtu: u32,
    /// The rate of every link: each sender's own, and the one to the receiver, which they share.
    /// Up to some 25,000,000 (200 Mbit/s) the kernel's timers keep the distance between frames.
    pub bytes_per_s: u64,
    /// How many full frames a sender's own link sends back to back, 1 to 64. The more, the better
    /// what was sent at once stays together; with 1, frames of all that send at a time take turns.
    pub burst_frames: u32,
    /// Whether TCP segments carry the timestamp option.
    pub timestamps: bool,
    /// The core on which the kernel handles what arrives anywhere (0 to 31), so that nothing is
    /// reordered between two. Without effect on kernels that cannot (before 6.3).
    pub core: Option<usize>,
}

impl SharedLink {
    /// The receiver's only interface, in [`SharedLink::receiver`].
    pub const RECEIVER_INTERFACE: &'static str = INTERFACE;

    /// Builds it.
    ///
    /// # Errors
    /// When the options cannot be or the system refuses; see [`Namespace::new`].
    pub fn new(options: SharedLinkOptions) -> Result<Self> {
        let count = options.senders;
        if !(1..=MOST_SENDERS).contains(&count) {
            return Err(usage(format!("{count} sending hosts: choose 1 to {MOST_SENDERS}")));
        }
        let switch = host("switch", options)?;
        let bridge = switch.interface("br0");
        bridge.create_bridge()?;
        bridge.up()?;
        let receiver = host("receiver", options)?;
        attach(&receiver, RECEIVER_ADDRESS, &switch, LINK, options)?;
        let link = RateLimit::even(options.bytes_per_s, QUEUE_BYTES);
        switch.interface(LINK).limit_rate(link)?;
        let senders = (1..=count)
            .map(|number| {
                let sender = host(&format!("sender {number}"), options)?;
                let address = Ipv4Addr::new(10, 78, 1, number as u8);
                attach(&sender, address, &switch, &format!("port{number}"), options)?;
                sender.interface(INTERFACE).limit_rate(options.own_link())?;
                Ok(sender)
            })
            .collect::<Result<_>>()?;
        Ok(Self { senders, _switch: switch, receiver })
    }

    /// The hosts that send.
    pub fn senders(&self) -> impl Iterator<Item = &Namespace> {
        self.senders.iter()
    }

    /// The host that receives.
    #[must_use]
    pub fn receiver(&self) -> &Namespace {
        &self.receiver
    }

    /// The receiver's address, for transfers.
    #[must_use]
    pub fn receiver_address(&self) -> IpAddr {
        RECEIVER_ADDRESS.into()
    }
}

impl SharedLinkOptions {
    fn own_link(self) -> RateLimit {
        let frame_bytes = self.mtu + FRAME_BYTES;
        let burst_bytes = self.burst_frames.clamp(1, MOST_BURST_FRAMES) * frame_bytes;
        RateLimit { bytes_per_s: self.bytes_per_s, burst_bytes, queue_bytes: OWN_QUEUE_BYTES }
    }
}

/// A namespace in which nothing is remembered between connections and only IPv4 is spoken.
fn host(label: &str, options: SharedLinkOptions) -> Result<Namespace> {
    let host = Namespace::new(label)?;
    host.set_sysctl("net.ipv4.tcp_no_metrics_save", "1")?;
    host.set_sysctl("net.ipv4.tcp_timestamps", if options.timestamps { "1" } else { "0" })?;
    if host.has_ipv6() {
        host.set_sysctl("net.ipv6.conf.default.disable_ipv6", "1")?;
    }
    if let Some(core) = options.core {
        host.receive_on(Some(core))?;
    }
    Ok(host)
}

/// Ties `host` to `port` of the switch.
fn attach(
    host: &Namespace,
    address: Ipv4Addr,
    switch: &Namespace,
    port: &str,
    options: SharedLinkOptions,
) -> Result<()> {
    let (near, far) = (host.interface(INTERFACE), switch.interface(port));
    create_veth(&near, &far)?;
    for end in [&near, &far] {
        end.set_mtu(options.mtu)?;
        for offload in
            [Offload::TransmitSegmentation, Offload::GenericSegmentation, Offload::TransmitChecksum]
        {
            end.set_offload(offload, false)?;
        }
        end.set_offload(Offload::GenericReceive, false)?;
    }
    far.join_bridge(&switch.interface("br0"))?;
    far.up()?;
    near.add_address(address.into(), 16)?;
    near.up()
}

/// Every host's only interface.
const INTERFACE: &str = "eth0";
const LINK: &str = "link0";
const RECEIVER_ADDRESS: Ipv4Addr = Ipv4Addr::new(10, 78, 0, 1);
/// What may wait for the shared link: a payload of 64 KB of each of 120 connections.
const QUEUE_BYTES: u32 = 8 * 1024 * 1024;
/// What a frame has beside the IP packet, and a little.
const FRAME_BYTES: u32 = 64;
/// More than the kernel cuts a large send into.
const MOST_BURST_FRAMES: u32 = 64;
/// What may wait for a sender's own.
const OWN_QUEUE_BYTES: u32 = 2 * 1024 * 1024;
/// As many as there are addresses for; the kernel's bridge takes 1,023 ports.
const MOST_SENDERS: usize = 250;
