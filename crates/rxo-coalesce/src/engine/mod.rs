//! The engine: tiers that give verdicts, one place that acts on them.
//!
//! * `take`: the batch, and the list of the tiers.
//! * `expected`, `expected_acks`, `in_turn`, `plain`, `ordinary`, `rules`: the tiers, the fastest first.
//! * `datagrams`: UDP, by all tiers; `tunnels`: TCP inside tunnels, by the rules.
//! * `judge`: the verdict, for the slower tiers; `apply`: what a verdict does.
//! * `acks`: what is remembered of what flows acknowledged.
//! * `hosts`: the flows that a packet flushes that may belong to any flow between its hosts.
//! * `end_of_poll`, `auto`: what leaves at the end of a poll, `auto` under adaptive hold; `flush`: how it leaves.
//! * `cursor`, `checksums`, `prefetch`, `limits`: what all of them use.

mod acks;
mod apply;
mod auto;
mod checksums;
mod cursor;
mod datagrams;
mod end_of_poll;
mod exits;
mod expected;
mod expected_acks;
mod flush;
mod hosts;
mod in_turn;
mod judge;
mod limits;
mod ordinary;
mod plain;
mod prefetch;
mod rules;
mod take;
mod tunnels;

use alloc::vec::Vec;

use rxo_frame::{Frame, FrameBuffer, Instant, Load};
use rxo_wire::{FlowHasher, FlowKey};

use auto::Pace;
use limits::{memory, most_payload, packet_window, plain_payload};

use crate::acks::{Memory, Recent};
use crate::store::Store;
use crate::table::Table;
use crate::{Config, ConfigError, Counters, Deliveries, FlushReason, Policy};

/// The receive engine of one worker: frames in, deliveries out. See the crate's documentation.
///
/// # Worst case
/// A frame costs so many instructions to take and to deliver, at most, whatever is held and whoever sends. These are
/// counts for 4,096 flows and 81,920 slots under frames that were chosen to be expensive, some by senders who know the
/// seed, and include the polls (`worst-…` of `cargo xtask bench instructions`; lab/bench/README.md has all):
///
/// | | for each frame that comes or leaves |
/// |---|---|
/// | ordinary traffic, four segments of a flow at a time | 450 |
/// | the most expensive | 1,170 |
/// | a poll of one frame that bypasses, while all slots are used | 1,500 |
///
/// A few steps are put off and then done at once: gaps between held frames are closed, and an index is made anew,
/// after so many frames that it is as if each frame had taken a part.
#[derive(Debug)]
pub struct Engine<B> {
    config: Config,
    hasher: FlowHasher,
    table: Table,
    store: Store<B>,
    counters: Counters,
    /// What flows acknowledged last, where that is needed.
    memory: Memory,
    /// Where pure ACKs were held last.
    recent: Recent,
    /// How many pure ACKs are held together at most; below 2 none are.
    ack_limit: u32,
    /// Plain segments with payloads up to this, in bytes, break no rule of the policy by themselves. 0 if
    /// some may.
    plain_payload_bytes: u32,
    /// Whether the policy coalesces UDP.
    takes_datagrams: bool,
    /// False if no segment with payload is ever held. Then the rules alone judge them: what the first tiers read in
    /// vain costs as much again.
    holds_data: bool,
    /// Whether it coalesces inside tunnels.
    takes_tunnels: bool,
    /// Polls ended since the last flush of all.
    polls: u32,
    /// Packets until the next flush of all.
    packets_left: u32,
    /// No held segment arrived before this; meaningful while something is held.
    oldest_arrival: Instant,
    /// The time of the poll whose frames are being taken.
    now: Instant,
    /// What adaptive hold remembers between polls.
    pace: Pace,
}

