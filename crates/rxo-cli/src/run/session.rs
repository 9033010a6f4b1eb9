//! The worker's process: opens the devices, carries frames, prints figures.

use std::fs::File;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use anyhow::Result;
use rxo::live::{Card, Device, DeviceOptions, Event, Middleware, Outcome};
use rxo::tracer::TracePoint;
use rxo::{Config, LinkKind, Reading, WorkerConfig};
use rxo_device::middleware::{Impairment, ImpairmentSettings};
use rxo_device::{DeviceError, FrameSource as _};
use rxo_driver::{DeviceHandle, Interface, Origin, wait};
use rxo_frame::Instant;

use super::card::CardPlan;
use super::channel::{Control, Order, Report};
use super::configuration::Configuration;
use super::custody::{Custody, TapBefore};
use super::figures::Figures;
use super::plan::Plan;
use super::say::{Form, Sayer};
use super::survey::Survey;
use super::tap::Capture;
use crate::exit::usage;
use crate::output;

/// Everything decided before the devices are opened.
#[derive(Debug)]
pub(super) struct Session {
    pub(super) plan: Plan,
    pub(super) survey: Survey,
    pub(super) configuration: Configuration,
    pub(super) custody: Custody,
}

/// The open devices, and what holds each: the host's outlives a nic that goes and comes.
#[derive(Debug)]
struct Devices {
    nic: Device,
    host: Device,
    held: [Box<dyn DeviceHandle>; 2],
}

/// How long to wait at the end for a slow reader of standard output.
const PATIENCE: Duration = Duration::from_secs(5);

impl Session {
    /// Works until `stop` is set, and prints the totals.
    ///
    /// # Errors
    /// If a device cannot be opened, or fails while in use.
    pub(super) fn work(mut self, control: &Control, stop: &Arc<AtomicBool>) -> Result<()> {
        let devices = self.open()?;
        let tap = self.tap_before()?;
        // Whatever can be refused is refused before anything is changed.
        let capture = self.capture(devices.nic.source.capabilities().link)?;
        let index = tap.as_ref().map_or(0, TapBefore::index);
        let worked = match control.report(Report::Opened(index)) {
            Some(Order::Begin(closed_at)) => {
                self.carry(devices, capture, closed_at, (control, stop))
            }
            // The keeper says why, or is gone.
            _ => {
                drop(devices);
                Ok(None)
            }
        };
        if control.report(Report::Closed).is_none() {
            self.custody.give_back(tap.as_ref()).iter().for_each(|line| output::note(line));
        }
        match worked? {
            Some(ended) => ended.say(PATIENCE),
            None => Ok(()),
        }
    }

    fn open(&self) -> Result<Devices> {
        let Self { plan, survey, .. } = self;
        let made = |makes: bool| DeviceOptions {
            mtu: makes.then_some(survey.mtu),
            // One that takes over is switched on when it has the nic's hardware address.
            bring_up: !plan.take_over,
            guest: plan.card.map(CardPlan::guest).unwrap_or_default(),
            ..DeviceOptions::default()
        };
        let held_nic = plan.nic.attach()?;
        let nic = held_nic.open(made(survey.makes_nic))?;
        let held_host = plan.host.attach()?;
        let host = held_host.open(made(survey.makes_host))?;
        Ok(Devices { nic, host, held: [held_nic, held_host] })
    }

    /// The host's interface as it is before the run changes it, if rxo makes it.
    fn tap_before(&self) -> Result<Option<TapBefore>> {
        let host = &self.plan.host;
        if host.kind().interface != Some(Origin::Made) {
            return Ok(None);
        }
        let index = Interface::find(host.name())?.index()?.unsigned_abs();
        TapBefore::read(index, !self.survey.makes_host).map(Some)
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
        let begin = |path| Capture::begin(path, (&plan.nic, &plan.host), link);
        plan.tap.as_deref().map(begin).transpose()
    }

    /// Carries frames until the end. The devices are closed when this returns.
    fn carry(
        &mut self,
        devices: Devices,
        capture: Option<Capture>,
        mut closed_at: Instant,
        (control, stop): (&Control, &Arc<AtomicBool>),
    ) -> Result<Option<Ended>> {
        let Devices { mut nic, mut host, held } = devices;
        let mut sayer = Sayer::start(self.form(), Arc::clone(stop))?;
        sayer.configuration(&self.configuration)?;
        loop {
            nic.source.discard_before(closed_at);
            let link = nic.source.capabilities().link;
            let middleware = middleware(&self.plan, link, capture.as_ref())?;
            let outcome = work(&self.plan, (nic, host), middleware, stop, &mut sayer)?;
            if !self.waits_after(&outcome) {
                let Outcome { totals: last, result } = outcome;
                return Ok(Some(Ended { sayer, capture, last, result }));
            }
            sayer.part_ended(&outcome.totals);
            let Some(again) = self.nic_again(&sayer, stop)? else {
                let last = Reading::default();
                return Ok(Some(Ended { sayer, capture, last, result: Ok(()) }));
            };
            nic = held[0].open(DeviceOptions::default())?;
            host = held[1].open(DeviceOptions::default())?;
            self.custody.succeed(again)?;
            let Some(Order::Begin(at)) = control.report(Report::NicIsBack(again)) else {
                // The keeper says why, or is gone.
                return Ok(None);
            };
            closed_at = at;
        }
    }

