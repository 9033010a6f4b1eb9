//! What a host is made from.

use rxo_coalesce::{Config as EngineConfig, Policy};
use rxo_device::Pause;
use thiserror::Error;

use crate::link::{DEFAULT_NEIGHBOURS, IpCidr, LinkError, Route};
use crate::stages::StageTimer;

/// How a host is to work. Everything it will ever need in memory follows from this.
#[derive(Clone, Debug)]
pub struct HostConfig {
    /// Its addresses. At least one.
    pub addresses: Vec<IpCidr>,
    /// Where packets for other networks go; the longest prefix wins.
    pub routes: Vec<Route>,
    /// The address that it has on an Ethernet; `None` makes one of the secret. Means nothing
    /// elsewhere.
    pub mac: Option<[u8; 6]>,
    /// Neighbours on an Ethernet that are remembered, about 200 bytes each: at least 4 beside the gateways;
    /// 4,096 by default. When there are more, the one used least recently gives way, a gateway never.
    pub neighbours: usize,
    /// Settings of every connection. Segment size and large sends are made to fit the device: by default
    /// the largest segment that its MTU allows is announced, 1,460 bytes for 1,500 and 8,960 for 9,000.
    pub tcp: rxo_tcp::Config,
    /// The receive engine's; its link kind and batch size are set by the host. The policy
    /// `remember` unless it is changed: every segment of an aggregate counts as itself.
    pub engine: EngineConfig,
    /// Most frames taken in one turn, 1 to 32,768.
    pub budget_frames: usize,
    /// Whether the worker looks for frames without ever sleeping: less delay, a whole processor.
    pub busy: bool,
    /// When frames are let gather before the next turn, during which applications wait, too; not where
    /// the worker is busy.
    pub pause: Pause,
    /// Most connections at a time, 1 to 1,048,576; 16,384 by default. Those in TIME-WAIT do not count. A
    /// SYN beyond is dropped, and a call that opens one fails.
    pub sockets: usize,
    /// Most connections in TIME-WAIT, 1 to 16,777,216; 65,536 by default. Less than 100 bytes each are
    /// allocated with the host. One more makes the oldest give way, whose late segments are then
    /// answered by a reset.
    pub time_waits: usize,
    /// Most connections that applications have dropped and that still have something to send, or wait for
    /// their peer's FIN; 1 to 1,048,576, 1,024 by default. One more makes the oldest be reset. How long
    /// each may last is one of the settings in [`HostConfig::tcp`].
    pub orphans: usize,
    /// Memory for what all connections together send, receive and keep track of, in bytes: 1 MiB to
    /// 1 TiB, 2 GiB by default. A new connection gets a 1,024th of what is left, at most what
    /// [`HostConfig::tcp`] says and at least 32 KiB each way, so that there are full buffers for the first
    /// thousand and something for several thousand more. Where that is not left either, a SYN is dropped
    /// and a call that opens a connection fails. What is reserved is taken from the system when it is used.
    pub memory_bytes: u64,
    /// Whether a SYN for a listener with too many connections that are opening is answered by a cookie
    /// (RFC 4987). Without timestamps such a connection has no SACK, window scale and ECN; without
    /// cookies the SYN is dropped.
    pub syn_cookies: bool,
    /// Whether several acknowledgements leave as a template that is expanded just before the device
    /// (Menon 2008, section 4). Without, each is built by itself.
    pub ack_templates: bool,
    /// A secret that nobody outside may know: for initial sequence numbers and timestamps, and the
    /// seed of the flow table.
    pub secret: [u64; 2],
    /// Whether turns are timed stage by stage ([`HostCounters::stages`](crate::HostCounters)); `None`
    /// reads no clock.
    pub stage_timer: Option<StageTimer>,
}

impl HostConfig {
    /// A host with `addresses` and defaults for everything else. `secret` must be random and stay secret; tests may choose it.
    #[must_use]
    pub fn new(addresses: Vec<IpCidr>, secret: [u64; 2]) -> Self {
        Self {
            addresses,
            routes: Vec::new(),
            mac: None,
            neighbours: DEFAULT_NEIGHBOURS,
            tcp: rxo_tcp::Config { maximum_segment_size: u16::MAX, ..rxo_tcp::Config::default() },
            engine: EngineConfig::new(Policy::remember()),
            budget_frames: 256,
            busy: false,
            pause: Pause::default(),
            sockets: 16_384,
            time_waits: 65_536,
            orphans: 1_024,
            memory_bytes: 2 << 30,
            syn_cookies: true,
            ack_templates: true,
            secret,
            stage_timer: None,
        }
    }

    /// Its address on an Ethernet.
    pub(crate) fn ethernet_address(&self) -> [u8; 6] {
        self.mac.unwrap_or(local_mac(self.secret))
    }

    pub(crate) fn check(&self) -> Result<(), HostError> {
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
    /// An address, a route or a neighbour cannot be.
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
    /// A setting of the connections cannot be.
    #[error("tcp: {0}")]
    Tcp(#[from] rxo_tcp::ConfigError),
    /// A setting of the receive engine cannot be.
    #[error("engine: {0}")]
    Engine(#[from] rxo_coalesce::ConfigError),
    /// Source and sink begin their frames with different things.
    #[error("the device's source and sink are of different kinds; give both ends of one device")]
    TwoLinks,
    /// The device's MTU leaves no room.
    #[error("an MTU of {mtu} bytes is too small for TCP; choose at least {least}")]
    SmallMtu {
        /// The device's.
        mtu: u32,
        /// The least that works.
        least: u32,
    },
    /// The system gave no descriptor to wake the worker with.
    #[error("no descriptor to wake the worker: {0}")]
    NoDescriptor(String),
}

/// An address that nobody gave out (IEEE 802: locally administered), another for each secret.
const fn local_mac(secret: [u64; 2]) -> [u8; 6] {
    let [_, b, c, d, e, f, ..] = secret[0].wrapping_mul(0x9e37_79b9_7f4a_7c15).to_be_bytes();
    [0x02, b, c, d, e, f]
}

const MOST_SOCKETS: usize = 1 << 20;
const MOST_TIME_WAITS: usize = 1 << 24;
const LEAST_MEMORY_BYTES: usize = 1 << 20;
const MOST_MEMORY_BYTES: usize = 1 << 40;
