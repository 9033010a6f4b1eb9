//! Guests: a nic shared by several guests.
//!
//! ```text
//!  nic.source --> switch --queue--> engine --deliveries--> guest's sink      one engine, queue and
//!  nic.sink   <-- switch <--------------------------------- guest's source   worker for each guest
//! ```
//!
//! Each guest has its own [`Worker`] between a port of the switch and the guest's device, so that neither
//! polls nor a full device of one guest affect another. All run on one thread. In a turn, the `hub` receives
//! a batch from the nic and distributes it; then every worker has its turn.
//!
//! # Contract
//! The contract of the worker, for each guest. A guest that does not read its frames loses those that exceed
//! its queue, which are counted as `ring_drops` of its reading, and delays nobody. A full nic stops all
//! guests from sending, even to each other, because they share its queue.

mod hub;
mod port;
mod queue;

use std::cell::RefCell;
use std::rc::Rc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use rxo_coalesce::Policy;
use rxo_device::{DeviceError, FrameSink, FrameSource};
use rxo_frame::Instant;

use super::balance::Balance;
use super::looped::{self, Looped};
use super::next::Turn;
use super::reading::{Due, Times};
use super::waiter::{timed, wait};
use super::{
    Awake, Coalesce, Directions, Duplex, Misfit, Moment, PolicyInForce, Reading, Readings, Report,
    Waiter, Wanted, WantedHost, Worker, WorkerConfig,
};
use crate::switch::{MAX_PORTS, Port, Switch};

use hub::Hub;

pub use port::{PortSink, PortSource};

/// The worker of one guest.
type GuestWorker<NI, NO, HI, HO> = Worker<PortSource<NI, NO>, PortSink<NI, NO>, HI, HO>;

/// The workers of all guests, and their shared hub. The parameters are those of [`Worker`].
pub struct Guests<NI: FrameSource<Buffer: From<Vec<u8>>>, NO: FrameSink, HI: FrameSource, HO> {
    hub: Rc<RefCell<Hub<NI, NO>>>,
    workers: Vec<GuestWorker<NI, NO, HI, HO>>,
    /// For each guest how often its machine had gone, when the switch forgot it last.
    forgotten: Vec<u64>,
    config: WorkerConfig,
    times: Times,
    /// The balance of the hub; each worker has its own.
    balance: Balance,
}

