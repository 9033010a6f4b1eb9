//! A host's TCP in user space. Received frames are coalesced and given to connections; applications read them
//! through sockets like those of the standard library.
//!
//! ```text
//!              ┌───────────────────────── Host::turn ─────────────────────────┐
//!  device ───▶ │ engine ─▶ link ─▶ receive ─▶ connection in its cell ◀─▶ socket │ ◀─▶ applications' threads
//!  device ◀─── │ one batch ◀─ transmit ◀───────────────┘                        │
//!              └───────────────────────────────────────────────────────────────┘
//! ```
//!
//! One [`Host`] is one worker. It owns a device, an engine, connections and timers, and runs in turns. A
//! [`ShardedHost`] is several of them, which applications see as one (`shards.rs`). The
//! folders, in the order in which a frame passes them:
//!
//! * `worker/`: the turn: device, engine, connections, timers, device.
//! * `fast/`: the fast path, if it is on: pure ACKs are consumed where they lie.
//! * `link/`: the gate; what is not TCP: neighbours, routes, ICMP ([`link::Link`]).
//! * `receive/`: a delivery becomes an arrival, in the buffers of its frames.
//! * `demux/`: which connection it is for.
//! * `cell/`: the connection and its lock, which never stops the worker; the backlog.
//! * `socket/`: the interface of applications: [`Handle`], [`TcpStream`], [`TcpListener`],
//!   [`Readiness`].
//! * `cast.rs`: one stream to a group of receivers ([`Cast`]).
//! * `transmit/`: segments to send become packets, and packets one batch.
//!
//! Contract: [`Host::turn`] takes the time as an argument and reads no clock, so that hosts run on
//! virtual time as well. Memory is bounded by the configuration. No bytes make it panic. Only blocking
//! calls of applications' threads wait; the worker waits where its [`Waiter`] waits, and nowhere else.
//!
//! # Examples
//! Two hosts and a link in memory, on virtual time:
//! ```
//! use std::io::{Read, Write};
//! use rxo_device::{MemoryLink, MemoryOptions};
//! use rxo_frame::{Instant, LinkKind};
//! use rxo_host::{Host, HostConfig};
//!
//! let options = MemoryOptions { link: LinkKind::RawIp, ..MemoryOptions::default() };
//! let (there, back) = (MemoryLink::new(options), MemoryLink::new(options));
//! let config =
//!     |address: &str| address.parse().map(|address| HostConfig::new(vec![address], [1, 2]));
//! let mut client = Host::new(back.source(), there.sink(), config("10.0.0.1/24")?)?;
//! let mut server = Host::new(there.source(), back.sink(), config("10.0.0.2/24")?)?;
//!
//! let listener = server.handle().listen("10.0.0.2:80".parse()?, 16)?;
//! let mut stream = client.handle().connect_nonblocking("10.0.0.2:80".parse()?)?;
//! for millis in 0..5 {
//!     let now = Instant::from_micros(millis * 1_000);
//!     client.turn(now)?;
//!     server.turn(now)?;
//! }
//! let (mut accepted, _peer) = listener.accept()?;
//! stream.write_all(b"hello")?;
//! client.turn(Instant::from_micros(6_000))?;
//! server.turn(Instant::from_micros(6_000))?;
//! let mut hello = [0; 5];
//! accepted.read_exact(&mut hello)?;
//! assert_eq!(&hello, b"hello");
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod buffer;
mod cast;
mod cell;
mod config;
mod demux;
mod fast;
pub mod link;
mod memory;
mod ports;
mod post;
mod queue;
mod receive;
mod seats;
mod settings;
mod shards;
mod socket;
mod stages;
mod transmit;
mod worker;

pub use cast::{Cast, CastConfig, CastEvent, CastProgress};
pub use config::{HostConfig, HostError};
pub use fast::{
    Account, AccountBy, AccountName, FallbackReason, FastCounters, FastModule, FastModules,
    FastPath, FastSwitches, FilterRule, HalfOpen, RuleError, UnknownModule,
};
pub use link::{IpCidr, Route};
pub use memory::IDLE_CONNECTION_BYTES;
pub use rxo_frame::SharedBytes;
pub use seats::ShardSeat;
pub use shards::ShardedHost;
pub use socket::{Handle, Incoming, Readiness, TcpListener, TcpStream};
pub use stages::{Stage, StageTimer, StageTimes};
pub use worker::{ConnectionPage, ConnectionView, Host, HostCounters, Turn, Waiter};
