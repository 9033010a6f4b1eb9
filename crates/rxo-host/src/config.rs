//! The configuration of a host.

use rxo_coalesce::{Config as EngineConfig, Policy};
use rxo_device::Pause;
use rxo_frame::ConfigError;
use rxo_tcp::{AckPolicy, Buffers};
use thiserror::Error;

use crate::fast::FastPath;
use crate::link::{DEFAULT_NEIGHBOURS, IpCidr, LinkError, Probe, Route};
use crate::stages::StageTimer;

/// The configuration of a host. Its limits bound all memory that the host allocates.
#[derive(Clone, Debug)]
pub struct HostConfig {
    /// The host's addresses; at least one.
    pub addresses: Vec<IpCidr>,
    /// Routes to other networks; the longest prefix wins.
    pub routes: Vec<Route>,
    /// The host's Ethernet address; `None` derives one from the secret. Ignored on links other than Ethernet.
    pub mac: Option<[u8; 6]>,
    /// Maximum number of entries in the neighbour table on Ethernet: at least 4 more than the number of
    /// gateways, 4,096 by default. An entry takes about 300 bytes. A full table evicts the least recently used
    /// neighbour, but never a gateway.
    pub neighbours: usize,
    /// The parameters of duplicate address detection ([`Host::probe`](crate::Host::probe)). With `None`, the
    /// default, the addresses are used without detection. Ignored on links other than Ethernet.
    pub probe: Option<Probe>,
    /// Settings of every connection. Segment size and GSO frames are limited to what the device supports. By
    /// default, the host announces the largest segment that the MTU allows, 1,460 bytes for an MTU of 1,500 and
    /// 8,960 for 9,000, and acknowledges in-order data once per call of [`Host::turn`](crate::Host::turn). The
    /// initial window ([`rxo_tcp::Config::initial_window`]) is that of RFC 6928 by default; the first flight is
    /// also limited by the send buffer of 64 KiB.
    pub tcp: rxo_tcp::Config,
    /// Settings of the receive engine; the host itself sets link kind and batch size. The default policy is
    /// `remember`: TCP processes each segment of an aggregate separately. Aggregates may be longer than an IP
    /// packet.
    pub engine: EngineConfig,
    /// Maximum number of frames received per call of [`Host::turn`](crate::Host::turn), 1 to 32,768.
    pub budget_frames: usize,
    /// `true` to poll without sleeping. The latency is lower, but the worker uses a whole CPU core.
    pub busy: bool,
    /// The pause of the worker between two calls of [`Host::turn`](crate::Host::turn), during which frames
    /// gather in the device. The pause also delays data of applications. Ignored if `busy` is set.
    pub pause: Pause,
    /// Maximum number of connections, 1 to 1,048,576; 16,384 by default. Connections in TIME-WAIT are not
    /// counted. At the limit, a SYN is dropped, and a call that opens a connection fails.
    pub sockets: usize,
    /// Maximum number of connections in TIME-WAIT, 1 to 16,777,216; 65,536 by default. Less than 100 bytes for
    /// each are allocated when the host is created. At the limit, the oldest is evicted, and its late segments
    /// are answered with a reset.
    pub time_waits: usize,
    /// Maximum number of orphans: connections that the application has closed and that still have data to send
    /// or wait for the peer's FIN. 1 to 1,048,576; 1,024 by default. Beyond the limit, orphans whose peer has
    /// accepted less than 16 KiB within a minute are reset. Other orphans are kept, because
    /// [`HostConfig::memory_bytes`] bounds their memory. [`HostConfig::tcp`] limits how long an orphan waits
    /// for a peer that accepts little.
    pub orphans: usize,
    /// The memory of all connections together, in bytes: 1 MiB to 1 TiB, 2 GiB by default.
    ///
    /// A connection that holds no data reserves 8 KiB, and takes less than 3 KiB of the system's memory. The
    /// first data in a direction reserves the buffer of that direction. The buffer is released after a second
    /// without traffic, or at once while memory is short. The buffers of a new connection are 1/1,024 of the
    /// free memory, limited to the sizes in [`HostConfig::tcp`] and to at least 32 KiB per direction. With the
    /// initial buffers of 64 KiB, 122 KiB are reserved while the host sends, and 161 KiB while it receives. The
    /// buffers grow as the path requires. Three quarters of the memory are for growth; the last quarter is for
    /// new connections and for idle connections that become active. When such connections begin to use the last
    /// quarter, grown buffers are halved: free send memory is released at once, receive memory as the peer
    /// fills the offered window.
    ///
    /// All windows together can therefore exceed the memory. Data that arrives while no memory is free is
    /// dropped and counted ([`TcpCounters::texts_without_memory`](crate::TcpCounters::texts_without_memory));
    /// its sender retransmits it, and no offered window is reduced. Applications that write then wait for
    /// memory; the connection that has waited longest is served first. Shared bytes
    /// ([`TcpStream::write_shared`](crate::TcpStream::write_shared)) are counted like copied bytes until the
    /// peer has acknowledged them. A connection without memory still makes progress, 2 KiB at a time. If there
    /// is not enough memory for both directions of one more connection, a SYN is dropped, and a call that opens
    /// a connection fails.
    pub memory_bytes: u64,
    /// `true` to answer SYNs with SYN cookies (RFC 4987), instead of dropping them, while a listener has too
    /// many half-open connections. A connection that is opened by a cookie has no SACK, window scale or ECN,
    /// unless it uses timestamps.
    pub syn_cookies: bool,
    /// `true` to build several ACKs of a connection as one template (Menon and Zwaenepoel 2008, section 4). A
    /// capable device expands the template to ACKs; for other devices, the host expands it just before
    /// transmission. If `false`, each ACK is built separately.
    pub ack_templates: bool,
    /// The modules that process frames before the receive engine. All modules are off by default;
    /// [`Handle::fast_path`](crate::Handle::fast_path) changes them while the host runs.
    pub fast_path: FastPath,
    /// The secret for initial sequence numbers and timestamps; also the seed of the flow table.
    pub secret: [u64; 2],
    /// The timer that measures the stages of [`Host::turn`](crate::Host::turn)
    /// ([`HostCounters::stages`](crate::HostCounters)). With `None`, no stage is measured.
    pub stage_timer: Option<StageTimer>,
}

