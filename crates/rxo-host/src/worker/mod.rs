//! The worker: runs one round after the other.
//!
//! ```text
//!  device --frames--> engine --deliveries--> cells --segments--> device
//!                            commands, timers --^
//! ```
//!
//! A round receives at most a budget of frames, coalesces them, passes each delivery to its cell (a connection
//! with its lock), processes commands and expired timers, and then serves the cells that need service, or some
//! of these cells if there are many (`shares.rs`). Packets are sent in batches.

mod arrive;
mod beside;
mod cast;
mod clock;
mod connections;
mod copy_overdue;
mod core;
mod counters;
mod drain;
mod fast;
mod kept;
mod last_acks;
mod line;
mod memberships;
mod neighbours;
mod network;
mod orphans;
mod out;
mod pages;
mod paths;
mod reclaim;
mod restoring;
mod rests;
mod run;
mod serve;
mod shares;
mod slots;
mod ticket;
mod timers;
mod unmatched;
mod upkeep;

use std::sync::Arc;

use rxo_coalesce::{Config as EngineConfig, Deliveries, Engine, Policy};
use rxo_device::{DeviceError, FrameSink, FrameSource, Pause};
use rxo_frame::{Duration, Frame, Instant};

use self::core::Core;
pub use self::counters::{HostCounters, TcpCounters};
use self::kept::Kept;
pub use self::pages::{ConnectionPage, ConnectionView};
pub use self::run::Waiter;
use self::shares::Shares;
use crate::link::Conflict;
use crate::post::Post;
use crate::settings::Settings;
use crate::shards::ShardRole;
use crate::socket::Shards;
use crate::stages::{Stage, Stopwatch};
use crate::{Handle, HostConfig, HostError};

/// A host with one worker: a device, a receive engine, connections and their timers.
#[derive(Debug)]
pub struct Host<I: FrameSource, O> {
    source: I,
    sink: O,
    engine: Engine<I::Buffer>,
    /// Received frames that are about to be passed to the engine.
    received: Vec<Frame<I::Buffer>>,
    core: Core<I::Buffer>,
    budget_frames: usize,
    is_busy: bool,
    pause: Pause,
    shares: Shares,
    /// Number of successive waits that ended although there was no work.
    false_alarms: u32,
    /// The time since which no frames were received because connections keep all of the device's memory; `None`
    /// if frames can be received.
    starved_since: Option<Instant>,
    /// The policy that the engine will apply, starting with the next round; `None` if the policy was not
    /// changed.
    next_policy: Option<Policy>,
}

/// A summary of one round of the worker ([`Host::turn`]).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Turn {
    /// Number of frames taken from the device.
    pub frames: usize,
    /// Number of processed commands from applications.
    pub commands: usize,
    /// Number of connections served.
    pub served: usize,
    /// Number of packets passed to the device; a GSO frame counts as one.
    pub sent: u64,
}

impl Turn {
    /// Returns `true` if the round had no work.
    #[must_use]
    pub const fn is_idle(&self) -> bool {
        self.frames == 0 && self.commands == 0 && self.served == 0 && self.sent == 0
    }
}

