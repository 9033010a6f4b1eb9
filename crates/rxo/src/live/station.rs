//! Station: the devices of a run, the middleware around them, and the workers between them.

use std::any::Any;
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64};
use std::time::Duration;

use rxo_ack::expand_packed;
use rxo_coalesce::Policy;
use rxo_device::DeviceError;
use rxo_device::middleware::Expand;
use rxo_driver::{Bell, CpuSet, bind_to_cpu, on_wire};

use super::middleware::{Ends, LiveSink, ends, notice, wrap};
use super::notices::Notices;
use super::workers::cannot_bind;
use super::{Device, Middleware, SystemWaiter};
use crate::desk::Desk;
use crate::switch::Switch;
use crate::worker::{
    Budget, Guests, Misfit, Pause, Question, Readings, Report, Threads, Worker, WorkerConfig,
};

/// An event of a run, for its observer.
#[derive(Debug)]
pub enum Event<'a> {
    /// The run is prepared. The first frame is received once the observer has returned.
    Ready,
    /// The counters of the run, once per interval.
    Reading(&'a Readings),
    /// A message for the user. Each message is passed once.
    Notice(String),
}

/// The result of a run that has ended.
#[derive(Debug)]
pub struct Outcome {
    /// The counters of the run at its end.
    pub totals: Readings,
    /// The failure that ended the run; `Ok` if it was stopped.
    pub result: Result<(), DeviceError>,
}

/// The memory of workers that have ended, with the devices that they have [left](rxo_driver::SystemSource::leave).
///
/// Freeing this memory takes milliseconds. A process that hands its devices over to another process should do
/// that before it drops this value. A process that opens the devices again must drop this value first.
#[derive(Default)]
pub struct Remains(pub(super) Vec<Box<dyn Any + Send>>);

impl fmt::Debug for Remains {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Remains({})", self.0.len())
    }
}

/// The devices of a run and the configuration of its workers.
///
/// # Examples
/// Runs until another thread sets `stop`:
/// ```no_run
/// use std::sync::atomic::AtomicBool;
///
/// use rxo::driver::{Device, DeviceOptions};
/// use rxo::live::Station;
/// use rxo::{Policy, WorkerConfig};
///
/// let open = |name: &str| Device::open(&name.parse()?, DeviceOptions::default());
/// let (nic, host) = (open("packet:eth1")?, open("tap:rxo0")?);
/// let station = Station::new(nic, host, WorkerConfig::new(Policy::linux_gro()));
/// let stop = AtomicBool::new(false);
/// station.run(&stop, |_event| {})?.result?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct Station {
    nic: Ends,
    /// The queues of the nic beyond the first; empty unless there are guests.
    further: Vec<Ends>,
    hosts: Hosts,
    config: WorkerConfig,
    /// The processors of the threads that serve the queues of a nic for guests.
    cpus: Vec<u16>,
}

/// The settings of a station that acts as a network card; see [`Station::card`].
#[derive(Clone, Debug)]
pub struct Card {
    /// `true` if the card validates the checksums of frames for the guest.
    pub validates: bool,
    /// `true` if the card expands ACK templates of the guest. The guest's device must offer ACK templates.
    pub expands: bool,
    /// The interval between two readings for the observer, at least 1 ms; `None` for no readings.
    pub report_every: Option<Duration>,
    /// The desk at which other threads ask the card questions while it runs; `None` if no thread asks.
    pub desk: Option<Desk<Question>>,
    /// The counter of the card's turns, as in [`WorkerConfig::turns`]; `None` if no process watches it.
    pub turns: Option<&'static AtomicU64>,
}

#[derive(Debug)]
enum Hosts {
    One(Box<Ends>),
    /// Guests behind a switch, and the budget of each.
    Guests(Box<Switch>, Vec<Ends>, Vec<Budget>),
}

impl Station {
    /// Creates a station between a nic and a host.
    #[must_use]
    pub fn new(nic: Device, host: Device, config: WorkerConfig) -> Self {
        let hosts = Hosts::One(Box::new(ends(host, None)));
        Self { nic: ends(nic, None), further: Vec::new(), hosts, config, cpus: Vec::new() }
    }

