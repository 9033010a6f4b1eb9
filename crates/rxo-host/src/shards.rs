//! A host with several shards: each has a device queue, a worker and connections.
//!
//! A connection never moves, and the shards share no lock on the path of a packet: the device delivers each
//! connection to its shard. Both directions of a connection belong to the same shard
//! ([`shard_of`](rxo_wire::shard_of())), so a connection that this host opens gets a local port for which the
//! answers arrive on the same shard. Frames about neighbours and paths may arrive on any shard. That shard
//! answers the frame and sends copies to the other shards.

use std::fmt;
use std::sync::Arc;

use rxo_device::{DeviceError, FrameSink, FrameSource};
use rxo_frame::{Frame, Instant};
use rxo_wire::{FlowKey, shard_of};

use crate::post::Listeners;
use crate::{Handle, Host, HostConfig, HostError, ShardOpener};

/// A host with several shards.
///
/// Each shard is a [`Host`] with its own device queue, to be run by its own thread
/// ([`ShardedHost::into_shards`]) if the queue can be sent to that thread. The sinks of `rxo-driver` cannot
/// be sent: with them, each thread gets a [`ShardOpener`] and opens its queue itself, or one thread opens all
/// queues and runs the shards in turn ([`ShardedHost::turn`]). Applications see one host.
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
    /// Creates a host with one shard per queue. `queues` belong to one device: the source with index `n`
    /// delivers the connections for which [`shard_of`](rxo_wire::shard_of()) returns `n`; all other frames
    /// may arrive on any queue. The shards divide the limits of `config` equally.
    ///
    /// # Errors
    /// [`HostError`] if a setting is invalid, if a queue is unsuitable, or if there are no queues or more
    /// than 256.
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
        let openers = ShardOpener::all(queues.len(), config)?;
        let (shards, handle) = ShardOpener::open_all(openers, queues)?;
        Ok(Self { shards, handle })
    }

    /// Returns a handle for applications. It opens connections on the shards in turn, and its listeners
    /// accept from all shards.
    #[must_use]
    pub fn handle(&self) -> Handle {
        self.handle.clone()
    }

    /// Returns the shards in the order of the queues.
    pub fn shards(&mut self) -> &mut [Host<I, O>] {
        &mut self.shards
    }

    /// Returns the shards in the order of the queues, to be run on separate threads. The handle stays valid;
    /// the handle of a single shard opens connections and listeners only on that shard.
    #[must_use]
    pub fn into_shards(self) -> Vec<Host<I, O>> {
        self.shards
    }

    /// Calls [`Host::turn`] of each shard at the time `now`, on this thread. Returns `true` if any shard did
    /// some work.
    ///
    /// # Errors
    /// The first failure of a queue; the shards after it are skipped.
    pub fn turn(&mut self, now: Instant) -> Result<bool, DeviceError> {
        let mut is_busy = false;
        for shard in &mut self.shards {
            is_busy |= !shard.turn(now)?.is_idle();
        }
        Ok(is_busy)
    }

    /// Returns the time at which [`ShardedHost::turn`] must be called next if no frame and no command arrives;
    /// `None` if no timer runs.
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

/// The number of a worker among the shards of its host.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Shard {
    index: u32,
    count: u32,
}

impl Shard {
    /// Returns the shard with the number `index` of `count` shards.
    pub(crate) const fn new(index: u32, count: u32) -> Self {
        Self { index, count }
    }

    pub(crate) const fn index(self) -> u32 {
        self.index
    }

    pub(crate) const fn is_first(self) -> bool {
        self.index == 0
    }

    /// Returns `true` if the connection `key` belongs to this shard; both directions give the same result.
    #[inline]
    pub(crate) fn owns(self, key: &FlowKey) -> bool {
        self.count == 1 || shard_of(key, self.count) == self.index
    }
}

/// A shard's number, and the state that application threads of all shards share. The default is a host with a
/// single shard.
#[derive(Clone, Debug)]
pub(crate) struct ShardRole {
    pub(crate) shard: Shard,
    pub(crate) listeners: Arc<Listeners>,
}

impl Default for ShardRole {
    fn default() -> Self {
        Self { shard: Shard::new(0, 1), listeners: Arc::default() }
    }
}

/// A copy of a frame that one shard received and all shards must process.
pub(crate) type SharedFrame = Frame<Arc<[u8]>>;

/// Returns a copy of `frame` that the other shards can share.
pub(crate) fn shared_copy<B: AsRef<[u8]>>(frame: &Frame<B>) -> SharedFrame {
    frame.with_bytes(frame.bytes().into())
}