impl<I, O> Host<I, O>
where
    I: FrameSource,
    I::Buffer: Default + Send + Sync + 'static,
    O: FrameSink,
{
    /// Creates a host on the device with this source and sink.
    ///
    /// # Errors
    /// [`HostError`] if a setting is invalid, or if the device is unsuitable.
    ///
    /// # Examples
    /// ```
    /// use rxo_device::{MemoryLink, MemoryOptions};
    /// use rxo_frame::Instant;
    /// use rxo_host::{Host, HostConfig};
    ///
    /// let link = || MemoryLink::new(MemoryOptions::default());
    /// let (received, sent) = (link(), link());
    /// let config = HostConfig::new(vec!["10.0.0.1/24".parse()?], [1, 2]);
    /// let mut host = Host::new(received.source(), sent.sink(), config)?;
    /// host.turn(Instant::ZERO)?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn new(source: I, sink: O, config: HostConfig) -> Result<Self, HostError> {
        Self::shard(source, sink, &config, ShardRole::default())
    }

    /// Creates one shard of a host.
    pub(crate) fn shard(
        source: I,
        sink: O,
        config: &HostConfig,
        role: ShardRole,
    ) -> Result<Self, HostError> {
        config.check()?;
        let (from, to) = (source.capabilities(), sink.capabilities());
        if from.link != to.link {
            return Err(HostError::TwoLinks);
        }
        // Half of the frames that the device lends are left for the next round.
        let most = source.lends().map_or(usize::MAX, |lends| (lends / 2).max(1));
        let budget_frames = config.budget_frames.min(most);
        let kept = Kept::new(source.lends(), budget_frames);
        let settings = Settings::new(config, from, to)?.with_queue(source.queue_frames());
        let engine = EngineConfig {
            link: from.link,
            batch_frames: budget_frames,
            seed: config.secret[0],
            ..config.engine.clone()
        };
        Ok(Self {
            source,
            sink,
            engine: Engine::new(engine).map_err(HostError::Engine)?,
            received: Vec::with_capacity(budget_frames),
            core: Core::new(config, settings, to, kept, role)?,
            budget_frames,
            is_busy: config.busy,
            pause: config.pause,
            shares: Shares::new(budget_frames),
            false_alarms: 0,
            starved_since: None,
            next_policy: None,
        })
    }

    /// Returns a handle for applications.
    #[must_use]
    pub fn handle(&self) -> Handle {
        Handle::new(Shards::new(vec![Arc::clone(self.core.post())]))
    }

    /// Returns the state that this host shares with application threads.
    pub(crate) fn post(&self) -> &Arc<Post<I::Buffer>> {
        self.core.post()
    }

    /// Sets the other shards, to which frames about neighbours and paths are copied.
    pub(crate) fn set_other_shards(&mut self, others: Vec<Arc<Post<I::Buffer>>>) {
        self.core.network.others = others;
    }

    /// Runs one round: receives frames, processes them, and transmits. `now` is the current time, and must not
    /// be before the `now` of an earlier call. Never blocks. Allocates only for new connections, and for
    /// buffers that grow or shrink.
    ///
    /// # Errors
    /// The failure of the device. The connections stay valid.
    pub fn turn(&mut self, now: Instant) -> Result<Turn, DeviceError> {
        let sent_before = self.core.network.outbox.sent;
        self.watch().begin();
        self.sink.resume()?;
        self.core.clock.now = now;
        let commands = self.core.apply_commands();
        let Core { connections, network, .. } = &mut self.core;
        network.receive_from_shards(connections, now);
        let frames = self.receive(now)?;
        self.copy_kept_frames(now, frames);
        self.watch().switch(Stage::Upkeep);
        self.core.wake_due(now);
        let Core { connections, upkeep, .. } = &mut self.core;
        upkeep.reclaim.run(connections, now);
        upkeep.rests.free_idle(&connections.slots, connections.post.memory(), now);
        self.watch().switch(Stage::Serve);
        let most = self.shares.next(frames, self.core.connections.dirty.len());
        let served = self.core.serve_some(most, now, &mut self.sink)?;
        self.core.upkeep.kept.count(frames);
        self.watch().end();
        Ok(Turn { frames, commands, served, sent: self.core.network.outbox.sent - sent_before })
    }

    /// Returns the time at which [`Host::turn`] must be called next if no frame and no command arrives; `None`
    /// if no timer runs.
    #[must_use]
    pub fn poll_at(&self) -> Option<Instant> {
        let relieved_at = self.starved_since.map(|since| since + MOST_STARVED);
        let deadlines =
            [self.core.poll_at(), self.engine.poll_at(), self.source.poll_at(), relieved_at];
        deadlines.into_iter().flatten().min()
    }

    /// Returns the first claim of an address of this host by another station; `None` if there was none. All
    /// claims are counted ([`LinkCounters::conflicts`](crate::link::LinkCounters::conflicts)).
    #[must_use]
    pub fn conflict(&self) -> Option<Conflict> {
        self.core.network.link.conflict()
    }

    /// Returns the counters of the device, the engine, the link and the connections.
    pub fn counters(&mut self) -> HostCounters {
        HostCounters {
            source: self.source.counters(),
            sink: self.sink.counters(),
            engine: self.engine.counters().clone(),
            ..self.core.counters()
        }
    }

    /// Returns the policy that the engine applies, starting with the next call of [`Host::turn`].
    #[must_use]
    pub fn policy(&self) -> Policy {
        self.next_policy.unwrap_or(self.engine.config().policy)
    }

    /// Changes the policy of the engine. At the start of the next call of [`Host::turn`], the engine delivers
    /// all data that it holds, then applies the new policy. That call allocates the memory that the new policy
    /// needs.
    ///
    /// # Errors
    /// [`HostError::Engine`] if a number of the policy is out of range, [`HostError::Tunnels`] if the policy
    /// coalesces inside tunnels.
    pub fn set_policy(&mut self, policy: Policy) -> Result<(), HostError> {
        HostConfig::check_policy(&policy)?;
        let engine = EngineConfig { policy, ..self.engine.config().clone() };
        engine.check().map_err(HostError::Engine)?;
        self.next_policy = Some(policy);
        Ok(())
    }

    /// Returns a page of at most `most` slots of connections, beginning with slot `from`; the first slot is
    /// 0. The worker only copies references to the cells.
    #[must_use]
    pub fn connections(&self, from: u32, most: usize) -> ConnectionPage {
        self.core.connections.slots.connections(from, most)
    }

    #[cold]
    fn change_policy(&mut self, policy: Policy, now: Instant) {
        let core = &mut self.core;
        let deliver = |deliveries: Deliveries<'_, _>| core.deliver(now, deliveries);
        // Cannot fail: the numbers were checked by `set_policy`.
        _ = self.engine.change_policy(policy, now, deliver);
    }

    /// Receives the frames of a round, coalesces them, and passes the deliveries to the connections: as one
    /// batch, or as several if the frames are large. Not inlined, so that its instructions can be counted.
    #[inline(never)]
    fn receive(&mut self, now: Instant) -> Result<usize, DeviceError> {
        self.watch().switch(Stage::Receive);
        if let Some(policy) = self.next_policy.take() {
            self.change_policy(policy, now);
        }
        self.core.copy_overdue(false);
        let batch = self.core.post().memory().queue().recent().batch_frames(self.budget_frames);
        let mut frames = 0;
        loop {
            let most = batch.min(self.budget_frames - frames);
            let received = self.receive_batch(most, now)?;
            frames += received;
            if received < most || frames >= self.budget_frames {
                return Ok(frames);
            }
            self.watch().switch(Stage::Receive);
        }
    }

    /// Receives a batch of at most `most` frames. Frames received before a failure of the device are
    /// delivered.
    #[inline(always)]
    fn receive_batch(&mut self, most: usize, now: Instant) -> Result<usize, DeviceError> {
        let received = match self.core.begin_fast() {
            false => self.source.receive(&mut self.received, most),
            true => self.receive_past(most, now),
        };
        self.watch().switch(Stage::Coalesce);
        let core = &mut self.core;
        self.engine.poll(&mut self.received, now, |deliveries| {
            core.network.outbox.watch.switch(Stage::Deliver);
            core.deliver(now, deliveries);
            core.network.outbox.watch.switch(Stage::Coalesce);
        });
        received
    }

    /// Copies all data that connections keep in the device's memory, if this data has kept the device from
    /// receiving for a while. The delay gives applications time to read the data first.
    #[inline]
    fn copy_kept_frames(&mut self, now: Instant, frames: usize) {
        if frames > 0 || !self.source.is_starved() {
            self.starved_since = None;
            return;
        }
        let since = *self.starved_since.get_or_insert(now);
        if now.since(since) >= MOST_STARVED {
            self.core.copy_overdue(true);
            self.starved_since = None;
        }
    }

    fn watch(&mut self) -> &mut Stopwatch {
        &mut self.core.network.outbox.watch
    }
}

/// The time without frames after which data in the device's memory is copied.
const MOST_STARVED: Duration = Duration::from_millis(1);
