//! The engine: tiers that return verdicts, and one module that applies them.
//!
//! * `take`: receives a batch and tries the tiers in order.
//! * `expected`, `expected_acks`, `in_turn`, `plain`, `ordinary`, `rules`: the tiers, the fastest first.
//! * `datagrams`: all tiers for UDP; `tunnels`: the rules for TCP inside tunnels.
//! * `judge`: returns the verdict, for the slower tiers; `apply`: applies a verdict.
//! * `acks`: uses and updates the last ACK of each flow.
//! * `hosts`: flushes all flows between two hosts, for a packet that may belong to any of them.
//! * `end_of_poll`, `auto`: choose the flows to flush at the end of a poll, `auto` under adaptive hold;
//!   `flush`: flushes flows.
//! * `cursor`, `checksums`, `prefetch`, `limits`: helpers that all these modules use.

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

use rxo_frame::{ConfigError, Frame, FrameBuffer, Instant, Load};
use rxo_wire::{FlowHasher, FlowKey};

use auto::Pace;
use limits::{memory, most_payload, packet_window, plain_payload};

use crate::acks::{Memory, Recent};
use crate::store::Store;
use crate::table::Table;
use crate::{Config, Counters, Deliveries, FlushReason, Policy};

/// The receive engine of one worker: frames in, deliveries out. See the crate's documentation.
///
/// # Worst case
/// The table gives the maximum number of instructions to receive and deliver one frame, for any held flows and
/// any traffic. The instructions were counted, including those of polls, with 4,096 flows and 81,920 slots, under
/// frames chosen to be expensive, some of them by senders that know the seed (`worst-…` of `cargo xtask bench
/// instructions`; see lab/bench/README.md).
///
/// | | instructions per frame received or delivered |
/// |---|---|
/// | ordinary traffic, four segments of a flow at a time | 450 |
/// | the most expensive | 1,170 |
/// | a poll of one frame that bypasses, while all slots are used | 1,500 |
///
/// Two kinds of work are deferred and then done at once: closing the gaps between held frames, and rebuilding
/// an index. Each is done only after so many frames that its cost per frame is bounded, too.
#[derive(Debug)]
pub struct Engine<B> {
    config: Config,
    hasher: FlowHasher,
    table: Table,
    store: Store<B>,
    counters: Counters,
    /// The last ACK of each flow; off unless the policy needs it.
    memory: Memory,
    /// Guesses the index at which the pure ACKs of a flow are held.
    recent: Recent,
    /// The maximum number of pure ACKs held together; if this limit is less than 2, no ACKs are aggregated.
    ack_limit: u32,
    /// The payload, in bytes, up to which all plain segments satisfy the static rules of the policy; 0 if the
    /// policy also refuses segments without DF or with a zero timestamp echo, because these may be plain.
    plain_payload_bytes: u32,
    /// `true` if the policy coalesces UDP. Copied from the policy for the fast tiers, which read this flag for
    /// every frame that is not the next expected one.
    takes_datagrams: bool,
    /// `false` if no segment with payload is ever held. The fast tiers are then skipped, because the full rules
    /// would have to decide on every frame anyway.
    holds_data: bool,
    /// The number of polls since the last flush of all flows.
    polls: u32,
    /// The number of packets until the next flush of all flows.
    packets_left: u32,
    /// A lower bound of the arrival times of all held segments; valid only while something is held.
    oldest_arrival: Instant,
    /// The time of the poll whose frames are being received.
    now: Instant,
    /// State of adaptive hold that is kept between polls.
    pace: Pace,
}

