//! Worker between two devices.
//!
//! ```text
//!  nic.source --frames--> engine --deliveries--> host.sink      (ToHost)
//!  nic.sink   <--frames, as they are-----------  host.source    (ToNic)
//! ```
//!
//! In a turn (one pass of its loop), the worker receives a batch from the nic, the engine coalesces it, and the
//! host's sink receives the deliveries. Then the worker forwards the frames from the host. Last, `next` decides
//! whether to start the next turn at once, to pause so that the next batch is full, or to wait until frames
//! arrive or a deadline passes.
//!
//! The worker is generic over the devices and over [`Waiter`], which provides the clock. Tests run the same
//! loop on links in memory and virtual time.
//!
//! # Contract
//! A direction reorders nothing, and drops nothing that its sink accepts, with one exception: if more frames arrive
//! than the worker can process, it drops frames by the rules of [`Overload`]. A direction does not wait for the sink
//! of the other direction: a blocked sink only stops reading from its own source. A source that is not read still gets
//! a call of its `attend` in each turn, because its device may have to answer messages. A buffer is dropped once the
//! delivery of its frame was sent. When the loop ends, by a stop or by a failed device, every held segment has been
//! passed to the host's sink. After construction a turn allocates nothing of its own.

mod account;
mod balance;
mod coalescing;
mod config;
mod crew;
mod fit;
mod guests;
mod looped;
mod next;
mod outlet;
mod overload;
mod question;
mod reading;
mod readings;
mod ring;
mod splitting;
mod to_host;
mod to_nic;
mod waiter;
mod weights;
mod work_clock;

use std::sync::atomic::AtomicBool;
use std::time::Duration;

use rxo_coalesce::{Engine, Hold, Policy};
use rxo_device::{DeviceError, FrameSink, FrameSource};
use rxo_frame::Instant;

pub use balance::Imbalance;
pub use coalescing::{BadCoalesce, Coalesce, Coalescing};
pub use config::{Directions, WorkerConfig};
pub use crew::Crew;
pub use fit::{Misfit, carried};
pub use guests::{Bell, Budget, Guests, HubWakeUp, PortBuffer, PortSink, PortSource, Threads};
pub use overload::Overload;
pub use question::{Moment, PolicyInForce, Question};
pub use reading::Reading;
pub use readings::Readings;
pub use rxo_device::Pause;
pub use waiter::{Awake, Waiter, Wanted, WantedHost};

use account::Sendings;
use balance::{Balance, Snapshot, Stage};
use coalescing::{Judge, Sample};
use looped::{Answers, Looped};
use next::Turn;
use reading::{Due, Times};
use splitting::Splitting;
use to_host::ToHost;
use to_nic::ToNic;
use waiter::{timed, wait};
use work_clock::WorkClock;

/// The source and the sink of a device.
#[derive(Clone, Copy, Debug)]
pub struct Duplex<I, O> {
    /// The source, which receives the frames that arrive on the device.
    pub source: I,
    /// The sink, which sends frames by the device.
    pub sink: O,
}

/// A worker between two devices. `NI` and `NO` are the source and sink of the nic, `HI` and `HO` are the source
/// and sink of the host's device.
pub struct Worker<NI: FrameSource, NO, HI: FrameSource, HO> {
    to_host: ToHost<NI, HO>,
    to_nic: ToNic<HI, NO>,
    splitting: Option<Splitting>,
    config: WorkerConfig,
    times: Times,
    balance: Balance,
    sendings: Sendings,
    judge: Judge,
}

/// A report to an observer, once per interval.
#[derive(Debug)]
pub struct Report<'a, NO, HO> {
    /// The counters of the run so far.
    pub reading: &'a Readings,
    /// `true` if the interval between two reports has passed; `false` if only [`WorkerConfig::look_every`]
    /// has.
    pub is_due: bool,
    /// The nic's sink, which the observer can check for notices.
    pub nic_sink: &'a mut NO,
    /// The host's sink, or the sinks of all guests that have no threads of their own, which the observer can
    /// check for notices.
    pub host_sinks: Vec<&'a mut HO>,
    /// Lines about guests for the user, each reported once.
    pub lines: Vec<String>,
    /// The number of machines that have left the host's device so far, such as virtual machines that ended.
    pub peers_gone: u64,
}

