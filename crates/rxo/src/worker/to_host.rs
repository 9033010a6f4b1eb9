//! From the nic to the host: through the engine.

use rxo_coalesce::{Deliveries, Engine, Hold, Policy};
use rxo_device::{DeviceError, FrameSink, FrameSource};
use rxo_frame::{Frame, Instant};

use super::account::Account;
use super::outlet::Outlet;
use super::overload::CoDel;
use super::ring::Ring;
use super::splitting::Splitting;
use super::work_clock::WorkClock;
use super::{Coalesce, WorkerConfig};

/// The direction that coalesces.
pub(super) struct ToHost<S: FrameSource, K> {
    pub(super) source: S,
    pub(super) engine: Engine<S::Buffer>,
    pub(super) outlet: Outlet<K>,
    /// Frames dropped because more arrived than the worker could take.
    pub(super) overload_drops: u64,
    pub(super) ring: Ring,
    pub(super) account: Account,
    /// What the engine is to follow as soon as the sink takes packets.
    pub(super) next_policy: Option<Policy>,
    /// Whether frames pass by the engine.
    passes: bool,
    /// Whether they do from the next policy on.
    pub(super) will_pass: bool,
    /// Frames that passed by the engine.
    pub(super) passed: u64,
    codel: Option<CoDel>,
    batch: Vec<Frame<S::Buffer>>,
    budget: usize,
}

impl<S: FrameSource, K: FrameSink> ToHost<S, K> {
    pub(super) fn new(
        source: S,
        engine: Engine<S::Buffer>,
        sink: K,
        config: &WorkerConfig,
    ) -> Self {
        let (budget, passes) = (config.budget_frames, config.coalesce == Coalesce::Off);
        Self {
            source,
            engine,
            outlet: Outlet::new(sink),
            overload_drops: 0,
            ring: Ring::new(),
            account: Account::default(),
            next_policy: None,
            passes,
            will_pass: passes,
            passed: 0,
            codel: config.overload.map(CoDel::new),
            batch: Vec::with_capacity(budget),
            budget,
        }
    }

    /// Takes a batch, coalesces it and sends the deliveries. Returns how many frames the batch had.
    /// Reads `clock` once, after it took the batch, so that no frame arrives after the poll; the clock also
    /// notes the processor time. Takes no
    /// batch while the sink is blocked. Without `is_worth_a_look` it takes only frames that the source
    /// has delayed.
    ///
    /// # Errors
    /// If a device failed. What was received before that has been sent.
    pub(super) fn turn(
        &mut self,
        is_worth_a_look: bool,
        mut splitting: Option<&mut Splitting>,
        clock: impl FnOnce(&mut WorkClock) -> Instant,
    ) -> Result<usize, DeviceError> {
        let resumed = self.outlet.resume();
        let is_worth_a_look = is_worth_a_look || self.source.poll_at().is_some();
        let reads = is_worth_a_look && !self.outlet.is_blocked();
        let received = if reads {
            self.source.receive(&mut self.batch, self.budget)
        } else {
            self.source.attend();
            Ok(0)
        };
        let now = clock(&mut self.ring.work);
        let is_all = self.batch.len() < self.budget;
        self.ring.look(is_all, &mut self.source);
        if reads && is_all && !self.source.is_starved() {
            self.account.settle(&mut self.source);
        }
        if let Some(codel) = &mut self.codel {
            let work = &self.ring.work;
            self.overload_drops += codel.drop_from(&mut self.batch, is_all, now, work);
        }
        let changed = match self.next_policy {
            None => Ok(()),
            Some(policy) => self.change_policy(policy, now, splitting.as_deref_mut()),
        };
        let sent = if self.passes { self.pass(splitting) } else { self.coalesce(now, splitting) };
        let frames = resumed.and(received).and_then(|frames| changed.and(sent).map(|()| frames))?;
        // A blocked sink wants no more, however much there is.
        Ok(if self.outlet.is_blocked() { 0 } else { frames })
    }

    /// Takes the batch through the engine, and sends what that delivers.
    ///
    /// # Errors
    /// If the sink failed.
    #[inline(always)]
    fn coalesce(
        &mut self,
        now: Instant,
        splitting: Option<&mut Splitting>,
    ) -> Result<(), DeviceError> {
        let load = self.outlet.sink.load();
        let mut sent = Sent { sink: &mut self.outlet.sink, splitting, result: Ok(()) };
        if self.batch.is_empty() {
            // An empty batch is not a poll: policies that count polls count those with frames.
            self.engine.on_timeout_under(load, now, |deliveries| sent.transmit(&deliveries));
        } else {
            let deliver = |deliveries: Deliveries<'_, _>| sent.transmit(&deliveries);
            self.engine.poll_under(load, &mut self.batch, now, deliver);
        }
        sent.result
    }

    /// Sends the batch as it is. The engine holds nothing.
    ///
    /// # Errors
    /// If the sink failed.
    fn pass(&mut self, splitting: Option<&mut Splitting>) -> Result<(), DeviceError> {
        if let Some(splitting) = splitting {
            self.batch.iter().for_each(|frame| splitting.deliver_frame(frame));
        }
        self.passed += self.batch.len() as u64;
        let sent = match self.batch.is_empty() {
            true => Ok(()),
            false => self.outlet.sink.transmit(self.batch.iter().map(Frame::borrowed)),
        };
        self.batch.clear();
        sent
    }

    /// Sends everything that the engine holds, and lets it follow `policy` from now on. A blocked sink might have no
    /// room for what is held, so it is waited for.
    ///
    /// # Errors
    /// If the sink failed.
    #[cold]
    fn change_policy(
        &mut self,
        policy: Policy,
        now: Instant,
        splitting: Option<&mut Splitting>,
    ) -> Result<(), DeviceError> {
        if self.outlet.is_blocked() {
            return Ok(());
        }
        self.next_policy = None;
        self.passes = self.will_pass;
        if policy.hold != Hold::EndOfPoll {
            self.source.expect_holds();
        }
        let mut sent = Sent { sink: &mut self.outlet.sink, splitting, result: Ok(()) };
        // Its numbers were checked when it was asked for.
        _ = self.engine.change_policy(policy, now, |deliveries| sent.transmit(&deliveries));
        sent.result
    }

    /// Sends everything that the engine holds.
    ///
    /// # Errors
    /// If the sink failed.
    pub(super) fn flush(&mut self, now: Instant) -> Result<(), DeviceError> {
        // The host's answers to these are not carried, so the splitter need not know.
        let mut sent = Sent { sink: &mut self.outlet.sink, splitting: None, result: Ok(()) };
        self.engine.flush(now, |deliveries| sent.transmit(&deliveries));
        sent.result
    }
}

/// The sink during one call of the engine, and its first failure.
struct Sent<'a, K> {
    sink: &'a mut K,
    splitting: Option<&'a mut Splitting>,
    result: Result<(), DeviceError>,
}

impl<K: FrameSink> Sent<'_, K> {
    fn transmit<B: AsRef<[u8]>>(&mut self, deliveries: &Deliveries<'_, B>) {
        if let Some(splitting) = &mut self.splitting {
            deliveries.iter().for_each(|delivery| splitting.deliver(delivery));
        }
        // Also after a failure: the sink counts what it cannot send as dropped.
        let sent = self.sink.transmit(deliveries.iter());
        if self.result.is_ok() {
            self.result = sent;
        }
    }
}
