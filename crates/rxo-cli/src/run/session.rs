//! The worker's process: opens the devices, carries frames, and prints statistics.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use anyhow::{Context, Result};
use rxo::figures::Readings;
use rxo::live::{self, Card, Device, Event, Middleware, Outcome, Remains, Station};
use rxo::{LinkKind, WorkerConfig};
use rxo_confine::Confinement;
use rxo_console::log::{self, Level};
use rxo_device::DeviceError;
use rxo_device::middleware::{Impairment, ImpairmentSettings};
use rxo_driver::custody::{self, Begun, Control, WaitingSuccessor};
use rxo_driver::succession::Handover;
use rxo_driver::{
    DeviceHandle, GUEST_FILES, Heartbeat, Interface, Origin, bind_to_cpu, set_nice, wait,
};
use rxo_frame::Instant;

use super::configuration::Configuration;
use super::devices::{Devices, Handles};
use super::guest::switch;
use super::opening::Opening;
use super::plan::Plan;
use super::reload::{FileOfRun, Reloader};
use super::remote::Remote;
use super::reporter::{Form, Reporter};
use super::succession::Claim;
use super::survey::Survey;
use crate::control::{Process, Sockets};
use crate::exit::usage;
use crate::tap::Capture;
use crate::workers::Workers;
use crate::{files, output, sandbox};

/// A session of a run before its devices are opened: all decisions that were made so far.
#[derive(Debug)]
pub(super) struct Session {
    pub(super) plan: Plan,
    pub(super) file: Option<FileOfRun>,
    pub(super) survey: Survey,
    pub(super) configuration: Configuration,
    pub(super) heartbeat: Heartbeat,
    /// The claim to the devices of another process; `None` for the first process of the run.
    pub(super) claim: Option<Claim>,
}

impl Session {
    /// Works until `stop` is set, and prints the totals.
    ///
    /// # Errors
    /// If a device cannot be opened, or fails while in use.
    pub(super) fn work(
        mut self,
        keeper: &mut Control,
        sockets: Sockets,
        stop: &Arc<AtomicBool>,
    ) -> Result<()> {
        // Held until everything is given back: a persistent TAP changes when its last handle closes.
        let held = Handles::of(&self.plan, &self.survey)?;
        allow_files(self.plan.guests.len());
        let devices = held.open(&self.plan, &self.survey)?;
        self.work_with((held, devices), keeper, (sockets, stop))
    }

    /// Works as [`Session::work`] does, with devices that are open.
    ///
    /// # Errors
    /// The errors of [`Session::work`].
    pub(super) fn work_with(
        &mut self,
        (held, devices): (Handles, Devices),
        keeper: &mut Control,
        (sockets, stop): (Sockets, &Arc<AtomicBool>),
    ) -> Result<()> {
        // Everything that may be refused comes before the first change.
        let capture = self.capture(devices.link())?;
        self.configuration.opened(devices.access(&self.plan));
        let worked = match self.begin(&held, keeper)? {
            Some(Begun { closed_at, is_recorded }) => {
                if self.plan.upgrade.is_some() {
                    keeper.hand_over(self.handover(&held, &sockets).context("--upgrade")?);
                }
                self.confine(keeper, is_recorded)?;
                // The workers of a switch between guests answer together.
                let asked = if self.plan.guests.is_empty() { self.survey.workers.count } else { 1 };
                let remote = Remote::new(&self.plan, asked, self.heartbeat);
                let confirmer = self.plan.confirm.map(|_| keeper.confirmer()).transpose()?;
                let mut process = remote.process(&self.plan, confirmer);
                if let Some(file) = self.file.clone() {
                    let reloader = Reloader::new(file, self.survey.clone(), remote.clone());
                    process.reload = Some(reloader.follow(keeper.reloads()?)?);
                }
                let outcome = (capture, (sockets, process));
                self.carry((devices, &held, remote), outcome, closed_at, (keeper, stop))
            }
            None => {
                drop(devices);
                Ok(None)
            }
        };
        let _until_given_back = self.plan.take_over.then_some(held);
        keeper.closed().iter().for_each(|line| output::note(line));
        worked?.map_or(Ok(()), |ended| ended.print())
    }

