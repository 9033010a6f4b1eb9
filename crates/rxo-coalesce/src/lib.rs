//! The receive engine: decides which segments may be coalesced, and coalesces them.
//!
//! ```text
//!  frames of a poll ──▶ Engine::poll ──▶ Deliveries ─┬▶ Frame: as it arrived
//!                         │  ▲                       ├▶ Aggregate: one header, the original frames behind it
//!                     held segments                  └▶ Acks: several pure ACKs
//! ```
//!
//! The engine receives a batch of frames and returns fewer deliveries: untouched single frames; [`Aggregate`]s,
//! each a merged header with the original frames (TCP segments, or UDP datagrams of equal size); and [`Acks`],
//! several pure ACKs of a flow. The modules, in the order in which a frame passes them:
//!
//! * [`policy`](Policy): the rules as data; each published system is a value of [`Policy`].
//! * `candidate`: static rules that decide whether a frame may be coalesced at all; each refusal has a
//!   reason.
//! * `verdict`: decides whether a candidate joins the held segments of its flow: a pure function of the
//!   candidate, these segments and the policy.
//! * `table`: finds the held flow of a key. Keyed hash, bounded; the least recently used flow is evicted
//!   first.
//! * `lists`: lists of flow indices, which `pairs` and adaptive hold use.
//! * `pairs`: finds the held flows between two hosts.
//! * `deadlines`: finds the flows that have been held as long as the policy allows.
//! * `slots`: the received frames, in chains.
//! * `store`: the aggregates of received frames; no frame is copied.
//! * `merge`: the header of an aggregate, its checksum in three forms.
//! * `expected`: predicts the header of the next segment of a flow.
//! * `acks`: the rules for pure ACKs, and the state that they need.
//! * `datagrams`: the rules for UDP, if the policy coalesces it ([`UdpRule`]).
//! * `refused`: classifies a packet by fixed offsets: refused by a static rule, ordinary, or undecided.
//! * `engine`: three tiers that return verdicts (*Expected*, *Ordinary*, *Rules*), and one module that
//!   applies them.
//! * `delivery`: deliveries as the caller's sink receives them, and functions that take the original frames out
//!   of them.
//! * [`owned`](OwnedDelivery): a delivery that leaves the engine, for queues, threads and tasks.
//! * [`rules`]: policies that are code, and a slow engine that runs them.
//!
//! # Contract
//! The engine does no input or output and reads no clock: the time is an argument. After [`Engine::new`] it
//! allocates only if the caller changes the policy or takes a delivery out as an owned value. It does not panic,
//! for any bytes. It drops no frame, and does not reorder the frames of a flow. Equal inputs give equal outputs:
//! the only random value, the seed of [`Config::new`], is an argument. Work is proportional to the number of
//! frames received and delivered. It does not depend on the number of held flows or on the content of the frames;
//! see *Worst case* in [`Engine`].
//!
//! # Examples
//! ```
//! use std::hash::{BuildHasher, RandomState};
//!
//! use rxo_coalesce::{Config, Delivery, Engine, Policy};
//! use rxo_frame::{Frame, Instant, LinkKind};
//! # use rxo_wire::build::{Ipv4Header, TcpHeader, write_tcp_checksum};
//! # use rxo_wire::{SeqNumber, TcpFlags, checksum::Summer};
//! # fn segment(seq: u32) -> Result<Vec<u8>, rxo_wire::build::BuildError> {
//! #     let tcp = TcpHeader { seq: SeqNumber(seq), flags: TcpFlags::ACK, ..TcpHeader::default() };
//! #     let ip = Ipv4Header {
//! #         protocol: 6,
//! #         payload_bytes: 20 + 1_000,
//! #         id: (seq / 1_000) as u16,
//! #         ..Ipv4Header::default()
//! #     };
//! #     let mut packet = vec![0; 40 + 1_000];
//! #     let rest = ip.write(&mut packet)?;
//! #     tcp.write(rest)?;
//! #     write_tcp_checksum(rest, ip.pseudo_header(), Summer::detect())?;
//! #     Ok(packet)
//! # }
//!
//! // Three segments of 1,000 bytes, one after the other, as raw IP packets.
//! let packets = [segment(0)?, segment(1_000)?, segment(2_000)?];
//! let mut batch: Vec<_> =
//!     packets.iter().map(|packet| Frame::new(packet.clone(), Instant::ZERO)).collect();
//!
//! let seed = RandomState::new().hash_one(0);
//! let config = Config { link: LinkKind::RawIp, ..Config::new(Policy::linux_gro(), seed) };
//! let mut engine = Engine::new(config)?;
//! let mut aggregates = 0;
//! engine.poll(&mut batch, Instant::ZERO, |deliveries| {
//!     for delivery in deliveries.iter() {
//!         let Delivery::Aggregate(aggregate) = delivery else { continue };
//!         assert_eq!((aggregate.segment_count(), aggregate.payload_bytes()), (3, 3_000));
//!         // The original frames are still there.
//!         assert!(delivery.frames().map(|frame| frame.bytes()).eq(packets.iter().map(Vec::as_slice)));
//!         aggregates += 1;
//!     }
//! });
//! assert_eq!(aggregates, 1);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
#![no_std]

extern crate alloc;
#[cfg(test)]
extern crate std;

mod ack_point;
mod acks;
mod aggregate;
mod candidate;
mod config;
mod counters;
mod datagrams;
mod deadlines;
mod delivery;
mod engine;
mod expected;
mod held;
mod histogram;
mod kind;
mod links;
mod lists;
mod merge;
mod owned;
mod pairs;
mod policy;
mod reason;
mod record;
mod refused;
pub mod rules;
mod shape;
mod single;
mod slots;
mod store;
mod table;
mod tunnels;
mod verdict;
mod work;
#[cfg(test)]
mod worst_case;

pub use acks::Acks;
pub use aggregate::Aggregate;
pub use candidate::{Candidate, MAX_HEADER_BYTES, candidate};
pub use config::Config;
pub use counters::Counters;
pub use delivery::{Deliveries, Delivery, Taken};
pub use engine::Engine;
pub use held::{Held, IdPattern};
pub use histogram::Histogram;
pub use kind::Kind;
pub use merge::ChecksumForm;
pub use owned::OwnedDelivery;
pub use policy::{
    AckRule, CeRule, EceRule, FinRule, Hold, IdRule, OptionRule, PayloadRule, Policy, PshRule,
    PureAckRule, SettingError, TunnelRule, UdpRule, UnknownPolicy, WindowRule,
};
pub use reason::{BypassReason, FlushReason};
pub use record::SegmentRecord;
pub use single::Single;
pub use slots::{ChainFrames, IntoFrames};
pub use verdict::{Verdict, verdict};