impl<B: FrameBuffer> Engine<B> {
    /// Makes an engine. All memory is allocated here.
    ///
    /// # Errors
    /// [`ConfigError`] when a number of the configuration is out of range.
    ///
    /// # Examples
    /// ```
    /// # let seed = 7;
    /// use rxo_coalesce::{Config, Engine, Policy};
    ///
    /// let config = Config { batch_frames: 128, ..Config::new(Policy::linux_gro(), seed) };
    /// let engine = Engine::<Vec<u8>>::new(config)?;
    /// assert!(engine.poll_at().is_none());
    /// # Ok::<(), rxo_coalesce::ConfigError>(())
    /// ```
    pub fn new(config: Config) -> Result<Self, ConfigError> {
        config.check()?;
        let policy = &config.policy;
        let flows = usize::from(policy.flows);
        let timed = if policy.time_limit().is_some() { flows } else { 0 };
        let store = Store::new(config.frame_slots(), flows, timed);
        Ok(Self {
            hasher: FlowHasher::new(config.seed),
            table: Table::new(policy.flows),
            pace: Pace::new(policy, store.held.len()),
            store,
            counters: Counters::default(),
            memory: memory(policy),
            recent: Recent::new(),
            ack_limit: policy.ack_limit(),
            plain_payload_bytes: plain_payload(policy),
            takes_datagrams: policy.takes_datagrams(),
            holds_data: most_payload(policy) > 0,
            takes_tunnels: policy.takes_tunnels(),
            polls: 0,
            packets_left: packet_window(policy.hold),
            oldest_arrival: Instant::ZERO,
            now: Instant::ZERO,
            config,
        })
    }

    /// The configuration that the engine was made from.
    #[must_use]
    pub const fn config(&self) -> &Config {
        &self.config
    }

    /// What the engine has done so far.
    #[must_use]
    pub const fn counters(&self) -> &Counters {
        &self.counters
    }