impl<NI, NO, HI, HO> Worker<NI, NO, HI, HO>
where
    NI: FrameSource,
    NO: FrameSink,
    HI: FrameSource,
    HO: FrameSink,
{
    /// Creates a worker between two devices. Allocates all its memory.
    ///
    /// # Errors
    /// [`Misfit`] if the devices do not work together, the host's device lacks something that the policy
    /// requires, or a number in the configuration is out of range.
    ///
    /// # Examples
    /// ```
    /// use rxo::{Duplex, MemoryLink, MemoryOptions, Policy, Worker, WorkerConfig};
    ///
    /// let link = || MemoryLink::new(MemoryOptions::default());
    /// let (from_nic, to_nic, from_host, to_host) = (link(), link(), link(), link());
    /// let nic = Duplex { source: from_nic.source(), sink: to_nic.sink() };
    /// let host = Duplex { source: from_host.source(), sink: to_host.sink() };
    /// let worker = Worker::new(nic, host, WorkerConfig::new(Policy::linux_gro()))?;
    /// assert_eq!(worker.config().budget_frames, 256);
    /// # Ok::<(), rxo::Misfit>(())
    /// ```
    pub fn new(
        nic: Duplex<NI, NO>,
        host: Duplex<HI, HO>,
        mut config: WorkerConfig,
    ) -> Result<Self, Misfit> {
        fit::check(&nic, &host, &mut config)?;
        let engine = Engine::new(config.engine.clone())?;
        let mut nic = nic;
        if config.engine.policy.hold != Hold::EndOfPoll {
            nic.source.expect_holds();
        }
        let to_host = ToHost::new(nic.source, engine, host.sink, &config);
        let to_nic = ToNic::new(host.source, nic.sink, config.host_budget_frames);
        let splitting = Splitting::new(&config).map_err(Misfit::Split)?;
        Ok(Self {
            to_host,
            to_nic,
            splitting,
            config,
            times: Times::default(),
            balance: Balance::default(),
            sendings: Sendings::default(),
            judge: Judge::new(),
        })
    }

    /// Returns the configuration that applies now, or from the next turn: with the link layer of the devices,
    /// and limited to the aggregates that the host's sink accepts.
    #[must_use]
    pub const fn config(&self) -> &WorkerConfig {
        &self.config
    }

    /// Runs until `stop` is set or a device fails. Calls `observe` once per [`WorkerConfig::report_every`]
    /// and per [`WorkerConfig::look_every`], but not at the end: [`Worker::reading`] returns the totals.
    ///
    /// The worker reads `stop` in every turn, and at least ten times a second.
    ///
    /// # Errors
    /// The first failure of a device, after all held packets were sent.
    pub fn run<W: Waiter<NI, NO, HI, HO>>(
        &mut self,
        waiter: &mut W,
        stop: &AtomicBool,
        mut observe: impl FnMut(Report<'_, NO, HO>),
    ) -> Result<(), DeviceError> {
        looped::run(self, waiter, stop, |worker, due| worker.report(due, &mut observe))
    }

    /// Returns all counters since the worker was created. `elapsed` and `cpu` are those of the last report or,
    /// after a run, of its end.
    pub fn reading(&mut self) -> Reading {
        let ToHost { ring, source, .. } = &mut self.to_host;
        let (nic_in, not_scheduled) = ring.counters(source);
        Reading {
            elapsed: self.times.elapsed(),
            cpu: self.times.cpu(),
            nic_in,
            host_out: self.to_host.outlet.sink.counters(),
            host_in: self.to_nic.source.counters(),
            nic_out: self.to_nic.outlet.sink.counters(),
            engine: self.to_host.engine.counters().clone(),
            overload: self.to_host.overload_drops,
            not_scheduled,
            unaccounted: self.to_host.account.unaccounted,
            unsent: self.sendings.unsent,
            over_budget: 0,
            stalls: 0,
            imbalance: self.balance.found(),
            coalescing: self.coalescing(),
            split: self.splitting.as_ref().map(Splitting::counters),
        }
    }

    /// Returns the state of coalescing.
    fn coalescing(&self) -> Coalescing {
        let Judge { switched_off, switched_on, probes, .. } = self.judge;
        let (asked, is_on) = (self.config.coalesce, !self.to_host.will_pass);
        let is_probe = asked == Coalesce::Auto && self.judge.is_probe();
        let passed = self.to_host.passed;
        Coalescing { asked, is_on, is_probe, switched_off, switched_on, probes, passed }
    }

    /// Makes frames go through the engine or, if `is_on` is `false`, bypass it, from the next turn. Returns the
    /// moment at which the change takes effect.
    fn use_engine(&mut self, is_on: bool) -> Moment {
        if self.to_host.will_pass == is_on {
            self.to_host.will_pass = !is_on;
            let policy = self.to_host.next_policy.unwrap_or(self.config.engine.policy);
            self.to_host.next_policy = Some(policy);
        }
        self.moment()
    }

    /// Returns the moment at which a change that is made now takes effect.
    fn moment(&self) -> Moment {
        match self.to_host.outlet.is_blocked() {
            true => Moment::WhenThereIsRoom(1),
            false => Moment::NextTurn,
        }
    }

    /// Returns the counts of each stage. Called between two turns.
    fn snapshot(&mut self) -> Snapshot {
        let Self { to_host, to_nic, splitting, .. } = self;
        let (engine, counters) = (&to_host.engine, to_host.engine.counters());
        let received = to_host.source.counters().frames;
        let inserted = splitting.as_ref().map_or(0, |splitting| splitting.counters().inserted);
        let sent_back = to_nic.source.counters().frames + inserted;
        Snapshot {
            nic_in: Stage::before(
                received,
                to_host.overload_drops,
                counters.frames + to_host.passed,
            ),
            engine: Stage::of_engine(counters, engine.held_frames()),
            host_out: to_host.outlet.stage(counters.delivered_frames() + to_host.passed),
            nic_out: to_nic.outlet.stage(sent_back),
            switch: Stage::default(),
        }
    }

    /// Returns the devices.
    #[must_use]
    pub fn into_devices(self) -> (Duplex<NI, NO>, Duplex<HI, HO>) {
        let nic = Duplex { source: self.to_host.source, sink: self.to_nic.outlet.sink };
        (nic, Duplex { source: self.to_nic.source, sink: self.to_host.outlet.sink })
    }

    /// Returns the devices while the worker does not run.
    #[cfg(feature = "driver")]
    pub(crate) fn devices(&mut self) -> (Duplex<&mut NI, &mut NO>, Duplex<&mut HI, &mut HO>) {
        let Self { to_host, to_nic, .. } = self;
        let nic = Duplex { source: &mut to_host.source, sink: &mut to_nic.outlet.sink };
        (nic, Duplex { source: &mut to_nic.source, sink: &mut to_host.outlet.sink })
    }

    /// Processes a batch in each direction whose source may have frames. If one direction fails, the other is
    /// still served.
    fn turn(
        &mut self,
        mut clock: impl FnMut(&mut WorkClock) -> Instant,
        awake: Awake,
    ) -> Result<Turn, DeviceError> {
        let directions = self.config.directions;
        let mut now = None;
        let from_nic = if directions.to_host() {
            self.to_host.turn(awake.nic, self.splitting.as_mut(), |work| *now.insert(clock(work)))
        } else {
            self.to_host.source.attend();
            Ok(0)
        };
        let from_host = if directions.to_nic() {
            self.to_nic.turn(awake.host(0), self.splitting.as_mut())
        } else {
            self.to_nic.source.attend();
            Ok(0)
        };
        let (from_nic, from_host) = (from_nic?, from_host?);
        let now = now.unwrap_or_else(|| clock(&mut self.to_host.ring.work));
        Ok(Turn { from_nic, from_host, now })
    }

    fn report(&mut self, due: Due, observe: &mut impl FnMut(Report<'_, NO, HO>)) {
        self.to_host.account.open(&mut self.to_host.source);
        self.sendings.compare_departures(self.times.now(), &mut self.to_nic.outlet.sink);
        self.check_balance();
        let reading = self.readings();
        observe(Report {
            reading: &reading,
            is_due: due == Due::Report,
            nic_sink: &mut self.to_nic.outlet.sink,
            host_sinks: vec![&mut self.to_host.outlet.sink],
            lines: Vec::new(),
            peers_gone: self.to_nic.source.peers_gone(),
        });
    }

    /// Returns the policy of the engine.
    fn policy(&self) -> PolicyInForce {
        let ToHost { engine, next_policy, .. } = &self.to_host;
        let (policy, coalescing) = (engine.config().policy, self.coalescing());
        PolicyInForce { policy, next: next_policy.filter(|next| *next != policy), coalescing }
    }

    /// Returns `policy` with its aggregate size and its optional UDP and tunnel rules reduced to the
    /// capabilities of the host's sink.
    ///
    /// # Errors
    /// If the sink lacks something that the policy requires, or a number in the resulting configuration is out
    /// of range.
    fn carried(&self, policy: Policy) -> Result<Policy, Misfit> {
        let policy = carried(policy, self.to_host.outlet.sink.capabilities())?;
        rxo_coalesce::Config { policy, ..self.config.engine.clone() }.check()?;
        Ok(policy)
    }

    /// Returns the host's source if the worker waits for its frames, and the host's sink if the worker waits
    /// for its free space; otherwise `None`.
    fn wanted_host(&self) -> WantedHost<'_, HI, HO> {
        let Self { to_host, to_nic, config, .. } = self;
        let reads = config.directions.to_nic()
            && !to_nic.outlet.is_blocked()
            && !to_nic.source.is_starved();
        WantedHost { source: reads.then_some(&to_nic.source), sink: to_host.outlet.wanted() }
    }

    /// Returns `true` if something may be ready before the system reports it: free space in a sink, or free
    /// memory of the host's source.
    fn waits_for_time(&self) -> bool {
        let Self { to_host, to_nic, .. } = self;
        to_host.outlet.is_blocked() || to_nic.outlet.is_blocked() || to_nic.source.is_starved()
    }

    /// Makes the engine follow `policy`, which [`carried`](Self::carried) has returned. Returns the moment at
    /// which the change takes effect.
    fn follow(&mut self, policy: Policy) -> Moment {
        self.config.engine.policy = policy;
        self.to_host.next_policy = Some(policy);
        if self.config.coalesce == Coalesce::Auto {
            // Coalescing may pay under the new policy.
            self.judge = self.judge.restarted();
            self.to_host.will_pass = false;
        }
        self.moment()
    }
}

impl<NI, NO, HI, HO> Looped<NI, NO, HI, HO> for Worker<NI, NO, HI, HO>
where
    NI: FrameSource,
    NO: FrameSink,
    HI: FrameSource,
    HO: FrameSink,
{
    fn config(&self) -> &WorkerConfig {
        &self.config
    }

    fn times(&mut self) -> &mut Times {
        &mut self.times
    }

    fn take_turn<W: Waiter<NI, NO, HI, HO>>(
        &mut self,
        waiter: &mut W,
        awake: Awake,
    ) -> Result<Turn, DeviceError> {
        self.turn(|work| timed(waiter, work), awake)
    }

    /// Returns the time of the next deadline; `None` if there is none. Ignores delayed frames of a source while
    /// the sink of that direction is blocked, because a turn could not forward these frames.
    fn deadline(&self) -> Option<Instant> {
        let Self { to_host, to_nic, config, .. } = self;
        let gives_host = config.directions.to_host() && !to_host.outlet.is_blocked();
        let gives_nic = config.directions.to_nic() && !to_nic.outlet.is_blocked();
        let held_back = [
            gives_host.then(|| to_host.source.poll_at()).flatten(),
            gives_nic.then(|| to_nic.source.poll_at()).flatten(),
        ];
        [to_host.engine.poll_at()].into_iter().chain(held_back).flatten().min()
    }

    fn wait<W: Waiter<NI, NO, HI, HO>>(
        &self,
        waiter: &mut W,
        timeout: Duration,
    ) -> Result<Awake, DeviceError> {
        let Self { to_host, to_nic, config, .. } = self;
        let is_nic_starved = to_host.source.is_starved();
        let reads_nic =
            config.directions.to_host() && !to_host.outlet.is_blocked() && !is_nic_starved;
        let wanted = Wanted {
            nic_source: reads_nic.then_some(&to_host.source),
            nic_sink: to_nic.outlet.wanted(),
            hosts: &[self.wanted_host()],
        };
        let is_brief = self.waits_for_time() || is_nic_starved;
        let mut awake = wait(waiter, wanted, timeout, is_brief)?;
        awake.nic |= is_nic_starved;
        awake.set_host(0, to_nic.source.is_starved());
        Ok(awake)
    }

    fn judge(&mut self, now: Instant, cpu: Duration) {
        if self.config.coalesce != Coalesce::Auto || !self.config.engine.policy.coalesce {
            return;
        }
        let ToHost { engine, passed, .. } = &self.to_host;
        let counters = engine.counters();
        let (frames, deliveries) = (counters.frames + passed, counters.deliveries + passed);
        self.judge.observe(now, Sample { frames, deliveries, cpu });
        self.use_engine(self.judge.is_on());
    }

    fn flush(&mut self, now: Instant) -> Result<(), DeviceError> {
        let flushed = self.to_host.flush(now);
        let finished = self.to_host.outlet.finish().and(self.to_nic.outlet.finish());
        flushed.and(finished)
    }

    fn check_balance(&mut self) {
        let now = self.snapshot();
        self.balance.check(now);
    }

    fn answer(&mut self, question: Question) {
        looped::answer(self, question);
    }
}

impl<NI, NO, HI, HO> Answers for Worker<NI, NO, HI, HO>
where
    NI: FrameSource,
    NO: FrameSink,
    HI: FrameSource,
    HO: FrameSink,
{
    fn readings(&mut self) -> Readings {
        self.reading().into()
    }

    fn policies(&self) -> Vec<PolicyInForce> {
        vec![self.policy()]
    }

    fn change_policy(&mut self, policy: Policy) -> Result<Moment, Misfit> {
        self.carried(policy).map(|policy| self.follow(policy))
    }

    fn coalesce(&mut self, when: Option<Coalesce>) -> Moment {
        let Some(when) = when else { return self.moment() };
        if self.config.coalesce != when {
            (self.config.coalesce, self.judge) = (when, self.judge.restarted());
        }
        self.use_engine(when != Coalesce::Off)
    }

    fn report_every(&mut self, time: Option<Duration>) -> Result<(), Misfit> {
        self.times.report_every(time)
    }
}
