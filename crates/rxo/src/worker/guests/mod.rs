//! Guests: a nic, a switch, and several guests with a worker for each.
//!
//! ```text
//!  nic.source --> switch --lane--> engine --deliveries--> guest's sink      one engine, worker and
//!  nic.sink   <-- switch <--lane-------------------------- guest's source   two lanes for each guest
//!  \_________ hub _________/     \_________ worker of a guest __________/
//! ```
//!
//! There may be several hubs, each on a thread of its own: one for each queue of the nic. Then each guest has two lanes
//! for each hub. The queue of a frame from the nic is chosen by the nic, and that of a frame from a guest by the same rule
//! ([`rxo_wire::queue_of`]), so the frames of a flow pass one hub and stay in order. Each hub decides alone about its
//! frames; what its switch learns, the switches of all hubs know at once.
//!
//! Each guest has a [`Worker`] of its own, between a port of the switch and the guest's device, so that
//! neither the polls of one guest nor its free space affect another. The [`hub`] has the nic and the switch.
//! Frames cross between hub and worker by lanes, whose ends never wait for each other, so each worker may
//! have a thread:
//!
//! * [`Guests::run_on_threads`] gives each guest a thread. The time that a guest's device costs its thread
//!   (rings, notifications, messages, memory) then delays no other guest.
//! * [`Guests::run`] runs the hub and all workers on one thread, for tests on virtual time and for devices
//!   that cannot move to a thread.
//!
//! # Contract
//! The contract of the worker holds for each guest. A guest that does not accept its frames loses the frames
//! for which its lane has no space, which are counted as `ring_drops` of its reading; it delays no other guest.
//! Guests send in fair turns, each within its [`Budget`]. A full nic does not stop guests from sending to each
//! other: a few frames of each guest wait for the nic, and a guest with more is not read for a tenth of a
//! second; after that, its frames are dropped and counted.

mod answers;
mod budget;
mod departures;
mod fair;
mod further;
mod gather;
mod hub;
mod hub_turns;
mod lane;
mod port;
mod side;
mod thread;
mod threads;
mod wake_up;
mod watch;

use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use rxo_coalesce::Policy;
use rxo_device::{DeviceError, FrameSink, FrameSource};
use rxo_frame::Instant;

use super::balance::{Balance, Stage};
use super::looped::{self, Answers, Looped};
use super::next::Turn;
use super::reading::{Due, Times};
use super::waiter::{timed, wait};
use super::{
    Awake, Coalesce, Directions, Duplex, Misfit, Moment, Pause, PolicyInForce, Question, Reading,
    Readings, Report, Waiter, Wanted, WantedHost, Worker, WorkerConfig,
};
use crate::switch::{MAX_PORTS, Switch};

use budget::Meters;
use further::Further;
use hub::Hub;
use wake_up::WakeUp;

pub use budget::Budget;
pub use hub_turns::HubWakeUp;
pub use lane::PortBuffer;
pub use port::{PortSink, PortSource};
pub use threads::Threads;
pub use wake_up::Bell;

/// The worker of one guest. `B` is the type of its frames' memory.
type GuestWorker<B, HI, HO> = Worker<PortSource<B>, PortSink, HI, HO>;

/// The workers of all guests, and the hub that they share. The type parameters are those of [`Worker`].
pub struct Guests<NI: FrameSource<Buffer: PortBuffer>, NO, HI: FrameSource, HO> {
    hub: Hub<NI, NO>,
    /// The hubs beyond the first whose threads have ended or not begun.
    further: Vec<Further<NI, NO>>,
    /// The last reported counters of the further hubs whose threads did not end.
    lost_hubs: Vec<Readings>,
    /// The processors to which the hubs are bound while they have threads.
    cpus: Vec<u16>,
    /// The workers of guests whose threads have ended or not begun.
    workers: Vec<GuestWorker<NI::Buffer, HI, HO>>,
    /// The guests whose threads did not end: the index of each among all guests, and its last reported
    /// counters.
    lost: Vec<(usize, Reading)>,
    /// Notices about guests for the user that no report has passed on yet.
    lines: Vec<String>,
    config: WorkerConfig,
    times: Times,
    /// The balance of the hub. Each worker has a balance of its own.
    balance: Balance,
}

