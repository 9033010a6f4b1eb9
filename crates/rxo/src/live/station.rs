//! A station: the devices of a run, what is around them, and the workers between them.

use std::sync::atomic::{AtomicBool, AtomicU64};
use std::time::Duration;

use rxo_ack::expand_packed;
use rxo_coalesce::Policy;
use rxo_device::DeviceError;
use rxo_device::middleware::Expand;
use rxo_driver::on_wire;

use super::middleware::{Ends, ends, wrap};
use super::notices::Notices;
use super::{Device, Middleware, SystemWaiter};
use crate::desk::Desk;
use crate::switch::Switch;
use crate::worker::{Guests, Misfit, Pause, Question, Readings, Report, Worker, WorkerConfig};

/// The argument of an observer of a run.
#[derive(Debug)]
pub enum Event<'a> {
    /// The counters, once in an interval.
    Reading(&'a Readings),
    /// One line that the user should see once.
    Notice(String),
}

/// How a run ended.
#[derive(Debug)]
pub struct Outcome {
    /// All counters at the end.
    pub totals: Readings,
    /// The failure that ended it; `Ok` if it was stopped.
    pub result: Result<(), DeviceError>,
}

/// The devices of a run and the configuration of its workers.
///
/// # Examples
/// Until another thread sets `stop`:
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
    hosts: Hosts,
    config: WorkerConfig,
}

/// What a card does beside moving frames.
#[derive(Clone, Debug)]
pub struct Card {
    /// Whether it validates the checksums of frames for the guest.
    pub validates: bool,
    /// Whether it expands ACK templates of the guest. Its device must offer that.
    pub expands: bool,
    /// Time between two calls of the observer with readings, at least 1 ms; `None` for no calls.
    pub report_every: Option<Duration>,
    /// Where it is asked while it runs.
    pub desk: Option<Desk<Question>>,
    /// Where it counts its turns, as in [`WorkerConfig::turns`].
    pub turns: Option<&'static AtomicU64>,
}

#[derive(Debug)]
enum Hosts {
    One(Box<Ends>),
    /// Those behind a switch.
    Guests(Box<Switch>, Vec<Ends>),
}

impl Station {
    /// Makes a station between a nic and a host.
    #[must_use]
    pub fn new(nic: Device, host: Device, config: WorkerConfig) -> Self {
        Self { nic: ends(nic, None), hosts: Hosts::One(Box::new(ends(host, None))), config }
    }

    /// Makes a station that plays a network card between a wire and a guest. What the peers leave to their devices is done
    /// here: in both directions GSO frames of TCP are segmented and partial checksums completed; ACK templates of the
    /// guest are expanded. Nothing is coalesced, and nothing is dropped but what a ring cannot hold and what says that it
    /// is a template and is none.
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
        // The peer's own card validates what it gets.
        let expand = card.expands.then_some(expand_packed as Expand);
        let guest = Device { source: on_wire(guest.source, false, expand), ..guest };
        Self::new(Device { source: from_wire, ..wire }, guest, config)
    }

    /// Makes a station with a switch between a nic and guests. Its port 0 is the nic's.
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
        Self { nic: ends(nic, None), hosts: Hosts::Guests(Box::new(switch), guests), config }
    }

    /// Puts middleware around the devices. It copies every frame once, even if it impairs nothing.
    #[must_use]
    pub fn through(self, middleware: Middleware) -> Self {
        let Middleware { logs, impair_nic, impair_host } = middleware;
        let mut logs = logs.into_iter();
        let nic = wrap(self.nic, impair_nic, logs.next());
        let mut around = |host| wrap(host, impair_host.clone(), logs.next());
        let hosts = match self.hosts {
            Hosts::One(host) => Hosts::One(Box::new(around(*host))),
            Hosts::Guests(switch, guests) => {
                Hosts::Guests(switch, guests.into_iter().map(around).collect())
            }
        };
        Self { nic, hosts, config: self.config }
    }

    /// Runs the workers on this thread until `stop` is set or a device fails.
    ///
    /// # Errors
    /// [`Misfit`] before the first frame is taken; a device's later failure is in the [`Outcome`], beside the totals.
    pub fn run(
        self,
        stop: &AtomicBool,
        mut observe: impl FnMut(Event<'_>),
    ) -> Result<Outcome, Misfit> {
        self.run_observed(stop, &mut observe)
    }

    /// Runs as [`Station::run`] says. It is compiled here, once, and not again for each caller's closure, which would bring
    /// the worker and the engine along.
    fn run_observed(self, stop: &AtomicBool, observe: Observer<'_>) -> Result<Outcome, Misfit> {
        let Self { nic, hosts, config } = self;
        // Notices are asked for even if no readings are wanted, or few.
        let config = WorkerConfig { look_every: Some(NOTICES_EVERY), ..config };
        let (mut waiter, mut notices) = (SystemWaiter::new(), Notices::default());
        match hosts {
            Hosts::One(host) => {
                let mut worker = Worker::new(nic, *host, config)?;
                let result =
                    worker.run(&mut waiter, stop, |report| notices.report(report, observe));
                let totals = worker.reading().into();
                let (mut nic, mut host) = worker.into_devices();
                notices.last(&totals, &mut nic.sink, [&mut host.sink], observe);
                Ok(Outcome { totals, result })
            }
            Hosts::Guests(switch, guests) => {
                let mut guests = Guests::new(nic, guests, *switch, config)?;
                let result =
                    guests.run(&mut waiter, stop, |report| notices.report(report, observe));
                let totals = guests.reading();
                guests.report(false, &mut |Report { nic_sink, host_sinks, .. }| {
                    notices.last(&totals, nic_sink, host_sinks, observe);
                });
                Ok(Outcome { totals, result })
            }
        }
    }
}

/// An observer of a run.
pub(super) type Observer<'o> = &'o mut dyn FnMut(Event<'_>);

/// How often the devices are asked for notices, at least.
const NOTICES_EVERY: Duration = Duration::from_secs(1);