    /// Whether the nic was deleted and must be waited for.
    fn waits_after(&self, outcome: &Outcome) -> bool {
        let is_gone = matches!(outcome.result, Err(DeviceError::Gone(_)));
        self.plan.wait_for_nic && is_gone && self.custody.has_lost_nic()
    }

    /// Waits for another interface of the nic's name, sets its MTU and brings it up. Returns its index;
    /// `None` after a request to end.
    fn nic_again(&self, sayer: &Sayer, stop: &AtomicBool) -> Result<Option<u32>> {
        let name = self.plan.nic.name();
        sayer.notice(format!("{} has gone; waiting for another `{name}`", self.plan.nic));
        while !stop.load(Ordering::Relaxed) {
            if let Ok(interface) = Interface::find(name) {
                if interface.mtu()? != self.survey.mtu {
                    interface.set_mtu(self.survey.mtu)?;
                }
                interface.set_up(true)?;
                sayer.notice(format!("{} is back", self.plan.nic));
                return Ok(Some(interface.index()?.unsigned_abs()));
            }
            wait::pause(BETWEEN_LOOKS);
        }
        Ok(None)
    }
}

/// The time between two looks for a nic that was deleted.
const BETWEEN_LOOKS: Duration = Duration::from_millis(100);

/// The output that is left when the devices are closed.
#[derive(Debug)]
struct Ended {
    sayer: Sayer,
    capture: Option<Capture>,
    /// The counters of the last part.
    last: Reading,
    result: Result<(), DeviceError>,
}

impl Ended {
    fn say(self, patience: Duration) -> Result<()> {
        let Self { sayer, capture, last, result } = self;
        sayer.totals(&last, patience)?;
        capture.as_ref().map_or(Ok(()), Capture::finish)?;
        Ok(result?)
    }
}

/// Middleware that traces to a file.
type Trace = Middleware<TracePoint<File>>;

/// The middleware between the devices and the worker; `None` if the plan has none.
fn middleware(plan: &Plan, link: LinkKind, capture: Option<&Capture>) -> Result<Option<Trace>> {
    let impairment = |settings: Option<ImpairmentSettings>| {
        settings.map(|settings| Impairment::new(settings, link)).transpose()
    };
    let middleware = Middleware {
        trace_nic: capture.map(|capture| capture.nic.clone()),
        trace_host: capture.map(|capture| capture.host.clone()),
        impair_nic: impairment(plan.impair[0])?,
        impair_host: impairment(plan.impair[1])?,
    };
    let is_any = capture.is_some() || plan.impair.iter().any(Option::is_some);
    Ok(is_any.then_some(middleware))
}

/// Runs the worker and prints its lines.
fn work(
    plan: &Plan,
    (nic, host): (Device, Device),
    middleware: Option<Trace>,
    stop: &AtomicBool,
    sayer: &mut Sayer,
) -> Result<Outcome> {
    let engine = Config { trust_checksums: plan.trust_checksums, ..Config::new(plan.policy) };
    let config = WorkerConfig {
        engine,
        report_every: plan.stats,
        ack_split: plan.ack_split,
        ..WorkerConfig::new(plan.policy)
    };
    let mut last = Reading::default();
    let observe = |event: Event<'_>| match event {
        Event::Notice(line) => sayer.notice(line),
        Event::Reading(reading) => {
            sayer.interval(Figures::between(&last, reading));
            last = reading.clone();
        }
    };
    let devices = (nic, host);
    let outcome = match (plan.card, middleware) {
        (Some(card), _) => {
            let card = Card { validates: card.validates(), report_every: plan.stats };
            rxo::live::run_card(devices, card, stop, observe)
        }
        (None, None) => rxo::live::run(devices.0, devices.1, config, stop, observe),
        (None, Some(middleware)) => {
            rxo::live::run_through(devices, middleware, config, stop, observe)
        }
    };
    outcome.map_err(|misfit| usage(format!("{} and {}: {misfit}", plan.nic, plan.host)))
}
