//! A host's TCP in user space. Received frames are coalesced and passed to connections; applications read the
//! data through sockets like those of the standard library.
//!
//! ```text
//!              ┌───────────────────────── Host::turn ─────────────────────────┐
//!  device ───▶ │ engine ─▶ link ─▶ receive ─▶ connection in its cell ◀─▶ socket │ ◀─▶ applications' threads
//!  device ◀─── │ one batch ◀─ transmit ◀───────────────┘                        │
//!              └───────────────────────────────────────────────────────────────┘
//! ```
//!
//! One [`Host`] is one worker: it owns a device, an engine, connections and timers. Each call of [`Host::turn`]
//! is one round of receiving, processing and transmitting. A [`ShardedHost`] consists of several workers that
//! applications use as one host (`shards.rs`). The folders, in the order in which a frame passes them:
//!
//! * `worker/`: one round: receive from the device, engine, connections, timers, transmit to the device.
//! * `fast/`: the fast path, if it is on: consumes pure ACKs in the device's memory.
//! * `link/`: the gate, and everything that is not TCP: neighbours, routes, ICMP ([`link::Link`]).
//! * `receive/`: turns a delivery of the engine into segments for TCP, without copying.
//! * `demux/`: finds the connection of a delivery.
//! * `cell/`: a connection and its lock, which never blocks the worker; the backlog.
//! * `socket/`: the interface for applications: [`Handle`], [`TcpStream`], [`TcpListener`], [`Readiness`].
//! * `cast.rs`: sends one stream to a group of receivers ([`Cast`]).
//! * `erasure/`: the code of parity packets, which repair a cast.
//! * [`join`]: joins a cast on behalf of another host.
//! * `transmit/`: builds packets of the segments to send, and one batch of the packets.
//!
//! Contract: [`Host::turn`] takes the time as an argument and reads no clock, so hosts can also run on virtual
//! time. Memory is bounded by the configuration. No received bytes cause a panic. Application threads block
//! only in blocking calls; the worker blocks only in its [`Waiter`].
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
//!
//! # Tasks
//! With the feature `tokio` a [`TcpStream`] implements tokio's `AsyncRead` and `AsyncWrite`, which copy. Two
//! calls do not copy: `write_shared_async` shares data with the connection, and `read_in_place_async` reads
//! data in the receive buffers. Each of these calls also exists as a `poll_` function. `connect_async` and
//! `accept_async` open connections. Any runtime can poll these futures; this crate starts no runtime.
//!
//! # Several cores
//! A connection stays with one worker, so a host on several cores consists of several workers: *shards*, each
//! with its own device queue, thread and connections. The shards share no lock on the path of a packet.
//! Applications use the shards as one host: a [`Handle`] opens connections on the shards in turn, and a
//! [`TcpListener`] accepts from all of them.
//!
//! Requirement: the device must deliver a connection for which [`shard_of`](rxo_wire::shard_of()) returns `n`
//! to queue `n`. A SYN on another queue is ignored ([`TcpCounters::misplaced`]). Hardware queues that use
//! another hash are unsuitable. On Linux `PacketSource::open_shards` of `rxo-driver` opens such queues on any
//! interface: a filter in the kernel (`PACKET_FANOUT`) chooses the socket for each frame.
//!
//! Cost: the filter takes a few dozen instructions per frame, in the kernel. Each shard gets an equal part of
//! the limits ([`HostConfig::memory_bytes`], sockets, orphans), which other shards cannot use. To open a
//! connection, the host tries as many local ports as there are shards, on average. Frames about neighbours and
//! paths are copied to every shard; all other frames that are not whole TCP packets are delivered to any shard.
//!
//! Limits: connections are neither moved nor balanced, and one connection never gets more than one core. A
//! cast, and joining a group, need a host with one worker. Each shard has its own counters. `rxo serve`, `sink`
//! and `source` use shards with `--workers`.
//!
//! [`ShardedHost`] takes all queues at once. If a queue must be used by the thread that opened it, like the
//! queues of `rxo-driver`, each thread gets a [`ShardOpener`]:
//! ```no_run
//! use std::sync::atomic::AtomicBool;
//! use std::thread;
//!
//! use rxo_device::{FrameSink, FrameSource};
//! use rxo_host::{Handle, HostConfig, HostError, ShardOpener, Waiter};
//!
//! /// Runs a host on `cores` threads until `stop`; `work` gets its handle.
//! fn run<I, O, W>(
//!     (config, cores): (&HostConfig, usize),
//!     open_queue: impl Fn(u32) -> (I, O) + Sync,
//!     waiter: impl Fn() -> W + Sync,
//!     stop: &AtomicBool,
//!     work: impl Fn(Handle) + Sync,
//! ) -> Result<(), HostError>
//! where
//!     I: FrameSource,
//!     I::Buffer: Default + Send + Sync + 'static,
//!     O: FrameSink,
//!     W: Waiter<I>,
//! {
//!     let run_shard = |opener: ShardOpener<I::Buffer>| {
//!         let index = opener.index();
//!         let (source, sink) = open_queue(index);
//!         // Waits until all shards are there.
//!         let Ok((mut shard, handle)) = opener.open(source, sink) else { return Ok(()) };
//!         if index == 0 {
//!             work(handle);
//!         }
//!         shard.run(&mut waiter(), stop, |_, _| {})
//!     };
//!     let openers = ShardOpener::all(cores, config)?;
//!     thread::scope(|scope| {
//!         for opener in openers {
//!             scope.spawn(|| run_shard(opener));
//!         }
//!     });
//!     Ok(())
//! }
//! ```

mod buffer;
mod cast;
mod cell;
mod config;
mod demux;
mod erasure;
mod fast;
pub mod join;
pub mod link;
mod memory;
mod ports;
mod post;
mod queue;
mod receive;
mod recent;
mod settings;
mod shard_openers;
mod shards;
mod socket;
mod stages;
mod timed_flows;
mod transmit;
mod worker;

pub use cast::{Cast, CastConfig, CastEvent, CastProgress};
pub use config::{HostConfig, HostError};
pub use fast::{
    Account, AccountName, FallbackReason, FastCounters, FastModules, FastPath, FastPathError,
    FilterRule,
};
pub use link::{IpCidr, Route};
pub use memory::IDLE_CONNECTION_BYTES;
pub use rxo_frame::SharedBytes;
pub use shard_openers::ShardOpener;
pub use shards::ShardedHost;
pub use socket::{Handle, Incoming, Readiness, TcpListener, TcpStream};
pub use stages::{Stage, StageTimer, StageTimes};
pub use worker::{ConnectionPage, ConnectionView, Host, HostCounters, TcpCounters, Turn, Waiter};
