//! One TCP connection as a state machine (RFC 9293) that counts segments, not packets.
//!
//! ```text
//!  on_arrival(segment or aggregate) ──▶ ┌────────────┐ ──▶ read, events
//!  write, close                     ──▶ │ Connection │ ──▶ poll_transmit: segments to be built
//!  on_timeout(now)                  ──▶ └────────────┘ ──▶ poll_at: when the next timer is due
//! ```
//!
//! A receive engine turns many segments into one aggregate, so that every cost per packet shrinks. A TCP
//! endpoint must still count segments: the number of received segments determines the number of
//! ACKs to send, by which a peer's congestion window may grow (Menon and Zwaenepoel 2008, section
//! 3.4). Our own window grows by the acknowledged bytes. [`Connection`] takes segments one by one or as
//! aggregates, with the same effect.
//!
//! Contract, sans-IO: segments go in ([`Connection::on_arrival`]), time goes in ([`Connection::on_timeout`],
//! due at [`Connection::poll_at`]), segments to be built come out ([`Connection::poll_transmit`]). There is
//! no clock, no randomness, no input or output; the same input gives the same output. Memory is allocated on
//! use, up to the buffers that the owner grants ([`Connection::set_buffers`]), and reused. Each direction
//! frees its memory when it is done, and both do when the connection is idle ([`Connection::free_unused`]).
//! Received data stays in its own buffer until the application has read it; it is copied only if there are
//! more segments than [`Config::receive_pieces`]. No segment causes a panic.
//!
//! The path of a segment, and the module for each step:
//!
//! * `arrives/` has the numbered steps of RFC 9293, section 3.10.7, one file each.
//! * `receive/` is the receive window, reassembly, SACK blocks, and the pending ACKs.
//! * `recovery/` detects losses; `congestion/` limits the bytes in flight.
//! * `send/` is the send window and buffer, and the size of each send.
//! * `path.rs` determines the largest segment that the path carries, and which router reports to accept.
//! * `connection/` combines the parts: the application's calls, timers, the next segment to send.
//! * `multicast/` sends one stream to a group of receivers, with one connection for each.
//!
//! Not implemented: the weighting of round-trip samples in RFC 7323, appendix G.
//!
//! # Examples
//! ```
//! use rxo_frame::Instant;
//! use rxo_tcp::{Config, Connection, Secret};
//! use rxo_wire::{FlowKey, TcpFlags};
//!
//! let to_peer = FlowKey::v4(0x0a00_0001, 0x0a00_0002, 5000 << 16 | 80, 0);
//! let now = Instant::ZERO;
//! let config = Config::default();
//! let mut connection = Connection::<Vec<u8>>::open_active(config, to_peer, Secret([1, 2]), now)?;
//! let syn = connection.poll_transmit(now).expect("a SYN is to be sent");
//! assert_eq!(syn.header(&to_peer).destination_port, 80);
//! assert!(syn.flags.contains(TcpFlags::SYN));
//! # Ok::<(), rxo_frame::ConfigError>(())
//! ```
#![no_std]

extern crate alloc;

#[cfg(test)]
extern crate std;

mod arrival;
mod arrives;
mod challenge;
mod config;
mod congestion;
mod connection;
mod cookie;
mod ecn;
mod events;
mod gso;
mod isn;
mod multicast;
mod options;
mod path;
mod plain;
mod receive;
mod recovery;
mod reserve;
mod segment;
mod send;
mod sequence;
mod state;
mod time_wait;
mod timer;
mod timestamps;
mod transmit;

pub use arrival::Arrival;
pub use arrives::GroupCounts;
pub use config::{AckPolicy, Algorithm, Buffers, Config, InitialWindow, KeepAlive};
pub use connection::{CallError, Connection, GroupEdge, GroupSeed, Reuse, Statistics};
pub use cookie::SynCookies;
pub use events::Events;
pub use gso::GsoSegment;
pub use isn::Secret;
pub use multicast::{
    Control, Group, GroupConfig, GroupEvent, IncompleteBlock, Late, MemberId, Outcome, Parity,
    ParityBlock, ParityCollector, Progress, Refusal, Repair, Repairs, Slow,
};
pub use options::{OptionBytes, SegmentOptions};
pub use path::PathCounts;
pub use plain::{PlainSegment, PlainSegments, has_plain_options};
pub use receive::PendingAck;
pub use recovery::{RecoveryPhase, RecoveryStatistics};
pub use segment::{Ecn, Payload, Segment};
pub use send::{SendBuffer, Slices, Text};
pub use state::{Closed, Failure, State, SynReceived, SynSent};
pub use time_wait::{InTimeWait, TimeWait};
pub use transmit::{Reset, Transmit};