    /// Makes the keeper prepare the interfaces. If this process has taken over from another process, the
    /// interfaces are prepared already. Returns `None` if the keeper has ended or refuses the run.
    fn begin(&self, held: &Handles, keeper: &mut Control) -> Result<Option<Begun>> {
        if self.claim.is_some() {
            return Ok(Some(Begun { closed_at: Instant::ZERO, is_recorded: true }));
        }
        let tap = self.tap()?.zip(held.hosts.first().and_then(|host| host.kept()));
        Ok(keeper.opened(tap)?)
    }

    /// Returns the descriptors with which a successor takes over the devices and sockets of this process.
    fn handover(&self, held: &Handles, sockets: &Sockets) -> io::Result<Handover> {
        let mut handover = held.hand_over(&self.plan)?;
        handover.devices.extend(sockets.files()?);
        Ok(handover)
    }

    /// Gives up the privileges that carrying frames does not need. Must come before the first thread is
    /// started, so that no thread keeps more privileges. Then starts threads, such as that of the log.
    fn confine(&mut self, keeper: &mut Control, is_recorded: bool) -> Result<()> {
        // A process that hands over must open the nic again if no other process takes over.
        let reopens = self.plan.wait_for_nic || self.plan.upgrade.is_some();
        let needs = if reopens || !is_recorded {
            Confinement::worker_that_reopens(custody::folders())
        } else {
            keeper.leave_to_restorer();
            Confinement::worker()
        };
        let devices = || self.plan.hosts().into_iter().chain([&self.plan.nic]);
        let needs = needs.with_connections(devices().any(sandbox::connects));
        let needs = needs.with_programs(devices().any(sandbox::attaches_programs));
        let refused =
            self.plan.nice.and_then(|nice| self.set_nice(nice).err().map(|error| (nice, error)));
        let in_force = self.plan.sandbox.confine(needs)?;
        log::begin(self.plan.log, &self.plan.nic.to_string())?;
        if let Some((nice, error)) = refused {
            let remedy = "other processes may delay frames; CAP_SYS_NICE or --nice keep";
            log::write(Level::Notice, &format!("--nice {nice} is refused ({error}): {remedy}"));
            self.configuration.remove_nice();
        }
        sandbox::warn_of_gaps(&in_force);
        self.configuration.confined(&in_force);
        Ok(keeper.listen()?)
    }

    /// Sets the nice value of this thread, which carries frames or starts the workers that do. The other
    /// threads of this process inherit the value too, but they do little work.
    fn set_nice(&self, nice: i8) -> io::Result<()> {
        set_nice(nice, self.survey.workers.are_several())
    }

    /// Binds this thread to its processor if it is the only worker. Several workers bind themselves, and so do those of
    /// guests, whose threads must not be bound with them.
    fn bind(&self) -> Result<()> {
        let binds = !self.survey.workers.are_several() && self.plan.guests.is_empty();
        match self.survey.workers.cpus.first() {
            Some(cpu) if binds => bind_to_cpu(*cpu)
                .with_context(|| format!("--cpus {cpu}: this process may not use it")),
            _ => Ok(()),
        }
    }

    /// Returns the index of the host's interface if rxo creates that interface; otherwise `None`.
    fn tap(&self) -> Result<Option<u32>> {
        let host = &self.plan.host;
        let is_made = host.kind().interface == Some(Origin::Made);
        let index = || Ok(Interface::find(host.name())?.index()?.unsigned_abs());
        is_made.then(index).transpose()
    }