impl HostConfig {
    /// Creates a configuration with `addresses` and defaults for everything else. `secret` must be random and
    /// stay secret.
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

    /// Returns the configured Ethernet address, or the one derived from the secret.
    pub(crate) fn ethernet_address(&self) -> [u8; 6] {
        self.mac.unwrap_or(local_mac(self.secret))
    }

    /// Returns the configuration of one of `shards` shards. The limits and the memory are divided equally among
    /// the shards.
    pub(crate) fn part_of(&self, shards: usize) -> Self {
        Self {
            sockets: self.sockets.div_ceil(shards),
            time_waits: self.time_waits.div_ceil(shards),
            orphans: self.orphans.div_ceil(shards),
            memory_bytes: (self.memory_bytes / shards as u64).max(LEAST_MEMORY_BYTES as u64),
            ..self.clone()
        }
    }

    /// Checks that `policy` does not coalesce inside tunnels, which a host cannot do.
    pub(crate) fn check_policy(policy: &Policy) -> Result<(), HostError> {
        if policy.takes_tunnels() { Err(HostError::Tunnels) } else { Ok(()) }
    }

    pub(crate) fn check(&self) -> Result<(), HostError> {
        Self::check_policy(&self.engine.policy)?;
        let numbers = [
            ("budget_frames", self.budget_frames, 1, 32_768),
            ("sockets", self.sockets, 1, MOST_SOCKETS),
            ("time_waits", self.time_waits, 1, MOST_TIME_WAITS),
            ("orphans", self.orphans, 1, MOST_SOCKETS),
            ("memory_bytes", self.memory_bytes as usize, LEAST_MEMORY_BYTES, MOST_MEMORY_BYTES),
        ];
        let numbers =
            numbers.map(|(name, value, from, to)| (name, value as u64, from as u64, to as u64));
        ConfigError::check(numbers).map_err(HostError::Number)
    }
}

/// The reason for which a host cannot be created.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum HostError {
    /// An address, a route or the neighbour table is invalid.
    #[error("{0}")]
    Link(#[from] LinkError),
    /// A numeric setting is out of range.
    #[error("{0}")]
    Number(ConfigError),
    /// A setting of the connections is invalid.
    #[error("tcp: {0}")]
    Tcp(ConfigError),
    /// A setting of the receive engine is invalid.
    #[error("engine: {0}")]
    Engine(ConfigError),
    /// The policy of the receive engine would coalesce inside tunnels.
    #[error("engine: tunnels is on, and a host ends no tunnels; set it to off or auto")]
    Tunnels,
    /// The device's source and sink have different link kinds.
    #[error("the device's source and sink are of different kinds; give both ends of one device")]
    TwoLinks,
    /// The MTU of the device is too small for TCP.
    #[error("an MTU of {mtu} bytes is too small for TCP; choose at least {least}")]
    SmallMtu {
        /// The MTU of the device, in bytes.
        mtu: u32,
        /// The smallest valid MTU, in bytes.
        least: u32,
    },
    /// The system refused to create the descriptor that wakes the worker.
    #[error("no descriptor to wake the worker: {0}")]
    NoDescriptor(String),
    /// Another shard of this host could not be opened.
    #[error("another shard of this host was not opened")]
    OtherShard,
}

/// Returns the default TCP settings. Buffers start small and grow if the path needs larger ones. One ACK is
/// sent per call of [`Host::turn`](crate::Host::turn), because processing an ACK costs the peer more than
/// processing several segments costs this host. Fewer ACKs do not slow a peer that counts acknowledged bytes.
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

/// Returns a locally administered unicast Ethernet address (IEEE 802), derived from `secret`.
const fn local_mac(secret: [u64; 2]) -> [u8; 6] {
    let [_, b, c, d, e, f, ..] = secret[0].wrapping_mul(0x9e37_79b9_7f4a_7c15).to_be_bytes();
    [0x02, b, c, d, e, f]
}

const MOST_SOCKETS: usize = 1 << 20;
const MOST_TIME_WAITS: usize = 1 << 24;
const LEAST_MEMORY_BYTES: usize = 1 << 20;
const MOST_MEMORY_BYTES: usize = 1 << 40;
