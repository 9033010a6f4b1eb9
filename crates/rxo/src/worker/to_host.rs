//! Receive path of a worker: moves frames from the nic through the engine to the host.

use rxo_coalesce::{Deliveries, Engine, Hold, Policy};
use rxo_device::{DeviceError, FrameSink, FrameSource};
use rxo_frame::{Frame, Instant};

use super::account::Account;
use super::outlet::Outlet;
use super::overload::FairCoDel;
use super::ring::Ring;
use super::splitting::Splitting;
use super::work_clock::WorkClock;
use super::{Coalesce, WorkerConfig};

/// The receive path of a worker, from the nic to the host, on which frames are coalesced.
pub(super) struct ToHost<S: FrameSource, K> {
    pub(super) source: S,
    pub(super) engine: Engine<S::Buffer>,
    pub(super) outlet: Outlet<K>,
    /// The number of frames dropped because more arrived than the worker could process.
    pub(super) overload_drops: u64,
    pub(super) ring: Ring,
    pub(super) account: Account,
    /// The policy that the engine will follow once the sink accepts packets; `None` if no change is pending.
    pub(super) next_policy: Option<Policy>,
    /// `true` if frames bypass the engine now.
    passes: bool,
    /// `true` if frames will bypass the engine once a requested change of coalescing takes effect.
    pub(super) will_pass: bool,
    /// The number of frames that bypassed the engine.
    pub(super) passed: u64,
    codel: Option<FairCoDel>,
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
        let link = source.capabilities().link;
        let codel = config.overload.map(|overload| FairCoDel::new(overload, link));
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
            codel,
            batch: Vec::with_capacity(budget),
            budget,
        }
    }

    /// Receives a batch, coalesces it and sends the deliveries. Returns the number of frames in the batch. Calls
    /// `clock` once, after the batch was received, so that no frame arrives later than the poll; the clock also samples
    /// the processor time. Receives no batch while the sink is blocked. If `may_have_frames` is `false`, only
    /// receives frames that the source has delayed.
    ///
    /// # Errors
    /// If a device failed. Frames received before that were sent.
    pub(super) fn turn(
        &mut self,
        may_have_frames: bool,
        mut splitting: Option<&mut Splitting>,
        clock: impl FnOnce(&mut WorkClock) -> Instant,
    ) -> Result<usize, DeviceError> {
        let resumed = self.outlet.resume();
        let may_have_frames = may_have_frames || self.source.poll_at().is_some();
        let reads = may_have_frames && !self.outlet.is_blocked();
        let received = if reads {
            self.source.receive(&mut self.batch, self.budget)
        } else {
            self.source.attend();
            Ok(0)
        };
        let now = clock(&mut self.ring.work);
        let is_all = self.batch.len() < self.budget;
        self.ring.attribute_losses(is_all, &mut self.source);
        if reads && is_all && !self.source.is_starved() {
            self.account.compare_arrivals(&mut self.source);
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
        // A blocked sink ends the turn, however many frames are waiting.
        Ok(if self.outlet.is_blocked() { 0 } else { frames })
    }

    /// Passes the batch through the engine, and sends the deliveries.
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
            // An empty batch is not a poll: policies that count polls only count polls with frames.
            self.engine.on_timeout_under(load, now, |deliveries| sent.transmit(&deliveries));
        } else {
            let deliver = |deliveries: Deliveries<'_, _>| sent.transmit(&deliveries);
            self.engine.poll_under(load, &mut self.batch, now, deliver);
        }
        sent.result
    }

    /// Sends the batch unchanged, without the engine. The engine must hold no frames at that time.
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

    /// Sends everything that the engine holds, and makes the engine follow `policy` from then on. Does
    /// nothing while the sink is blocked, because the sink might not accept the held frames.
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
        // The policy's numbers were checked when it was requested.
        _ = self.engine.change_policy(policy, now, |deliveries| sent.transmit(&deliveries));
        sent.result
    }

    /// Sends everything that the engine holds, as at the end of a run.
    ///
    /// # Errors
    /// If the sink failed.
    pub(super) fn flush(&mut self, now: Instant) -> Result<(), DeviceError> {
        // The host's ACKs for these deliveries are not forwarded any more, so the splitter does not need
        // them.
        let mut sent = Sent { sink: &mut self.outlet.sink, splitting: None, result: Ok(()) };
        self.engine.flush(now, |deliveries| sent.transmit(&deliveries));
        sent.result
    }
}

/// A sink for the deliveries of one call of the engine, which keeps the first failure.
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
        // Continues after a failure, because the sink counts packets that it cannot send as dropped.
        let sent = self.sink.transmit(deliveries.iter());
        if self.result.is_ok() {
            self.result = sent;
        }
    }
}