    const fn form(&self) -> Form {
        match (self.plan.json, self.plan.card) {
            (true, _) => Form::Json,
            (false, None) => Form::Run,
            (false, Some(_)) => Form::Card,
        }
    }

    fn capture(&self, link: LinkKind) -> Result<Option<Capture>> {
        let Self { plan, .. } = self;
        let devices: Vec<_> = std::iter::once(&plan.nic).chain(plan.hosts()).collect();
        let begin = |path| match self.claim {
            None => Capture::begin(path, &devices, link),
            Some(_) => Capture::begin_beside(path, &devices, link),
        };
        plan.tap.as_deref().map(begin).transpose()
    }

    /// Forwards frames until the end of the run. The devices are closed when this returns.
    fn carry(
        &mut self,
        (mut devices, held, remote): (Devices, &Handles, Remote),
        (capture, (sockets, process)): (Option<Capture>, (Sockets, Process)),
        mut closed_at: Instant,
        (control, stop): (&mut Control, &Arc<AtomicBool>),
    ) -> Result<Option<Ended>> {
        let names = self.plan.guests.iter().map(|guest| guest.name.clone()).collect();
        let about = (self.plan.nic.to_string(), names);
        let mut reporter = Reporter::start(self.form(), about, Arc::clone(stop))?;
        let line = reporter.first_line(&self.configuration)?;
        let mut opening = Some(Opening { claim: self.claim.take(), sockets, process, line });
        // The sockets are served until this is dropped.
        let mut served = None;
        // Threads that print and answer are not bound.
        self.bind()?;
        loop {
            devices.discard_before(closed_at);
            let ready = |reporter: &Reporter| {
                let Some(opening) = opening.take() else { return };
                let done = opening.complete((held, &self.plan), control, reporter);
                stop.fetch_or(done.is_err(), Ordering::Relaxed);
                served = Some(done);
            };
            let plan = (&self.plan, &self.survey.workers, &remote);
            let (last, result, remains) =
                work(plan, devices, capture.as_ref(), stop, (&mut reporter, ready))?;
            if let Some(Err(error)) = served.take_if(|served| served.is_err()) {
                return Err(error);
            }
            let successor = control.successor().filter(|_| result.is_ok());
            let handed_over = successor.map(|successor| self.leave_to(successor, held));
            if let Some(Ok(())) = handed_over {
                end_at_once(Ended { reporter, capture, last, result });
            }
            // After the handover, because nobody reads while memory is freed.
            drop(remains);
            if let Some(Err(error)) = handed_over {
                reporter.notice(format!("handed nothing over ({error}); goes on"));
                reporter.part_ended(&last);
                remote.part_ended(&last);
                control.withdraw_stop();
                // What has arrived meanwhile waits in the devices.
                (devices, closed_at) = (held.reopen()?, Instant::ZERO);
                continue;
            }
            if !self.waits_after(&result, control) {
                return Ok(Some(Ended { reporter, capture, last, result }));
            }
            reporter.part_ended(&last);
            remote.part_ended(&last);
            if !control.nic_is_gone() {
                return Ok(None);
            }
            let Some(index) = self.nic_again(&held.hosts, &reporter, stop)? else {
                let last = Readings::default();
                return Ok(Some(Ended { reporter, capture, last, result: Ok(()) }));
            };
            devices = held.reopen()?;
            let Some(at) = control.nic_is_back(index)? else { return Ok(None) };
            closed_at = at;
        }
    }

    /// Hands the positions of the devices, which the workers have left, over to `successor`.
    ///
    /// # Errors
    /// If the successor does not continue with the devices.
    fn leave_to(&self, mut successor: WaitingSuccessor, held: &Handles) -> io::Result<()> {
        let beat = || _ = self.heartbeat.turns().fetch_add(1, Ordering::Relaxed);
        held.positions(&self.plan)?.leave_to(&mut successor.socket, beat)
    }

