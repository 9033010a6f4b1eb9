//! The configuration of a host.

use rxo_coalesce::{Config as EngineConfig, Policy};
use rxo_device::Pause;
use rxo_tcp::{AckPolicy, Buffers};
use thiserror::Error;

use crate::fast::FastPath;
use crate::link::{DEFAULT_NEIGHBOURS, IpCidr, LinkError, Probe, Route};
use crate::stages::StageTimer;

/// The configuration of a host. It determines all memory that the host will ever need.
#[derive(Clone, Debug)]
pub struct HostConfig {
    /// The host's addresses. At least one.
    pub addresses: Vec<IpCidr>,
    /// Routes to other networks; the longest prefix wins.
    pub routes: Vec<Route>,
    /// The Ethernet address; `None` derives one from the secret. Means nothing on other links.
    pub mac: Option<[u8; 6]>,
    /// The size of the neighbour table on an Ethernet: at least 4 beside the gateways, 4,096 by default, about
    /// 300 bytes each. A full table evicts the least recently used neighbour, never a gateway.
    pub neighbours: usize,
    /// How the addresses are probed before they are used ([`Host::probe`](crate::Host::probe)); `None`, the default, uses
    /// them at once. Means nothing without Ethernet.
    pub probe: Option<Probe>,
    /// Settings of every connection. Segment size and GSO frames are limited to what the device takes. By
    /// default the largest segment that the MTU allows is announced, 1,460 bytes for 1,500 and 8,960 for 9,000,
    /// and text in order is acknowledged once a turn. [`rxo_tcp::Config::initial_window`] is that of RFC 6928 by default; its
    /// first flight is limited by the send buffer of 64 KiB, too.
    pub tcp: rxo_tcp::Config,
    /// Settings of the receive engine, without link kind and batch size, which the host sets. The default
    /// policy is `remember`: every segment of an aggregate counts by itself. Aggregates may be longer than an IP packet.
    pub engine: EngineConfig,
    /// The most frames received in one turn, 1 to 32,768.
    pub budget_frames: usize,
    /// Whether the worker polls without sleeping: less delay, for a whole processor.
    pub busy: bool,
    /// How long the worker pauses between turns so that frames gather. Applications wait during a pause, too.
    /// A worker that polls without sleeping does not pause.
    pub pause: Pause,
    /// The most connections at a time, 1 to 1,048,576; 16,384 by default. Those in TIME-WAIT do not count.
    /// Above it a SYN is dropped, and a call that opens a connection fails.
    pub sockets: usize,
    /// The most connections in TIME-WAIT, 1 to 16,777,216; 65,536 by default. Less than 100 bytes each are
    /// allocated with the host. Another one evicts the oldest, whose late segments are then answered by a
    /// reset.
    pub time_waits: usize,
    /// The most orphans: connections without an application that have data to send or wait for the peer's
    /// FIN. 1 to 1,048,576, 1,024 by default. Beyond that, those are reset whose peers have taken less
    /// than 16 KiB for a minute; a peer that reads slowly is not, however many there are: what orphans hold is part of
    /// [`HostConfig::memory_bytes`]. [`HostConfig::tcp`] limits how long each waits for a peer that takes little.
    pub orphans: usize,
    /// The memory of all connections together, in bytes: 1 MiB to 1 TiB, 2 GiB by default.
    ///
    /// A connection that holds no text has reserved 8 KiB, and takes less than 3 KiB of the system's memory. The first
    /// text in a direction reserves the buffer of that direction; it is given back when the connection has been idle for a
    /// second, or at once while memory is short. The buffers of a new connection have 1/1,024 of what is left, at most
    /// what [`HostConfig::tcp`] asks for and at least 32 KiB in each direction: with the buffers of 64 KiB that a host
    /// begins with, 122 KiB are reserved while something is sent, and 161 KiB while something is received.
    /// They grow with the path: three quarters of the memory are for growth, the last quarter is for new
    /// connections and for those that wake. When these begin to use it, buffers that have grown are halved: free send
    /// memory comes back at once, receive memory as the peer fills the window that was offered.
    ///
    /// So all windows together can be more than the memory. What finds none is dropped and counted
    /// ([`HostCounters::texts_without_memory`](crate::HostCounters::texts_without_memory)); its sender retransmits it,
    /// and no window is taken back. Writing then waits for memory, and those who have waited longest get it first. Lent text
    /// ([`TcpStream::write_shared`](crate::TcpStream::write_shared)) counts as written text does, until the peer has acknowledged it. A connection without any gets on nevertheless, 2 KiB
    /// at a time. If there is not enough for both directions of one more connection, a SYN is dropped, and a call
    /// that opens a connection fails.
    pub memory_bytes: u64,
    /// Whether a listener with too many opening connections answers a SYN by a cookie (RFC 4987) instead of
    /// dropping it. Without timestamps such a connection has no SACK, window scale or ECN.
    pub syn_cookies: bool,
    /// Whether several acknowledgements are sent as a template (Menon and Zwaenepoel 2008, section 4). A device
    /// that can expands it; for any other it is expanded just before. Otherwise each is built by itself.
    pub ack_templates: bool,
    /// Which modules look at frames before the engine. Off by default; [`Handle::fast_path`](crate::Handle::fast_path)
    /// changes it while the host runs.
    pub fast_path: FastPath,
    /// The secret for initial sequence numbers and timestamps, and the seed of the flow table.
    pub secret: [u64; 2],
    /// Whether turns are timed stage by stage ([`HostCounters::stages`](crate::HostCounters)); `None`
    /// reads no clock.
    pub stage_timer: Option<StageTimer>,
}