impl<NI, NO, HI, HO> Guests<NI, NO, HI, HO>
where
    NI: FrameSource<Buffer: PortBuffer>,
    NO: FrameSink,
    HI: FrameSource,
    HO: FrameSink,
{
    /// Puts `switch` between a nic and guests. Port 0 of the switch belongs to the nic, and port `n + 1` to
    /// guest `n`, counted from 0. Every guest's worker gets the same configuration.
    ///
    /// # Errors
    /// The errors of [`Worker::new`], and [`Misfit::Ports`] if the number of ports differs from the number of
    /// devices.
    ///
    /// # Examples
    /// ```
    /// use rxo::switch::{PortSettings, Switch, SwitchOptions, Vlans};
    /// use rxo::worker::Guests;
    /// use rxo::{Duplex, MemoryLink, MemoryOptions, Policy, WorkerConfig};
    ///
    /// let device = || {
    ///     let [from, to] = [MemoryOptions::default(); 2].map(MemoryLink::new);
    ///     Duplex { source: from.source(), sink: to.sink() }
    /// };
    /// let switch = |ports| {
    ///     let settings = PortSettings { vlans: Vlans::Only(0), fixed: None };
    ///     Switch::new(vec![settings; ports], SwitchOptions::default())
    /// };
    /// let config = WorkerConfig::new(Policy::linux_gro());
    /// // A port for the nic, and one for each guest.
    /// assert!(Guests::new(device(), vec![device(), device()], switch(3)?, config.clone()).is_ok());
    /// assert!(Guests::new(device(), vec![device()], switch(3)?, config).is_err());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn new(
        nic: Duplex<NI, NO>,
        guests: Vec<Duplex<HI, HO>>,
        switch: Switch,
        config: WorkerConfig,
    ) -> Result<Self, Misfit> {
        Self::on_queues((nic, Vec::new()), guests, switch, config)
    }

    /// Puts `switch` between several queues of a nic and guests, as [`Guests::new`] does with one. Each queue has a hub,
    /// so only [`Guests::run_on_threads`] runs them.
    ///
    /// # Errors
    /// The errors of [`Guests::new`].
    pub fn on_queues(
        (nic, further): (Duplex<NI, NO>, Vec<Duplex<NI, NO>>),
        guests: Vec<Duplex<HI, HO>>,
        switch: Switch,
        config: WorkerConfig,
    ) -> Result<Self, Misfit> {
        let (ports, devices) = (switch.port_count(), guests.len() + 1);
        if ports != devices {
            return Err(Misfit::Ports { ports, devices });
        }
        // The hub detects standing queues, pauses and reports for all guests, so their workers do not.
        let each = WorkerConfig {
            pause: Pause::NEVER,
            overload: None,
            report_every: None,
            look_every: None,
            desk: None,
            turns: None,
            directions: Directions::Both,
            ..config.clone()
        };
        let capable = (nic.source.capabilities(), nic.sink.capabilities());
        let doors: Vec<_> = (0..=further.len()).map(|_| Arc::<WakeUp>::default()).collect();
        let mut ends: Vec<_> = doors.iter().map(|_| Vec::with_capacity(guests.len())).collect();
        let workers = guests.into_iter().map(|guest| {
            // Creating the memory of many guests takes a while on a busy machine, which must not count as a
            // hang.
            config.count_turn();
            let (of_hubs, source, sink) = port::port(&doors, capable);
            ends.iter_mut().zip(of_hubs).for_each(|(ends, of_hub)| ends.push(of_hub));
            Worker::new(Duplex { source, sink }, guest, each.clone())
        });
        let workers = workers.collect::<Result<_, _>>()?;
        let mut parts =
            switch.for_threads(doors.len()).into_iter().zip(doors.into_iter().zip(ends));
        let mut make = |number, nic: Duplex<NI, NO>| {
            let (switch, ends) = parts.next()?;
            Some(Hub::new((number, (nic.source, nic.sink)), switch, ends, &config))
        };
        let hub = make(0, nic).ok_or(Misfit::Ports { ports, devices })?;
        let further = further.into_iter().enumerate();
        let further = further.filter_map(|(n, nic)| Some(Further::new(make(n + 1, nic)?, &config)));
        let (further, lost_hubs, cpus) = (further.collect(), Vec::new(), Vec::new());
        let (lost, lines) = (Vec::new(), Vec::new());
        let (times, balance) = (Times::default(), Balance::default());
        Ok(Self { hub, further, lost_hubs, cpus, workers, lost, lines, config, times, balance })
    }

    /// Sets the budget of each guest, in the order of the guests. Guests beyond the last budget keep the
    /// default.
    #[must_use]
    pub fn limited(mut self, budgets: &[Budget]) -> Self {
        let meters: Vec<_> = budgets.iter().map(|budget| Meters::new(*budget)).collect();
        let hubs =
            std::iter::once(&mut self.hub).chain(self.further.iter_mut().map(|it| &mut it.hub));
        for hub in hubs {
            let limited = hub.sides.iter_mut().zip(&meters);
            limited.for_each(|(side, meters)| side.limit(meters.clone()));
        }
        self
    }

    /// Binds each hub to a processor while [`Guests::run_on_threads`] runs: the first hub to the first of `cpus`, and so
    /// on. Hubs beyond the last of `cpus` are not bound, nor are the threads of guests.
    #[must_use]
    pub fn on_cpus(mut self, cpus: &[u16]) -> Self {
        self.cpus = cpus.to_vec();
        self
    }

    /// Runs until `stop` is set or the nic fails, as [`Worker::run`] does. Calls `observe` once per
    /// [`WorkerConfig::report_every`].
    ///
    /// # Errors
    /// The first failure of a device, after the guests got everything that was held or queued for them.
    /// Frames for a guest without free space are dropped and counted then. Also if there are several hubs, which need
    /// threads.
    pub fn run<W: Waiter<NI, NO, HI, HO>>(
        &mut self,
        waiter: &mut W,
        stop: &AtomicBool,
        mut observe: impl FnMut(Report<'_, NO, HO>),
    ) -> Result<(), DeviceError> {
        if !self.further.is_empty() {
            let message = "several queues of a nic need threads; call `run_on_threads`";
            return Err(DeviceError::Usage(message.to_owned()));
        }
        looped::run(self, waiter, stop, |guests, due| {
            guests.report(due == Due::Report, &mut observe);
        })
    }

    /// Returns the sources of the nic's queues, and of the guests whose threads have ended, while nothing runs.
    #[cfg(feature = "driver")]
    pub(crate) fn sources(
        &mut self,
    ) -> (impl Iterator<Item = &mut NI>, impl Iterator<Item = &mut HI>) {
        let guests = self.workers.iter_mut().map(|worker| &mut worker.to_nic.source);
        let further = self.further.iter_mut().map(|further| &mut further.hub.source);
        (std::iter::once(&mut self.hub.source).chain(further), guests)
    }

    /// Returns all counters since the workers were created. The `elapsed` and `cpu` times are those of the last
    /// report or, after a run, of its end. For a guest whose thread did not end, returns the last counters that
    /// it reported.
    pub fn reading(&mut self) -> Readings {
        let mut guests: Vec<_> = self.workers.iter_mut().map(Worker::reading).collect();
        // In ascending order, so that each guest finds its place.
        for (n, reading) in &self.lost {
            guests.insert(*n, reading.clone());
        }
        let times = (self.times.elapsed(), self.times.cpu());
        self.hub.complete(&mut guests, times.0);
        let first = self.hub.readings(times, self.balance.found());
        let further = self.further.iter_mut().map(Further::reading);
        let hubs = std::iter::once(first).chain(further).chain(self.lost_hubs.iter().cloned());
        Readings::switched(hubs.collect(), guests)
    }

    /// Calls `observe` now. `is_due` is `true` if the interval between two reports has passed.
    pub fn report(&mut self, is_due: bool, observe: &mut impl FnMut(Report<'_, NO, HO>)) {
        self.hub.read_counts(self.times.now());
        self.check_balance();
        let reading = self.reading();
        let peers_gone = self.hub.sides.iter().map(|side| side.state.gone()).sum();
        observe(Report {
            reading: &reading,
            is_due,
            nic_sink: &mut self.hub.outlet.sink,
            host_sinks: self.workers.iter_mut().map(|w| &mut w.to_host.outlet.sink).collect(),
            lines: std::mem::take(&mut self.lines),
            peers_gone,
        });
    }

    /// Returns the numbers of frames that were put into the queues between threads (lanes), and of frames that
    /// were taken out of a lane or are still in one. Valid only while no other thread uses the lanes.
    fn crossing(&self) -> Stage {
        let mut stage = Stage::default();
        for worker in &self.workers {
            stage.entered += worker.to_nic.outlet.sink.put();
            stage.accounted += worker.to_host.source.accounted();
        }
        let further = self.further.iter().map(|further| &further.hub);
        for side in std::iter::once(&self.hub).chain(further).flat_map(|hub| &hub.sides) {
            stage.entered += side.to_guest.put;
            stage.accounted += side.from_guest.taken + side.from_guest.len() as u64;
        }
        stage
    }
}

impl<NI, NO, HI, HO> Looped<NI, NO, HI, HO> for Guests<NI, NO, HI, HO>
where
    NI: FrameSource<Buffer: PortBuffer>,
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

    /// Receives a batch from the nic, lets every guest's worker run a turn, and passes on the frames that the
    /// guests sent. If one worker fails, the other workers still run their turn.
    fn take_turn<W: Waiter<NI, NO, HI, HO>>(
        &mut self,
        waiter: &mut W,
        awake: Awake,
    ) -> Result<Turn, DeviceError> {
        let received = self.hub.receive(awake.nic, |work| timed(waiter, work));
        let (mut from_host, mut result) = (0, Ok(()));
        for (n, worker) in self.workers.iter_mut().enumerate() {
            let mut awake_here = Awake { nic: true, hosts: 0 };
            awake_here.set_host(0, awake.host(n));
            match worker.turn(|_| waiter.now(), awake_here) {
                Ok(turn) => from_host = turn.from_host.max(from_host),
                Err(error) => result = result.and(Err(error)),
            }
            self.hub.sides[n].state.note_gone(worker.to_nic.source.peers_gone());
        }
        let served = self.hub.serve(self.hub.now());
        let from_nic = received?;
        let from_host = result.and(served)?.max(from_host);
        Ok(Turn { from_nic, from_host, now: waiter.now() })
    }

    fn deadline(&self) -> Option<Instant> {
        let guests = self.workers.iter().filter_map(Looped::deadline);
        guests.chain(self.hub.deadline()).min()
    }

    /// Waits until the nic has frames or free space, or an event occurs for which a guest's worker waits, or
    /// `timeout` has passed.
    fn wait<W: Waiter<NI, NO, HI, HO>>(
        &self,
        waiter: &mut W,
        timeout: Duration,
    ) -> Result<Awake, DeviceError> {
        let hub = &self.hub;
        let mut hosts = [WantedHost::NONE; MAX_PORTS];
        for (wanted, worker) in hosts.iter_mut().zip(&self.workers) {
            *wanted = worker.wanted_host();
        }
        let is_nic_starved = hub.source.is_starved();
        let wanted = Wanted {
            nic_source: (!is_nic_starved).then_some(&hub.source),
            nic_sink: hub.outlet.wanted(),
            hosts: &hosts[..self.workers.len()],
        };
        let is_brief = is_nic_starved || self.workers.iter().any(Worker::waits_for_time);
        let mut awake = wait(waiter, wanted, timeout, is_brief)?;
        awake.nic |= is_nic_starved;
        for (n, worker) in self.workers.iter().enumerate() {
            awake.set_host(n, worker.to_nic.source.is_starved());
        }
        Ok(awake)
    }

    fn judge(&mut self, now: Instant, cpu: Duration) {
        self.workers.iter_mut().for_each(|worker| worker.judge(now, cpu));
    }

    /// Delivers the frames queued for each guest, and drops and counts those for which the guest has no
    /// space. Does not use the nic, which may have failed.
    fn empty_queues<W: Waiter<NI, NO, HI, HO>>(
        &mut self,
        waiter: &mut W,
    ) -> Result<(), DeviceError> {
        let mut result = Ok(());
        for worker in &mut self.workers {
            for _ in 0..port::MOST_FRAMES {
                let given = worker.to_host.turn(true, None, |_| waiter.now());
                result = result.and(given.map(|_| ()));
                let is_empty = worker.to_host.source.poll_at().is_none();
                if is_empty || worker.to_host.outlet.is_blocked() {
                    break;
                }
            }
            worker.to_host.source.clear();
        }
        result
    }

    fn flush(&mut self, now: Instant) -> Result<(), DeviceError> {
        let flushed = all(self.workers.iter_mut().map(|worker| worker.flush(now)));
        self.hub.abandon();
        flushed.and(self.hub.outlet.finish())
    }

    fn check_balance(&mut self) {
        self.workers.iter_mut().for_each(Looped::check_balance);
        let mut snapshot = self.hub.snapshot();
        let are_all_back = self.lost.is_empty() && self.lost_hubs.is_empty();
        let crossing = if are_all_back { self.crossing() } else { Stage::default() };
        snapshot.switch.entered += crossing.entered;
        snapshot.switch.accounted += crossing.accounted;
        self.balance.check(snapshot);
    }

    fn answer(&mut self, question: Question) {
        looped::answer(self, question);
    }
}