    /// Returns `true` if the nic was deleted and the run must wait for a new one.
    fn waits_after(&self, result: &Result<(), DeviceError>, control: &Control) -> bool {
        let is_gone = matches!(result, Err(DeviceError::Gone(_)));
        self.plan.wait_for_nic && is_gone && control.has_lost_nic()
    }

    /// Waits for a new interface with the nic's name, sets its MTU and brings it up. Meanwhile, answers the
    /// vhost-user messages of the guests. Returns the interface's index; `None` after a request to end.
    fn nic_again(
        &self,
        hosts: &[Box<dyn DeviceHandle>],
        reporter: &Reporter,
        stop: &AtomicBool,
    ) -> Result<Option<u32>> {
        let name = self.plan.nic.name();
        reporter.notice(format!("{} has gone; waiting for another `{name}`", self.plan.nic));
        while !stop.load(Ordering::Relaxed) {
            if let Ok(interface) = Interface::find(name) {
                if interface.mtu()? != self.survey.mtu {
                    interface.set_mtu(self.survey.mtu)?;
                }
                interface.set_up(true)?;
                reporter.notice(format!("{} is back", self.plan.nic));
                return Ok(Some(interface.index()?.unsigned_abs()));
            }
            hosts.iter().for_each(|host| host.attend());
            wait::pause(CHECK_INTERVAL);
        }
        Ok(None)
    }
}

/// Time between two checks for a deleted nic. The time is short, because a starting guest sends some forty
/// messages and waits for the reply to each.
const CHECK_INTERVAL: Duration = Duration::from_millis(10);

/// The output of a run, and its counters, after the devices were closed.
#[derive(Debug)]
struct Ended {
    reporter: Reporter,
    capture: Option<Capture>,
    /// The counters of the last part of the run, since the nic last came back.
    last: Readings,
    result: Result<(), DeviceError>,
}

impl Ended {
    fn print(self) -> Result<()> {
        let Self { reporter, capture, last, result } = self;
        reporter.totals(&last)?;
        capture.as_ref().map_or(Ok(()), Capture::finish)?;
        Ok(result?)
    }
}

/// Prints the totals and ends this process. Does not close anything in order, because shutting down a socket
/// would also affect the process that took the socket over.
fn end_at_once(ended: Ended) -> ! {
    if let Err(error) = ended.print() {
        output::note(&format!("{error:#}"));
    }
    std::process::exit(0)
}

/// Makes the middleware between devices and workers; `None` if the plan needs none.
fn middleware(
    plan: &Plan,
    link: LinkKind,
    capture: Option<&Capture>,
) -> Result<Option<Middleware>> {
    let impairment = |settings: Option<ImpairmentSettings>| {
        settings.map(|settings| Impairment::new(settings, link)).transpose()
    };
    let middleware = Middleware {
        logs: capture.map(|capture| capture.points.clone()).unwrap_or_default(),
        impair_nic: impairment(plan.impair[0])?,
        impair_host: impairment(plan.impair[1])?,
    };
    let is_any = capture.is_some() || plan.impair.iter().any(Option::is_some);
    Ok(is_any.then_some(middleware))
}

/// The counters of a part of the run, its result, and the memory of its workers.
type Part = (Readings, Result<(), DeviceError>, Remains);

