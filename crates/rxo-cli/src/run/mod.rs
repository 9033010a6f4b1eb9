//! `rxo run`: a worker between two devices until it is told to stop.
//!
//! The flags become a [`plan`]; the [`survey`] looks at what the plan names; [`carry`] fits the
//! policy to the sink; what is in force is the [`configuration`]. Only then is anything opened.
//! While it runs, readings become [`figures`], and these lines of text by [`show`].

mod acks;
mod carry;
mod configuration;
mod figures;
mod impair;
mod kernel_gro;
mod plan;
mod show;
mod split;
mod survey;
mod tap;

use std::sync::atomic::{AtomicBool, Ordering};

use anyhow::{Error, Result};
use rxo::live::{Device, DeviceOptions, Event, Middleware, Outcome};
use rxo::{Config, LinkKind, Reading, WorkerConfig};
use rxo_device::middleware::{Impairment, ImpairmentSettings};

use self::configuration::Configuration;
use self::figures::Figures;
use self::kernel_gro::KernelGroOff;
use self::plan::Plan;
use self::survey::Survey;
use self::tap::Capture;
use crate::exit::usage;
use crate::flags::RunFlags;
use crate::{output, stop};

/// Runs until a signal, and prints the totals; or only checks, on a dry run.
///
/// # Errors
/// When the plan cannot be, a device cannot be opened, or one fails while in use.
pub(crate) fn command(flags: &RunFlags) -> Result<()> {
    let mut plan = Plan::from_flags(flags)?;
    let survey = Survey::of(&plan)?;
    let sink = plan.host.to_string();
    plan.policy = carry::carried(plan.policy, &sink, survey.sink())?;
    let configuration = Configuration::new(&plan, survey);
    if flags.dry_run {
        return print(&plan, &configuration, Configuration::text, output::json_document);
    }
    // From here on a signal asks for an end instead of making one.
    let stop = stop::on_request()?;
    let options = DeviceOptions { bring_up: true, ..DeviceOptions::default() };
    let made = DeviceOptions { mtu: Some(survey.mtu), ..options };
    let nic = Device::open(&plan.nic, if survey.makes_nic { made } else { options })?;
    let host = Device::open(&plan.host, if survey.makes_host { made } else { options })?;
    let gro = KernelGroOff::on(&plan.nic);
    print(&plan, &configuration, Configuration::line, output::json_line)?;
    let capture =
        plan.tap.as_deref().map(|path| Capture::begin(path, (&plan.nic, &plan.host), survey.link));
    let capture = capture.transpose()?;
    let middleware = middleware(&plan, survey.link, capture.as_ref())?;
    let outcome = work(&plan, (nic, host), middleware, &stop)?;
    drop(gro);
    print(&plan, &Figures::totals(&outcome.totals), show::totals, output::json_line)?;
    capture.as_ref().map_or(Ok(()), Capture::finish)?;
    Ok(outcome.result?)
}

/// What the plan puts between the devices and the worker; `None` for nothing at all.
fn middleware(
    plan: &Plan,
    link: LinkKind,
    capture: Option<&Capture>,
) -> Result<Option<Middleware>> {
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

/// The worker, and its lines while it runs.
fn work(
    plan: &Plan,
    devices: (Device, Device),
    middleware: Option<Middleware>,
    stop: &AtomicBool,
) -> Result<Outcome> {
    let engine = Config { trust_checksums: plan.trust_checksums, ..Config::new(plan.policy) };
    let config = WorkerConfig {
        engine,
        report_every: plan.stats,
        ack_split: plan.ack_split,
        ..WorkerConfig::new(plan.policy)
    };
    let mut last = Reading::default();
    let mut unread: Option<Error> = None;
    let observe = |event: Event<'_>| {
        let printed = match event {
            Event::Notice(line) => {
                output::note(&line);
                Ok(())
            }
            Event::Reading(reading) => {
                let figures = Figures::between(&last, reading);
                last = reading.clone();
                print(plan, &figures, show::line, output::json_line)
            }
        };
        // Nobody reads any more: that is an end like any other.
        if let Err(error) = printed {
            unread = Some(error);
            stop.store(true, Ordering::Relaxed);
        }
    };
    let outcome = match middleware {
        None => rxo::live::run(devices.0, devices.1, config, stop, observe),
        Some(middleware) => rxo::live::run_through(devices, middleware, config, stop, observe),
    };
    let outcome =
        outcome.map_err(|misfit| usage(format!("{} and {}: {misfit}", plan.nic, plan.host)))?;
    unread.map_or(Ok(outcome), Err)
}

/// Says `value` as the user wants it: as text, or as JSON.
fn print<T>(
    plan: &Plan,
    value: &T,
    as_text: impl FnOnce(&T) -> String,
    as_json: impl FnOnce(&T) -> Result<()>,
) -> Result<()> {
    if plan.json { as_json(value) } else { output::text(&as_text(value)) }
}