impl<B: FrameBuffer> Engine<B> {
    /// Creates an engine. All memory is allocated here.
    ///
    /// # Errors
    /// [`ConfigError`] if a number of the configuration is out of range.
    ///
    /// # Examples
    /// ```
    /// # let seed = 7;
    /// use rxo_coalesce::{Config, Engine, Policy};
    ///
    /// let config = Config { batch_frames: 128, ..Config::new(Policy::linux_gro(), seed) };
    /// let engine = Engine::<Vec<u8>>::new(config)?;
    /// assert!(engine.poll_at().is_none());
    /// # Ok::<(), rxo_frame::ConfigError>(())
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
            polls: 0,
            packets_left: packet_window(policy.hold),
            oldest_arrival: Instant::ZERO,
            now: Instant::ZERO,
            config,
        })
    }

    /// Returns the configuration with which the engine was created, including later changes of the policy.
    #[must_use]
    pub const fn config(&self) -> &Config {
        &self.config
    }

    /// Returns the counters of the engine since its creation.
    #[must_use]
    pub const fn counters(&self) -> &Counters {
        &self.counters
    }

    /// Changes the policy at `now`, between two polls. All held segments are delivered to `sink` first, under
    /// the old policy. The counters are not reset. The last ACK of each flow is forgotten, so the next pure ACK
    /// of each flow is delivered alone. Allocates the memory that the new policy needs, and frees the old
    /// memory.
    ///
    /// # Errors
    /// [`ConfigError`] if a number of the policy is out of range. In this case nothing is delivered or changed.
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

    /// Returns `true` if no segment is held.
    #[must_use]
    pub const fn is_idle(&self) -> bool {
        self.table.is_empty()
    }

    /// Returns the number of frames received but not delivered; call it between two polls. The number is
    /// derived from the used slots and not from [`Engine::counters`], so the two can be compared in a test.
    #[must_use]
    pub fn held_frames(&self) -> usize {
        self.store.undelivered()
    }

    /// Returns `true` if a segment of the flow `key` is held. A packet of the flow that does not pass through the
    /// engine would overtake such a segment. O(1).
    #[inline]
    #[must_use]
    pub fn holds(&self, key: &FlowKey) -> bool {
        !self.table.is_empty()
            && self.table.find(&self.store.held, key, self.hasher.hash(key)).is_some()
    }

    /// Receives the frames of one poll, leaving `batch` empty, and ends the poll; most callers need only
    /// this. `now` is the time of the poll. `sink` is called with the deliveries in order, once unless the
    /// batch is larger than configured. [`Hold::Auto`](crate::Hold::Auto) holds nothing here, because the
    /// load is unknown: see [`Engine::poll_under`].
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
    /// # Ok::<(), rxo_frame::ConfigError>(())
    /// ```
    pub fn poll(
        &mut self,
        batch: &mut Vec<Frame<B>>,
        now: Instant,
        sink: impl FnMut(Deliveries<'_, B>),
    ) {
        self.poll_under(None, batch, now, sink);
    }

    /// Receives the frames of one poll and ends it, like [`Engine::poll`]. `load` is the number of earlier
    /// deliveries that the receiver has not processed yet; `None` if unknown. Only
    /// [`Hold::Auto`](crate::Hold::Auto) uses it.
    #[inline]
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

    /// Receives the frames, leaving `batch` empty, without ending the poll.
    ///
    /// # Examples
    /// A poll that is received in parts:
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

    /// Ends a poll: no more frames are available for now. The hold policy decides which flows are flushed;
    /// [`Hold::Auto`](crate::Hold::Auto) holds nothing, because the load is unknown.
    pub fn end_of_poll(&mut self, now: Instant, mut sink: impl FnMut(Deliveries<'_, B>)) {
        self.hold_or_flush(now, None);
        self.deliver(&mut sink);
    }

    /// Returns the time by which [`Engine::on_timeout`] must be called; `None` while nothing is held or the
    /// policy has no time limit. The time may be too early, in which case the call does nothing, but it is
    /// never too late.
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

    /// Flushes the flows that have been held as long as the policy allows.
    pub fn on_timeout(&mut self, now: Instant, sink: impl FnMut(Deliveries<'_, B>)) {
        self.on_timeout_under(None, now, sink);
    }

    /// Flushes the flows that have been held as long as the policy allows; under
    /// [`Hold::Auto`](crate::Hold::Auto) all flows if the receiver is idle. `load` is as in
    /// [`Engine::poll_under`]. Call this function also whenever the receiver's load becomes known between polls.
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

    /// Flushes every flow.
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