impl<NI, NO, HI, HO> Answers for Guests<NI, NO, HI, HO>
where
    NI: FrameSource<Buffer: PortBuffer>,
    NO: FrameSink,
    HI: FrameSource,
    HO: FrameSink,
{
    fn readings(&mut self) -> Readings {
        self.reading()
    }

    fn policies(&self) -> Vec<PolicyInForce> {
        self.workers.iter().map(Worker::policy).collect()
    }

    fn change_policy(&mut self, policy: Policy) -> Result<Moment, Misfit> {
        let carried: Vec<_> =
            self.workers.iter().map(|worker| worker.carried(policy)).collect::<Result<_, _>>()?;
        self.config.engine.policy = policy;
        let moments = self.workers.iter_mut().zip(carried).map(|(it, own)| it.follow(own));
        Ok(Moment::together(moments))
    }

    fn coalesce(&mut self, when: Option<Coalesce>) -> Moment {
        Moment::together(self.workers.iter_mut().map(|worker| worker.coalesce(when)))
    }

    fn report_every(&mut self, time: Option<Duration>) -> Result<(), Misfit> {
        self.times.report_every(time)
    }
}

/// Returns the first error of all results.
fn all(results: impl Iterator<Item = Result<(), DeviceError>>) -> Result<(), DeviceError> {
    results.fold(Ok(()), Result::and)
}

#[cfg(test)]
mod tests;