impl<NI, NO, HI, HO> Guests<NI, NO, HI, HO>
where
    NI: FrameSource<Buffer: From<Vec<u8>>>,
    NO: FrameSink,
    HI: FrameSource,
    HO: FrameSink,
{
    /// Creates a `switch` between a nic and guests. Port 0 of the switch is the nic's; guest `n`, counted
    /// from 0, has port `n + 1`. Every guest's worker gets the same configuration.
    ///
    /// # Errors
    /// Returns the errors of [`Worker::new`], and an error if the switch does not have one port for each
    /// device.
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
        let (ports, devices) = (switch.port_count(), guests.len() + 1);
        if ports != devices {
            return Err(Misfit::Ports { ports, devices });
        }
        let hub = Hub::new((nic.source, nic.sink), switch, &config);
        let hub = Rc::new(RefCell::new(hub));
        // The hub detects overload for all guests, and reports cover all of them.
        let each = WorkerConfig {
            overload: None,
            report_every: None,
            look_every: None,
            desk: None,
            turns: None,
            directions: Directions::Both,
            ..config.clone()
        };
        let workers = guests.into_iter().enumerate().map(|(n, guest)| {
            let (source, sink) = port::ends(&hub, Port::new(n + 1));
            Worker::new(Duplex { source, sink }, guest, each.clone())
        });
        let workers: Vec<_> = workers.collect::<Result<_, _>>()?;
        let (times, balance) = (Times::default(), Balance::default());
        let forgotten = vec![0; workers.len()];
        Ok(Self { hub, workers, forgotten, config, times, balance })
    }

    /// Runs until `stop` is set or the nic fails, as [`Worker::run`] does. Calls `observe` once per
    /// [`WorkerConfig::report_every`].
    ///
    /// # Errors
    /// The first failure of a device, after the guests got everything that was held or queued for them.
    /// Frames for a full guest are then dropped and counted.
    pub fn run<W: Waiter<NI, NO, HI, HO>>(
        &mut self,
        waiter: &mut W,
        stop: &AtomicBool,
        mut observe: impl FnMut(Report<'_, NO, HO>),
    ) -> Result<(), DeviceError> {
        looped::run(self, waiter, stop, |guests, due| {
            guests.report(due == Due::Report, &mut observe);
        })
    }

    /// Returns all counters since the workers were created. The times are those of the last report or of the
    /// end.
    pub fn reading(&mut self) -> Readings {
        let (elapsed, cpu) = (self.times.elapsed(), self.times.cpu());
        let guests = self.workers.iter_mut().map(|worker| {
            let mut reading = worker.reading();
            (reading.elapsed, reading.cpu) = (elapsed, cpu);
            reading
        });
        let guests = guests.collect();
        let hub = &mut *self.hub.borrow_mut();
        let (nic_in, not_scheduled) = hub.ring.counters(&mut hub.source);
        let of_hub = Reading {
            elapsed,
            cpu,
            nic_in,
            nic_out: hub.outlet.sink.counters(),
            overload: hub.overload_drops,
            not_scheduled,
            unaccounted: hub.account.unaccounted,
            unsent: hub.sendings.unsent,
            imbalance: self.balance.found(),
            ..Reading::default()
        };
        Readings::switched(of_hub, guests, *hub.switch.counters())
    }

    /// Calls `observe` now; `is_due` is `true` if the interval between two reports has passed.
    pub fn report(&mut self, is_due: bool, observe: &mut impl FnMut(Report<'_, NO, HO>)) {
        {
            let (hub, now) = (&mut *self.hub.borrow_mut(), self.times.now());
            hub.account.open(&mut hub.source);
            hub.sendings.look(now, &mut hub.outlet.sink);
        }
        self.check_balance();
        let reading = self.reading();
        observe(Report {
            reading: &reading,
            is_due,
            nic_sink: &mut self.hub.borrow_mut().outlet.sink,
            host_sinks: self.workers.iter_mut().map(|w| &mut w.to_host.outlet.sink).collect(),
        });
    }
}

impl<NI, NO, HI, HO> Looped<NI, NO, HI, HO> for Guests<NI, NO, HI, HO>
where
    NI: FrameSource<Buffer: From<Vec<u8>>>,
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

    /// Receives a batch from the nic, and processes the packets of every guest. If one guest's device fails,
    /// the others are still served.
    fn take_turn<W: Waiter<NI, NO, HI, HO>>(
        &mut self,
        waiter: &mut W,
        awake: Awake,
    ) -> Result<Turn, DeviceError> {
        let received = self.hub.borrow_mut().receive(awake.nic, |work| timed(waiter, work));
        let (mut from_host, mut result) = (0, Ok(()));
        for (n, worker) in self.workers.iter_mut().enumerate() {
            let mut awake_here = Awake { nic: true, hosts: 0 };
            awake_here.set_host(0, awake.host(n));
            match worker.turn(|_| waiter.now(), awake_here) {
                Ok(turn) => from_host = turn.from_host.max(from_host),
                Err(error) => result = result.and(Err(error)),
            }
            let hub = &mut *self.hub.borrow_mut();
            hub.queues[n].set_blocked(worker.to_host.outlet.is_blocked());
            let gone = worker.to_nic.source.peers_gone();
            if std::mem::replace(&mut self.forgotten[n], gone) != gone {
                hub.switch.forget(Port::new(n + 1));
            }
        }
        let from_nic = received?;
        result?;
        Ok(Turn { from_nic, from_host, now: waiter.now() })
    }

    fn deadline(&self) -> Option<Instant> {
        let guests = self.workers.iter().filter_map(Looped::deadline);
        let nic = self.hub.borrow().source.poll_at();
        guests.chain(nic).min()
    }

    /// Waits for frames from the nic, and for the next event that each guest needs.
    fn wait<W: Waiter<NI, NO, HI, HO>>(
        &self,
        waiter: &mut W,
        timeout: Duration,
    ) -> Result<Awake, DeviceError> {
        let hub = self.hub.borrow();
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

    /// Delivers the queued frames of each guest, then drops and counts those that a full guest did not
    /// accept. Works even if the nic has failed.
    fn empty_queues<W: Waiter<NI, NO, HI, HO>>(
        &mut self,
        waiter: &mut W,
    ) -> Result<(), DeviceError> {
        let mut result = Ok(());
        for (n, worker) in self.workers.iter_mut().enumerate() {
            for _ in 0..queue::MOST_FRAMES {
                let given = worker.to_host.turn(true, None, |_| waiter.now());
                result = result.and(given.map(|_| ()));
                if self.hub.borrow().queues[n].is_empty() || worker.to_host.outlet.is_blocked() {
                    break;
                }
            }
            self.hub.borrow_mut().queues[n].clear();
        }
        result
    }

    fn flush(&mut self, now: Instant) -> Result<(), DeviceError> {
        let flushed = all(self.workers.iter_mut().map(|worker| worker.flush(now)));
        flushed.and(self.hub.borrow_mut().outlet.finish())
    }

    fn check_balance(&mut self) {
        let mut sent = 0;
        for worker in &mut self.workers {
            worker.check_balance();
            sent += worker.to_nic.source.counters().frames;
        }
        self.balance.check(self.hub.borrow_mut().snapshot(sent));
    }

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
        Ok(together(moments))
    }

    fn coalesce(&mut self, when: Option<Coalesce>) -> Moment {
        together(self.workers.iter_mut().map(|worker| worker.coalesce(when)))
    }
}

/// Returns when changes take effect at all guests.
fn together(moments: impl Iterator<Item = Moment>) -> Moment {
    match moments.filter(|moment| *moment != Moment::NextTurn).count() {
        0 => Moment::NextTurn,
        waiting => Moment::WhenThereIsRoom(waiting),
    }
}

/// Returns the first error; all results are evaluated.
fn all(results: impl Iterator<Item = Result<(), DeviceError>>) -> Result<(), DeviceError> {
    results.fold(Ok(()), Result::and)
}
