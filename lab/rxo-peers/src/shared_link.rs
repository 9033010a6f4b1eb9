//! Many senders and one slower link: the network of the RSC paper's traces (2006, section 5).
//!
//! ```text
//!  sender 1 [eth0 10.78.1.1] ==veth== [port1] \
//!  sender 2 [eth0 10.78.1.2] ==veth== [port2]  switch [link0] ==veth== [eth0 10.78.0.1] receiver
//!  ...                                        /
//! ```
//!
//! Every sender is a host of its own: a namespace with one interface at the rate of the shared
//! link. Its kernel segments large sends at the interface, as a card with segmentation offload
//! does, and the frames leave one after the other. Frames of senders that are active at the same
//! time take turns in the switch, as on real links. The receiver's link is the queue in which they
//! wait, and determines when acknowledgements return.
//!
//! All frames have complete checksums, as from a wire, and the receiver's kernel coalesces nothing.

use std::net::{IpAddr, Ipv4Addr};

use rxo_testbed::{LabError, Namespace, Offload, RateLimit, Result, create_veth};

/// Senders, a switch, and a receiver behind a limited link. Removed when dropped.
#[derive(Debug)]
pub struct SharedLink {
    senders: Vec<Namespace>,
    _switch: Namespace,
    receiver: Namespace,
}

/// The parameters of the network.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SharedLinkOptions {
    /// Number of sending hosts, 1 to 250.
    pub senders: usize,
    /// MTU, in bytes.
    pub mtu: u32,
    /// Rate of every link: each sender's own, and the shared one to the receiver. Up to about
    /// 25,000,000 (200 Mbit/s) the kernel's timers preserve the distance between frames.
    pub bytes_per_s: u64,
    /// Full frames that a sender's link sends back to back, 1 to 64. The higher, the better a burst
    /// stays together; with 1, the frames of all active senders take turns.
    pub burst_frames: u32,
    /// True if TCP segments carry the timestamp option.
    pub timestamps: bool,
    /// The core on which the kernel processes all received frames (0 to 31), so that nothing is
    /// reordered between cores. No effect on kernels before 6.3.
    pub core: Option<usize>,
}

impl SharedLink {
    /// The receiver's only interface, in [`SharedLink::receiver`].
    pub const RECEIVER_INTERFACE: &'static str = INTERFACE;

    /// Builds the network.
    ///
    /// # Errors
    /// If an option is invalid or the system refuses; see [`Namespace::new`].
    pub fn new(options: SharedLinkOptions) -> Result<Self> {
        let count = options.senders;
        if !(1..=MOST_SENDERS).contains(&count) {
            let said = format!("{count} sending hosts: choose 1 to {MOST_SENDERS}");
            return Err(LabError::Usage(said));
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

    /// Returns the sending hosts.
    pub fn senders(&self) -> impl Iterator<Item = &Namespace> {
        self.senders.iter()
    }

    /// Returns the receiving host.
    #[must_use]
    pub fn receiver(&self) -> &Namespace {
        &self.receiver
    }

    /// Returns the receiver's address, for transfers.
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

/// Makes a namespace with IPv4 only, in which TCP remembers nothing between connections.
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

/// Connects `host` to `port` of the switch.
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

/// Name of every host's only interface.
const INTERFACE: &str = "eth0";
const LINK: &str = "link0";
const RECEIVER_ADDRESS: Ipv4Addr = Ipv4Addr::new(10, 78, 0, 1);
/// Queue of the shared link, in bytes: space for a payload of 64 KB from each of 120 connections.
const QUEUE_BYTES: u32 = 8 * 1024 * 1024;
/// Bytes of a frame besides the IP packet, with a margin.
const FRAME_BYTES: u32 = 64;
/// The greatest number of full frames that leave back to back: more than the segments of one large send.
const MOST_BURST_FRAMES: u32 = 64;
/// Queue of a sender's own link, in bytes.
const OWN_QUEUE_BYTES: u32 = 2 * 1024 * 1024;
/// The greatest number of senders: the number of available addresses. The kernel's bridge takes 1,023 ports.
const MOST_SENDERS: usize = 250;
