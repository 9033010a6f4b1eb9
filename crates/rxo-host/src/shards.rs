//! A host in several shards: a device queue, a worker and connections each.
//!
//! A connection never moves, and the shards share no lock on the way of a packet: the device gives each shard its own
//! connections. Both directions of one belong to the same shard, which is known beforehand
//! ([`shard_of`](rxo_wire::shard_of())), so a connection that this host opens gets a local port whose answers come in on the
//! shard that opens it. What is about neighbours and paths may come in on any shard. That shard answers it, and
//! the others hear a copy.

use std::fmt;
use std::sync::Arc;

use rxo_device::{DeviceError, FrameSink, FrameSource};
use rxo_frame::{Frame, Instant};
use rxo_wire::{FlowKey, shard_of};

use crate::post::Listeners;
use crate::{Handle, Host, HostConfig, HostError, ShardSeat};

/// A host in several shards.
///
/// Each is a [`Host`] with a device queue of its own, to be run by a thread of its own
/// ([`ShardedHost::into_shards`]) if its queue can be sent to that thread. Sinks of `rxo-driver` cannot: there each thread
/// gets a [`ShardSeat`] and opens its queue itself, or one thread opens all, and the shards take turns on it
/// ([`ShardedHost::turn`]). The applications see one host.
pub struct ShardedHost<I: FrameSource, O> {
    shards: Vec<Host<I, O>>,
    handle: Handle,
}

impl<I, O> ShardedHost<I, O>
where
    I: FrameSource,
    I::Buffer: Default + Send + Sync + 'static,
    O: FrameSink,
{
    /// A host with a shard for each of `queues`, which are queues of one device: the source of number `n` gives the
    /// frames of the connections for which [`shard_of`](rxo_wire::shard_of()) says `n`, and everything else comes out of
    /// any of them. The shards divide the limits of `config` equally.
    ///
    /// # Errors
    /// [`HostError`] if a setting is invalid, the queues do not fit, or there are none, or more than 256.
    ///
    /// # Examples
    /// ```no_run
    /// # fn example<I, O>(queues: Vec<(I, O)>) -> Result<(), Box<dyn std::error::Error>>
    /// # where
    /// #     I: rxo_device::FrameSource,
    /// #     I::Buffer: Default + Send + Sync + 'static,
    /// #     O: rxo_device::FrameSink,
    /// # {
    /// use rxo_host::{HostConfig, ShardedHost};
    ///
    /// let config = HostConfig::new(vec!["10.0.0.1/24".parse()?], [1, 2]);
    /// let host = ShardedHost::new(queues, &config)?;
    /// let listener = host.handle().listen("10.0.0.1:80".parse()?, 128)?;
    /// # Ok(())
    /// # }
    /// ```
    pub fn new(queues: Vec<(I, O)>, config: &HostConfig) -> Result<Self, HostError> {
        let seats = ShardSeat::all(queues.len(), config)?;
        let (shards, handle) = ShardSeat::open_all(seats, queues)?;
        Ok(Self { shards, handle })
    }

    /// The handle for applications. Its connections are opened on the shards in turn, and its listeners accept from all.
    #[must_use]
    pub fn handle(&self) -> Handle {
        self.handle.clone()
    }

    /// The shards, in the order of the queues.
    pub fn shards(&mut self) -> &mut [Host<I, O>] {
        &mut self.shards
    }

    /// The shards, in the order of the queues, to be run on threads of their own. The handle stays valid; the handle of a
    /// single shard opens connections and listeners on that shard only.
    #[must_use]
    pub fn into_shards(self) -> Vec<Host<I, O>> {
        self.shards
    }

    /// Runs one turn of each shard at `now`, on this thread. Returns whether anything happened.
    ///
    /// # Errors
    /// The first failure of a queue; later shards have no turn then.
    pub fn turn(&mut self, now: Instant) -> Result<bool, DeviceError> {
        let mut is_busy = false;
        for shard in &mut self.shards {
            is_busy |= !shard.turn(now)?.is_idle();
        }
        Ok(is_busy)
    }

    /// When the next turn is due if no frame and no command arrives; `None` if no timer runs.
    #[must_use]
    pub fn poll_at(&self) -> Option<Instant> {
        self.shards.iter().filter_map(Host::poll_at).min()
    }
}

impl<I: FrameSource, O> fmt::Debug for ShardedHost<I, O> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "ShardedHost({} shards)", self.shards.len())
    }
}

/// Which shard of its host a worker is.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Shard {
    index: u32,
    count: u32,
}

impl Shard {
    /// The shard with the number `index` of `count`.
    pub(crate) const fn new(index: u32, count: u32) -> Self {
        Self { index, count }
    }

    pub(crate) const fn index(self) -> u32 {
        self.index
    }

    pub(crate) const fn is_first(self) -> bool {
        self.index == 0
    }

    /// Whether the connection `key` belongs to this shard; the same for both directions.
    #[inline]
    pub(crate) fn owns(self, key: &FlowKey) -> bool {
        self.count == 1 || shard_of(key, self.count) == self.index
    }
}

/// A shard, and what it shares with the others, which only the threads of applications use. The default is a host
/// that is not sharded.
#[derive(Clone, Debug)]
pub(crate) struct Seat {
    pub(crate) shard: Shard,
    pub(crate) listeners: Arc<Listeners>,
}

impl Default for Seat {
    fn default() -> Self {
        Self { shard: Shard::new(0, 1), listeners: Arc::default() }
    }
}

/// A frame that one shard has taken and all are to hear.
pub(crate) type News = Frame<Arc<[u8]>>;

/// A copy of `frame` for other shards.
pub(crate) fn news<B: AsRef<[u8]>>(frame: &Frame<B>) -> News {
    frame.with_bytes(frame.bytes().into())
}