    /// Changes the policy at `now`, between two polls. Everything that is held is delivered to `sink` first, under
    /// the old policy; the counters go on. What flows acknowledged is forgotten, so the next pure ACK of each is
    /// delivered alone. Allocates the memory that the new policy needs, and frees the old.
    ///
    /// # Errors
    /// [`ConfigError`] if a number of the policy is out of range. Then nothing has changed.
    pub fn change_policy(
        &mut self,
        policy: Policy,
        now: Instant,
        mut sink: impl FnMut(Deliveries<'_, B>),
    ) -> Result<(), ConfigError> {
        let mut next = Self::new(Config { policy, ..self.config.clone() })?;
        self.flush_all(self.store.end(), FlushReason::PolicyChange, now);
        self.deliver(&mut sink);
        next.counters = core::mem::take(&mut self.counters);
        *self = next;
        Ok(())
    }

    /// Whether any segment is held.
    #[must_use]
    pub const fn is_idle(&self) -> bool {
        self.table.is_empty()
    }

    /// The number of frames that the engine has taken and not delivered, between two polls: those of held segments. It is
    /// counted by the memory that they take and not from [`Engine::counters`], so that one can be checked by the other.
    #[must_use]
    pub fn held_frames(&self) -> usize {
        self.store.here()
    }

    /// Whether anything of the flow `key` is held. O(1). A caller that lets a packet of the flow pass by the engine
    /// would reorder it then.
    #[inline]
    #[must_use]
    pub fn holds(&self, key: &FlowKey) -> bool {
        !self.table.is_empty()
            && self.table.find(&self.store.held, key, self.hasher.hash(key)).is_some()
    }

    /// Takes the frames of one poll out of `batch` and ends the poll: all that most callers need.
    /// `now` is the time of the poll; `sink` is called with deliveries in order, once unless the
    /// batch is larger than configured. [`Hold::Auto`](crate::Hold::Auto) holds nothing here, because it does not know the
    /// load: see [`Engine::poll_under`].
    ///
    /// # Examples
    /// ```
    /// # let seed = 7;
    /// use rxo_coalesce::{Config, Engine, Policy};
    /// use rxo_frame::{Frame, Instant};
    ///
    /// let mut engine = Engine::new(Config::new(Policy::linux_gro(), seed))?;
    /// let mut batch = vec![Frame::new(vec![0; 60], Instant::ZERO)];
    /// let mut frames = 0;
    /// engine.poll(&mut batch, Instant::ZERO, |deliveries| {
    ///     frames += deliveries.iter().map(|delivery| delivery.frames().count()).sum::<usize>();
    /// });
    /// assert_eq!((frames, batch.len()), (1, 0));
    /// # Ok::<(), rxo_coalesce::ConfigError>(())
    /// ```
    pub fn poll(
        &mut self,
        batch: &mut Vec<Frame<B>>,
        now: Instant,
        sink: impl FnMut(Deliveries<'_, B>),
    ) {
        self.poll_under(None, batch, now, sink);
    }

    /// Takes the frames of one poll and ends it, as [`Engine::poll`] does. `load` is what the receiver
    /// has not taken yet of earlier deliveries; `None` if that is unknown. Only [`Hold::Auto`](crate::Hold::Auto) reads it.
    #[inline(always)]
    pub fn poll_under(
        &mut self,
        load: Option<Load>,
        batch: &mut Vec<Frame<B>>,
        now: Instant,
        mut sink: impl FnMut(Deliveries<'_, B>),
    ) {
        self.take(batch, now, &mut sink);
        self.hold_or_flush(now, load);
        self.deliver(&mut sink);
    }

    /// Takes the frames out of `batch` without ending the poll.
    ///
    /// # Examples
    /// A poll that comes in parts:
    /// ```
    /// # let seed = 7;
    /// use rxo_coalesce::{Config, Engine, Policy};
    /// use rxo_frame::{Frame, Instant, LinkKind};
    /// # use rxo_wire::build::{Ipv4Header, TcpHeader, write_tcp_checksum};
    /// # use rxo_wire::{TcpFlags, checksum::Summer};
    /// # let tcp = TcpHeader { flags: TcpFlags::ACK, ..TcpHeader::default() };
    /// # let ip = Ipv4Header { protocol: 6, payload_bytes: 20 + 1_000, ..Ipv4Header::default() };
    /// # let mut segment = vec![0; 40 + 1_000];
    /// # let rest = ip.write(&mut segment)?;
    /// # tcp.write(rest)?;
    /// # write_tcp_checksum(rest, ip.pseudo_header(), Summer::detect())?;
    ///
    /// let config = Config { link: LinkKind::RawIp, ..Config::new(Policy::linux_gro(), seed) };
    /// let (mut engine, mut deliveries) = (Engine::new(config)?, 0);
    /// let mut batch = vec![Frame::new(segment, Instant::ZERO)];
    /// engine.push(&mut batch, Instant::ZERO, |delivered| deliveries += delivered.iter().count());
    /// assert_eq!(deliveries, 0);
    /// engine.end_of_poll(Instant::ZERO, |delivered| deliveries += delivered.iter().count());
    /// assert_eq!(deliveries, 1);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn push(
        &mut self,
        batch: &mut Vec<Frame<B>>,
        now: Instant,
        mut sink: impl FnMut(Deliveries<'_, B>),
    ) {
        self.take(batch, now, &mut sink);
        self.deliver(&mut sink);
    }

    /// Ends a poll: nothing more is there for the moment. The hold policy decides; [`Hold::Auto`](crate::Hold::Auto) holds
    /// nothing, because the load is unknown.
    pub fn end_of_poll(&mut self, now: Instant, mut sink: impl FnMut(Deliveries<'_, B>)) {
        self.hold_or_flush(now, None);
        self.deliver(&mut sink);
    }

    /// When [`Engine::on_timeout`] is to be called at the latest; `None` while nothing is held.
    /// It may be early (then that call does nothing), never late.
    ///
    /// # Examples
    /// A policy that holds beyond the end of a poll:
    /// ```
    /// # let seed = 7;
    /// use rxo_coalesce::{Config, Engine, Hold, Policy};
    /// use rxo_frame::{Duration, Frame, Instant, LinkKind};
    /// # use rxo_wire::build::{Ipv4Header, TcpHeader, write_tcp_checksum};
    /// # use rxo_wire::{TcpFlags, checksum::Summer};
    /// # let tcp = TcpHeader { flags: TcpFlags::ACK, ..TcpHeader::default() };
    /// # let ip = Ipv4Header { protocol: 6, payload_bytes: 20 + 1_000, ..Ipv4Header::default() };
    /// # let mut segment = vec![0; 40 + 1_000];
    /// # let rest = ip.write(&mut segment)?;
    /// # tcp.write(rest)?;
    /// # write_tcp_checksum(rest, ip.pseudo_header(), Summer::detect())?;
    ///
    /// let policy = Policy { hold: Hold::Within(Duration::from_micros(50)), ..Policy::linux_gro() };
    /// let config = Config { link: LinkKind::RawIp, ..Config::new(policy, seed) };
    /// let (mut engine, mut deliveries) = (Engine::new(config)?, 0);
    /// let mut batch = vec![Frame::new(segment, Instant::ZERO)];
    /// engine.poll(&mut batch, Instant::ZERO, |delivered| deliveries += delivered.iter().count());
    /// assert_eq!(deliveries, 0);
    /// let deadline = engine.poll_at().ok_or("nothing is held")?;
    /// engine.on_timeout(deadline, |delivered| deliveries += delivered.iter().count());
    /// assert_eq!((deliveries, engine.poll_at()), (1, None));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn poll_at(&self) -> Option<Instant> {
        self.deadline()
    }

    /// Delivers what has been held as long as the policy allows.
    pub fn on_timeout(&mut self, now: Instant, sink: impl FnMut(Deliveries<'_, B>)) {
        self.on_timeout_under(None, now, sink);
    }

    /// Delivers what has been held as long as the policy allows; under [`Hold::Auto`](crate::Hold::Auto) everything if the
    /// receiver is idle. `load` is that of [`Engine::poll_under`]. A caller that learns the load between
    /// polls should call it then, too.
    pub fn on_timeout_under(
        &mut self,
        load: Option<Load>,
        now: Instant,
        mut sink: impl FnMut(Deliveries<'_, B>),
    ) {
        if !self.flush_for_idle(load, now) {
            self.flush_overdue(now);
        }
        self.deliver(&mut sink);
    }

    /// Delivers everything held.
    ///
    /// # Examples
    /// Before a program ends:
    /// ```
    /// # let seed = 7;
    /// use rxo_coalesce::{Config, Engine, FlushReason, Hold, Policy};
    /// use rxo_frame::{Duration, Frame, Instant, LinkKind};
    /// # use rxo_wire::build::{Ipv4Header, TcpHeader, write_tcp_checksum};
    /// # use rxo_wire::{TcpFlags, checksum::Summer};
    /// # let tcp = TcpHeader { flags: TcpFlags::ACK, ..TcpHeader::default() };
    /// # let ip = Ipv4Header { protocol: 6, payload_bytes: 20 + 1_000, ..Ipv4Header::default() };
    /// # let mut segment = vec![0; 40 + 1_000];
    /// # let rest = ip.write(&mut segment)?;
    /// # tcp.write(rest)?;
    /// # write_tcp_checksum(rest, ip.pseudo_header(), Summer::detect())?;
    ///
    /// let policy = Policy { hold: Hold::Within(Duration::from_micros(50)), ..Policy::linux_gro() };
    /// let config = Config { link: LinkKind::RawIp, ..Config::new(policy, seed) };
    /// let (mut engine, mut deliveries) = (Engine::new(config)?, 0);
    /// let mut batch = vec![Frame::new(segment, Instant::ZERO)];
    /// engine.poll(&mut batch, Instant::ZERO, |_delivered| {});
    /// engine.flush(Instant::ZERO, |delivered| deliveries += delivered.iter().count());
    /// assert_eq!((deliveries, engine.is_idle()), (1, true));
    /// assert_eq!(engine.counters().flushed(FlushReason::Shutdown), 1);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn flush(&mut self, now: Instant, mut sink: impl FnMut(Deliveries<'_, B>)) {
        self.flush_all(self.store.end(), FlushReason::Shutdown, now);
        self.deliver(&mut sink);
    }
}
