//! The shards of a host before their device queues are open. Each shard is represented by an opener, which is
//! moved to the thread that runs the shard.
//!
//! Openers exist because a device may be usable only by the thread that opened it. So each thread opens its own
//! queue. All threads meet once, before the first packet, to exchange their command queues; afterwards the
//! threads share no lock.

use std::fmt;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};

use rxo_device::{FrameSink, FrameSource};
use rxo_frame::ConfigError;

use crate::post::{Listeners, Post};
use crate::shards::{Shard, ShardRole};
use crate::socket::Shards;
use crate::{Handle, Host, HostConfig, HostError};

/// The right to run one shard of a host, created by [`ShardOpener::all`]. It can be sent to a thread, which
/// opens a queue of the device and runs the shard on it.
pub struct ShardOpener<B> {
    config: Arc<HostConfig>,
    role: ShardRole,
    rendezvous: Arc<Rendezvous<B>>,
}

impl<B: AsRef<[u8]> + Default + Send + Sync + 'static> ShardOpener<B> {
    /// Creates the openers of a host with `count` shards, which divide the limits of `config` equally. `B` is
    /// the buffer type of their queues.
    ///
    /// # Errors
    /// [`HostError`] if a setting is invalid, or if `count` is not 1 to 256.
    ///
    /// # Examples
    /// ```
    /// use rxo_device::{MemoryLink, MemoryOptions};
    /// use rxo_host::{HostConfig, ShardOpener};
    ///
    /// let config = HostConfig::new(vec!["10.0.0.1/24".parse()?], [1, 2]);
    /// let threads: Vec<_> = ShardOpener::all(2, &config)?
    ///     .into_iter()
    ///     .map(|opener| {
    ///         std::thread::spawn(move || {
    ///             let queue = MemoryLink::new(MemoryOptions::default());
    ///             let (shard, handle) = opener.open(queue.source(), queue.sink())?;
    ///             // Here it would run the shard; any thread may use the handle.
    ///             drop((shard, handle));
    ///             Ok::<_, rxo_host::HostError>(())
    ///         })
    ///     })
    ///     .collect();
    /// for thread in threads {
    ///     thread.join().unwrap()?;
    /// }
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn all(count: usize, config: &HostConfig) -> Result<Vec<Self>, HostError> {
        config.check()?;
        let queues = ("the number of queues", count as u64, 1, MOST_SHARDS as u64);
        ConfigError::check([queues]).map_err(HostError::Number)?;
        let (config, listeners) = (Arc::new(config.part_of(count)), Arc::<Listeners>::default());
        let rendezvous = Rendezvous::new(count);
        let openers = (0..count as u32).map(|index| Self {
            config: Arc::clone(&config),
            role: ShardRole {
                shard: Shard::new(index, count as u32),
                listeners: Arc::clone(&listeners),
            },
            rendezvous: Arc::clone(&rendezvous),
        });
        Ok(openers.collect())
    }

    /// Returns the number of this shard: its queue must deliver the connections for which
    /// [`shard_of`](rxo_wire::shard_of()) returns this number.
    #[must_use]
    pub const fn index(&self) -> u32 {
        self.role.shard.index()
    }

    /// Opens the shard on the queue with this source and sink, and blocks until all other openers are open.
    /// Returns the shard, and a handle to the whole host.
    ///
    /// # Errors
    /// [`HostError`] if the queue is unsuitable; [`HostError::OtherShard`] if another opener was dropped or its
    /// queue is unsuitable.
    pub fn open<I, O>(self, source: I, sink: O) -> Result<(Host<I, O>, Handle), HostError>
    where
        I: FrameSource<Buffer = B>,
        O: FrameSink,
    {
        let mut shard = self.join(source, sink)?;
        let posts = self.rendezvous.wait()?;
        self.connect_shards(&mut shard, &posts);
        Ok((shard, Handle::new(Shards::new(posts))))
    }

    /// Opens all shards on this thread, without blocking.
    pub(crate) fn open_all<I, O>(
        openers: Vec<Self>,
        queues: Vec<(I, O)>,
    ) -> Result<(Vec<Host<I, O>>, Handle), HostError>
    where
        I: FrameSource<Buffer = B>,
        O: FrameSink,
    {
        let mut shards = Vec::with_capacity(openers.len());
        for (opener, (source, sink)) in openers.iter().zip(queues) {
            shards.push(opener.join(source, sink)?);
        }
        let posts: Vec<_> = shards.iter().map(|shard| Arc::clone(shard.post())).collect();
        openers
            .iter()
            .zip(&mut shards)
            .for_each(|(opener, shard)| opener.connect_shards(shard, &posts));
        Ok((shards, Handle::new(Shards::new(posts))))
    }

    fn join<I, O>(&self, source: I, sink: O) -> Result<Host<I, O>, HostError>
    where
        I: FrameSource<Buffer = B>,
        O: FrameSink,
    {
        let shard = Host::shard(source, sink, &self.config, self.role.clone())?;
        self.rendezvous.register(self.index(), Arc::clone(shard.post()));
        Ok(shard)
    }

    fn connect_shards<I, O>(&self, shard: &mut Host<I, O>, posts: &[Arc<Post<B>>])
    where
        I: FrameSource<Buffer = B>,
        O: FrameSink,
    {
        let others = posts.iter().enumerate().filter(|(index, _)| *index != self.index() as usize);
        shard.set_other_shards(others.map(|(_, post)| Arc::clone(post)).collect());
    }
}

/// If this shard was not opened, the other openers fail with [`HostError::OtherShard`].
impl<B> Drop for ShardOpener<B> {
    fn drop(&mut self) {
        self.rendezvous.cancel(self.role.shard.index());
    }
}

impl<B> fmt::Debug for ShardOpener<B> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "ShardOpener({})", self.role.shard.index())
    }
}

/// A rendezvous at which the shards exchange their command queues before they run.
struct Rendezvous<B> {
    registered: Mutex<Registered<B>>,
    changed: Condvar,
}

/// The command queues of the shards that are open, by shard number.
struct Registered<B> {
    posts: Vec<Option<Arc<Post<B>>>>,
    is_cancelled: bool,
}

impl<B> Rendezvous<B> {
    fn new(count: usize) -> Arc<Self> {
        let posts = (0..count).map(|_| None).collect();
        let registered = Mutex::new(Registered { posts, is_cancelled: false });
        Arc::new(Self { registered, changed: Condvar::new() })
    }

    fn register(&self, index: u32, post: Arc<Post<B>>) {
        self.registered().posts[index as usize] = Some(post);
        self.changed.notify_all();
    }

    fn cancel(&self, index: u32) {
        let mut registered = self.registered();
        registered.is_cancelled |= registered.posts[index as usize].is_none();
        self.changed.notify_all();
    }

    /// Blocks until all shards are open, and returns their command queues.
    fn wait(&self) -> Result<Vec<Arc<Post<B>>>, HostError> {
        let mut registered = self.registered();
        loop {
            if registered.is_cancelled {
                return Err(HostError::OtherShard);
            }
            let all: Option<Vec<_>> = registered.posts.iter().cloned().collect();
            if let Some(all) = all {
                return Ok(all);
            }
            registered = self.changed.wait(registered).unwrap_or_else(PoisonError::into_inner);
        }
    }

    fn registered(&self) -> MutexGuard<'_, Registered<B>> {
        self.registered.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

const MOST_SHARDS: usize = 256;