/// Runs the workers between the nic and its hosts, and prints their lines. Calls `ready` before the first frame.
fn work(
    (plan, workers, remote): (&Plan, &Workers, &Remote),
    devices: Devices,
    capture: Option<&Capture>,
    stop: &AtomicBool,
    (reporter, mut ready): (&mut Reporter, impl FnMut(&Reporter)),
) -> Result<Part> {
    let config = config(plan, remote);
    let link = devices.link();
    let mut last = Readings::default();
    let observe = |event: Event<'_>| match event {
        Event::Ready => ready(reporter),
        Event::Notice(line) => reporter.notice(line),
        Event::Reading(readings) => reporter.interval(&mut last, readings.clone()),
    };
    let through = |station: Station| -> Result<Station> {
        Ok(match middleware(plan, link, capture)? {
            None => station,
            Some(middleware) => station.through(middleware),
        })
    };
    let outcome = match devices {
        Devices::Of1(nic, hosts) => {
            let Some(station) = station(plan, config, (*nic, hosts))? else {
                return Ok((Readings::default(), Ok(()), Remains::default()));
            };
            through(station.on_cpus(&workers.cpus))?.run_keeping(stop, observe)
        }
        Devices::OfSeveral(queues, guests) if !plan.guests.is_empty() => {
            let mut queues = queues.into_iter();
            let first = queues.next().map(|nic| station(plan, config, (nic, guests)));
            let Some(station) = first.transpose()?.flatten() else {
                return Ok((Readings::default(), Ok(()), Remains::default()));
            };
            let station = station.with_queues(queues.collect()).on_cpus(&workers.cpus);
            through(station)?.run_keeping(stop, observe)
        }
        Devices::OfSeveral(nic, host) => {
            let all = live::Workers::new((nic, host), config, remote.crew()).on_cpus(&workers.cpus);
            let all = match capture.map(|capture| capture.points.as_slice()) {
                Some([nic, host, ..]) => all.logged(nic, host),
                _ => all,
            };
            all.run_keeping(stop, observe)
        }
    };
    let (Outcome { totals, result }, remains) = outcome.map_err(|misfit| {
        usage(match plan.guests.is_empty() {
            true => format!("{} and {}: {misfit}", plan.nic, plan.host),
            false => format!("{}: {misfit}", plan.nic),
        })
    })?;
    Ok((totals, result, remains))
}

/// Creates the station (workers between devices) that the plan describes; `None` if there is no host.
fn station(
    plan: &Plan,
    config: WorkerConfig,
    (nic, mut hosts): (Device, Vec<Device>),
) -> Result<Option<Station>> {
    if !plan.guests.is_empty() {
        let budgets = plan.guests.iter().map(|guest| guest.budget).collect();
        let station = Station::switched(nic, hosts, switch(&plan.guests)?, config);
        return Ok(Some(station.limited(budgets)));
    }
    Ok(hosts.pop().map(|host| match plan.card {
        Some(card) => {
            let (validates, expands) = (card.validates(), card.expands());
            let (report_every, desk) = (config.report_every, config.desk);
            let card = Card { validates, expands, report_every, desk, turns: config.turns };
            Station::card(nic, host, card)
        }
        None => Station::new(nic, host, config),
    }))
}

/// Creates the configuration of the next worker. The configuration includes all changes that requests have made
/// since the plan was made.
fn config(plan: &Plan, remote: &Remote) -> WorkerConfig {
    let policy = remote.policy();
    let mut config = WorkerConfig::new(policy);
    config.engine.trust_checksums = plan.trust_checksums;
    WorkerConfig {
        report_every: remote.stats(),
        ack_split: plan.ack_split,
        coalesce: remote.coalesce(),
        desk: Some(remote.crew().desk(0)),
        turns: Some(remote.turns()),
        ..config
    }
}

/// Raises the limit of open files to the number of files that `guests` guests could need. The default of most
/// systems, 1,024, is too low for 24 guests with eight pairs of queues each.
pub(super) fn allow_files(guests: usize) {
    let wanted = if guests == 0 { 0 } else { guests * GUEST_FILES + OTHER_FILES };
    if let Some(most) = files::allow(wanted as u64) {
        output::note(&format!(
            "{most} open files are allowed and {guests} guests can need {wanted}: some may be refused; raise the \
             hard limit (`ulimit -Hn`, LimitNOFILE= in a unit of systemd)"
        ));
    }
}

/// Number of open files in addition to the files of guests: the nic, sockets of control and metrics, captures,
/// standard streams.
const OTHER_FILES: usize = 128;