    /// Creates a station that acts as a network card between a wire and a guest. The station does the work that
    /// the wire's peer and the guest leave to their devices: in both directions it segments TCP GSO frames and
    /// completes partial checksums, and it expands ACK templates of the guest. It does not coalesce. It drops
    /// only packets for which a ring has no space, and invalid ACK templates.
    #[must_use]
    pub fn card(wire: Device, guest: Device, card: Card) -> Self {
        let config = WorkerConfig {
            pause: Pause::NEVER,
            overload: None,
            report_every: card.report_every,
            desk: card.desk,
            turns: card.turns,
            ..WorkerConfig::new(Policy::none())
        };
        let from_wire = on_wire(wire.source, card.validates, None);
        // The peer's own card validates the frames that it receives.
        let expand = card.expands.then_some(expand_packed as Expand);
        let guest = Device { source: on_wire(guest.source, false, expand), ..guest };
        Self::new(Device { source: from_wire, ..wire }, guest, config)
    }

    /// Creates a station with a switch between a nic and guests. Port 0 of the switch belongs to the nic.
    /// Each guest has a thread of its own while the station runs.
    ///
    /// # Examples
    /// ```no_run
    /// use std::sync::atomic::AtomicBool;
    ///
    /// use rxo::driver::{Device, DeviceOptions};
    /// use rxo::live::Station;
    /// use rxo::switch::{PortSettings, Switch, SwitchOptions, Vlans};
    /// use rxo::{Policy, WorkerConfig};
    ///
    /// let open = |name: &str| Device::open(&name.parse()?, DeviceOptions::default());
    /// let guests = vec![open("tap:guest0")?, open("tap:guest1")?];
    /// let settings = PortSettings { vlans: Vlans::Only(0), fixed: None };
    /// let switch = Switch::new(vec![settings; 3], SwitchOptions::default())?;
    /// let config = WorkerConfig::new(Policy::linux_gro());
    /// let station = Station::switched(open("packet:eth1")?, guests, switch, config);
    /// station.run(&AtomicBool::new(false), |_event| {})?.result?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn switched(
        nic: Device,
        guests: Vec<Device>,
        switch: Switch,
        config: WorkerConfig,
    ) -> Self {
        let guests = guests.into_iter().map(|guest| ends(guest, None)).collect();
        let hosts = Hosts::Guests(Box::new(switch), guests, Vec::new());
        Self { nic: ends(nic, None), further: Vec::new(), hosts, config, cpus: Vec::new() }
    }

    /// Adds further queues of the nic to a station with guests. Each has a thread of its own while the station runs; the
    /// frames of a flow pass one of them. Has no effect on a station without guests.
    #[must_use]
    pub fn with_queues(self, further: Vec<Device>) -> Self {
        let further = further.into_iter().map(|queue| ends(queue, None)).collect();
        Self { further, ..self }
    }

    /// Binds the threads of a station with guests that serve the nic's queues to processors: the first to the first of
    /// `cpus`, and so on. Threads of guests are not bound.
    #[must_use]
    pub fn on_cpus(self, cpus: &[u16]) -> Self {
        Self { cpus: cpus.to_vec(), ..self }
    }

    /// Sets the budget of each guest, in the order of the guests. Has no effect on a station without guests.
    #[must_use]
    pub fn limited(mut self, limits: Vec<Budget>) -> Self {
        if let Hosts::Guests(_, _, budgets) = &mut self.hosts {
            *budgets = limits;
        }
        self
    }

    /// Adds middleware around the devices. Each frame is then copied once, even if nothing is impaired.
    #[must_use]
    pub fn through(self, middleware: Middleware) -> Self {
        let Middleware { logs, impair_nic, impair_host } = middleware;
        let mut logs = logs.into_iter();
        let of_nic = logs.next();
        let queue = |nic| wrap(nic, impair_nic.clone(), of_nic.clone());
        let (nic, further) = (queue(self.nic), self.further.into_iter().map(queue).collect());
        let mut around = |host| wrap(host, impair_host.clone(), logs.next());
        let hosts = match self.hosts {
            Hosts::One(host) => Hosts::One(Box::new(around(*host))),
            Hosts::Guests(switch, guests, budgets) => {
                Hosts::Guests(switch, guests.into_iter().map(around).collect(), budgets)
            }
        };
        Self { nic, further, hosts, config: self.config, cpus: self.cpus }
    }

    /// Runs the worker, or the hub of the guests, on this thread until `stop` is set or a device fails.
    ///
    /// # Errors
    /// [`Misfit`] before the first frame is received; a later failure of a device is in the [`Outcome`],
    /// together with the totals.
    pub fn run(self, stop: &AtomicBool, observe: impl FnMut(Event<'_>)) -> Result<Outcome, Misfit> {
        self.run_keeping(stop, observe).map(|(outcome, _)| outcome)
    }

    /// Runs as [`Station::run`] does, and returns the memory of the workers too. The positions of the devices
    /// can be read ([`DeviceHandle::position`](rxo_driver::DeviceHandle::position)) until that memory is
    /// dropped.
    ///
    /// # Errors
    /// Returns the errors of [`Station::run`].
    pub fn run_keeping(
        self,
        stop: &AtomicBool,
        mut observe: impl FnMut(Event<'_>),
    ) -> Result<(Outcome, Remains), Misfit> {
        self.run_observed(stop, &mut observe)
    }

    /// Runs the station for [`Station::run_keeping`]. Takes the closure as a trait object, so that the worker and the
    /// engine are compiled once and not again for each caller's closure type.
    fn run_observed(
        self,
        stop: &AtomicBool,
        observe: Observer<'_>,
    ) -> Result<(Outcome, Remains), Misfit> {
        let Self { nic, further, hosts, config, cpus } = self;
        // Notices are collected even if no readings are wanted, or only few.
        let config = WorkerConfig { look_every: Some(NOTICES_EVERY), ..config };
        let (mut waiter, mut notices) = (SystemWaiter::new(), Notices::default());
        match hosts {
            Hosts::One(host) => {
                let mut worker = Box::new(Worker::new(nic, *host, config)?);
                observe(Event::Ready);
                let result =
                    worker.run(&mut waiter, stop, |report| notices.report(report, observe));
                let totals = worker.reading().into();
                let (nic, host) = worker.devices();
                notices.last(&totals, nic.sink, [host.sink], observe);
                [nic.source, host.source].into_iter().for_each(|source| source.leave());
                Ok((Outcome { totals, result }, Remains(vec![worker])))
            }
            Hosts::Guests(switch, guests, budgets) => {
                let guests = Guests::on_queues((nic, further), guests, *switch, config)?;
                let mut guests = Box::new(guests.limited(&budgets).on_cpus(&cpus));
                observe(Event::Ready);
                let report = |report: Report<'_, _, _>| notices.report(report, observe);
                // A later run of this thread would start its guests' threads where this one is bound.
                let before = CpuSet::of_this_thread().ok().filter(|_| !cpus.is_empty());
                let result = guests.run_on_threads(&mut waiter, stop, &THREADS, report);
                before.inspect(|set| _ = set.apply());
                let totals = guests.reading();
                guests.report(false, &mut |Report { nic_sink, host_sinks, lines, .. }| {
                    lines.into_iter().for_each(|line| observe(Event::Notice(line)));
                    notices.last(&totals, nic_sink, host_sinks, observe);
                });
                let (queues, hosts) = guests.sources();
                queues.chain(hosts).for_each(|source| source.leave());
                Ok((Outcome { totals, result }, Remains(vec![guests])))
            }
        }
    }
}

/// The functions with which the threads of guests and of the switch use the system: clock, wake-up, processor, and
/// notices of a guest's device.
const THREADS: Threads<SystemWaiter, LiveSink> = Threads {
    waiter: SystemWaiter::new,
    bind: |cpu| bind_to_cpu(cpu).map_err(|error| cannot_bind(cpu, error)),
    bell: || Bell::new().map(|bell| Arc::new(bell) as Arc<dyn crate::worker::Bell>),
    notice,
};

impl crate::worker::Bell for Bell {
    fn ring(&self) {
        Self::ring(self);
    }

    fn clear(&self) {
        Self::clear(self);
    }
}

/// An observer of a run.
pub(super) type Observer<'o> = &'o mut dyn FnMut(Event<'_>);

/// Maximum interval between two checks of the devices for notices.
pub(super) const NOTICES_EVERY: Duration = Duration::from_secs(1);
