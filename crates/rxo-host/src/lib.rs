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
//!
//! # Tasks
//! With the feature `tokio` a [`TcpStream`] has tokio's `AsyncRead` and `AsyncWrite`, which copy, and beside them what does
//! not copy: `write_shared_async` lends text, `read_in_place_async` reads it where it arrived. Each call has a form to
//! poll. `connect_async` and `accept_async` open connections. No runtime is needed, and none is brought.
//!
//! # Several cores
//! A connection stays with one worker, so a host on several cores is several workers: *shards*, each with a device queue, a
//! thread and connections of its own. They share no lock on the way of a packet, and applications see one host: a
//! [`Handle`] opens connections on the shards in turn, and a [`TcpListener`] accepts from all.
//!
//! What it needs: a device that gives queue `n` the connections for which [`shard_of`](rxo_wire::shard_of()) says `n`, in both
//! directions; a SYN on another queue is ignored ([`HostCounters::misplaced`]). Queues of hardware that hash otherwise do
//! not. On Linux `PacketSource::open_shards` of `rxo-driver` opens such
//! queues on any interface: the kernel asks a filter of ours (`PACKET_FANOUT`) which socket gets a frame.
//!
//! What it costs: a few dozen instructions of that filter for each frame, in the kernel. Each shard has an equal part of the
//! limits ([`HostConfig::memory_bytes`], sockets, orphans), which the others cannot use. A connection that this host opens tries
//! as many local ports as there are shards, on average. What is about neighbours and paths is copied to every shard; what is not
//! a whole TCP packet comes to the first one.
//!
//! What it does not do: move a connection, or balance them; one connection never gets more than one core. A cast, and joining a
//! group, need a host with one worker. Counters are those of each shard. No command of `rxo` uses it.
//!
//! [`ShardedHost`] takes all queues at once. If a queue belongs to the thread that opened it, as those of `rxo-driver` do, each
//! thread gets a [`ShardSeat`]:
//! ```no_run
//! use std::sync::atomic::AtomicBool;
//! use std::thread;
//!
//! use rxo_device::{FrameSink, FrameSource};
//! use rxo_host::{Handle, HostConfig, HostError, ShardSeat, Waiter};
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
//!     let run_shard = |seat: ShardSeat<I::Buffer>| {
//!         let index = seat.index();
//!         let (source, sink) = open_queue(index);
//!         // Waits until all shards are there.
//!         let Ok((mut shard, handle)) = seat.open(source, sink) else { return Ok(()) };
//!         if index == 0 {
//!             work(handle);
//!         }
//!         shard.run(&mut waiter(), stop, |_, _| {})
//!     };
//!     let seats = ShardSeat::all(cores, config)?;
//!     thread::scope(|scope| {
//!         for seat in seats {
//!             scope.spawn(|| run_shard(seat));
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
mod fast;
pub mod link;
mod memory;
mod ports;
mod post;
mod queue;
mod receive;
mod recent;
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
    Account, AccountBy, AccountName, FallbackReason, FastCounters, FastModules, FastPath,
    FastSwitches, FilterRule, HalfOpen, RuleError, UnknownModule,
};
pub use link::{IpCidr, Route};
pub use memory::IDLE_CONNECTION_BYTES;
pub use rxo_frame::SharedBytes;
pub use seats::ShardSeat;
pub use shards::ShardedHost;
pub use socket::{Handle, Incoming, Readiness, TcpListener, TcpStream};
pub use stages::{Stage, StageTimer, StageTimes};
pub use worker::{ConnectionPage, ConnectionView, Host, HostCounters, Turn, Waiter};