impl HostConfig {
    /// A host with `addresses` and defaults for everything else. `secret` must be random and stay secret.
    #[must_use]
    pub fn new(addresses: Vec<IpCidr>, secret: [u64; 2]) -> Self {
        Self {
            addresses,
            routes: Vec::new(),
            mac: None,
            neighbours: DEFAULT_NEIGHBOURS,
            probe: None,
            tcp: tcp(),
            engine: EngineConfig::new(Policy::remember().for_records(), secret[0]),
            budget_frames: 256,
            busy: false,
            pause: Pause::default(),
            sockets: 16_384,
            time_waits: 65_536,
            orphans: 1_024,
            memory_bytes: 2 << 30,
            syn_cookies: true,
            ack_templates: true,
            fast_path: FastPath::default(),
            secret,
            stage_timer: None,
        }
    }

    /// The Ethernet address.
    pub(crate) fn ethernet_address(&self) -> [u8; 6] {
        self.mac.unwrap_or(local_mac(self.secret))
    }

    /// The part of this that each of `shards` gets.
    pub(crate) fn part_of(&self, shards: usize) -> Self {
        Self {
            sockets: self.sockets.div_ceil(shards),
            time_waits: self.time_waits.div_ceil(shards),
            orphans: self.orphans.div_ceil(shards),
            memory_bytes: (self.memory_bytes / shards as u64).max(LEAST_MEMORY_BYTES as u64),
            ..self.clone()
        }
    }

    /// Checks a policy of the receive engine.
    pub(crate) fn check_policy(policy: &Policy) -> Result<(), HostError> {
        if policy.takes_tunnels() { Err(HostError::Tunnels) } else { Ok(()) }
    }

    pub(crate) fn check(&self) -> Result<(), HostError> {
        Self::check_policy(&self.engine.policy)?;
        let rows = [
            ("budget_frames", self.budget_frames, 1, 32_768),
            ("sockets", self.sockets, 1, MOST_SOCKETS),
            ("time_waits", self.time_waits, 1, MOST_TIME_WAITS),
            ("orphans", self.orphans, 1, MOST_SOCKETS),
            ("memory_bytes", self.memory_bytes as usize, LEAST_MEMORY_BYTES, MOST_MEMORY_BYTES),
        ];
        for (option, value, least, most) in rows {
            if !(least..=most).contains(&value) {
                return Err(HostError::Number { option, value, least, most });
            }
        }
        Ok(())
    }
}

/// Why a host cannot be made.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum HostError {
    /// An address, a route or the neighbour table is invalid.
    #[error("{0}")]
    Link(#[from] LinkError),
    /// A number is out of range.
    #[error("{option} is {value}; choose {least} to {most}")]
    Number {
        /// The field.
        option: &'static str,
        /// Its value.
        value: usize,
        /// The least accepted.
        least: usize,
        /// The most accepted.
        most: usize,
    },
    /// A setting of the connections is invalid.
    #[error("tcp: {0}")]
    Tcp(#[from] rxo_tcp::ConfigError),
    /// A setting of the receive engine is invalid.
    #[error("engine: {0}")]
    Engine(#[from] rxo_coalesce::ConfigError),
    /// The receive engine would coalesce inside tunnels.
    #[error("engine: tunnels is on, and a host ends no tunnels; set it to off or auto")]
    Tunnels,
    /// Source and sink have different link kinds.
    #[error("the device's source and sink are of different kinds; give both ends of one device")]
    TwoLinks,
    /// The MTU of the device is too small.
    #[error("an MTU of {mtu} bytes is too small for TCP; choose at least {least}")]
    SmallMtu {
        /// The MTU of the device, in bytes.
        mtu: u32,
        /// The least valid MTU, in bytes.
        least: u32,
    },
    /// The system gave no descriptor for waking the worker.
    #[error("no descriptor to wake the worker: {0}")]
    NoDescriptor(String),
    /// Another shard of the host could not be opened.
    #[error("another shard of this host was not opened")]
    OtherShard,
}

/// Buffers that are small at first, and large where the path needs it. One acknowledgement a turn, because each
/// costs the peer more than several segments cost here; peers count bytes today.
fn tcp() -> rxo_tcp::Config {
    rxo_tcp::Config {
        maximum_segment_size: u16::MAX,
        send_buffer_bytes: 64 << 10,
        receive_buffer_bytes: 64 << 10,
        largest_buffers: Some(Buffers { send_bytes: 4 << 20, receive_bytes: 6 << 20 }),
        acks: AckPolicy::OneForATurn,
        ..rxo_tcp::Config::default()
    }
}

/// A locally administered Ethernet address (IEEE 802), derived from `secret`.
const fn local_mac(secret: [u64; 2]) -> [u8; 6] {
    let [_, b, c, d, e, f, ..] = secret[0].wrapping_mul(0x9e37_79b9_7f4a_7c15).to_be_bytes();
    [0x02, b, c, d, e, f]
}

const MOST_SOCKETS: usize = 1 << 20;
const MOST_TIME_WAITS: usize = 1 << 24;
const LEAST_MEMORY_BYTES: usize = 1 << 20;
const MOST_MEMORY_BYTES: usize = 1 << 40;
