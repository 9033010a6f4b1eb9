//! The worker of several guests, between devices of the system.

use std::iter::from_fn;
use std::sync::atomic::AtomicBool;

use rxo_device::{Descriptors, DeviceError, FrameSink, FrameSource};

use super::alarm::{Alarm, Violations};
#[cfg(feature = "capture")]
use super::middleware::{FileLog, wrap};
use super::switched::Switched;
use super::{Device, Notices, SystemWaiter, ends, on_a_system};
use crate::switch::Switch;
use crate::worker::{Duplex, Guests, GuestsReading, GuestsReport, Misfit, WorkerConfig};

/// What an observer of [`run_guests`] is told.
#[derive(Debug)]
pub enum GuestsEvent<'a> {
    /// The counters, once in an interval.
    Reading(&'a GuestsReading),
    /// One line that the user should see once.
    Notice(String),
}

/// How a run of guests ended.
#[derive(Debug)]
pub struct GuestsOutcome {
    /// All counters at the end.
    pub totals: GuestsReading,
    /// The failure that ended it; `Ok` if it was stopped.
    pub result: Result<(), DeviceError>,
}

/// Runs a switch between a nic and guests on this thread until `stop` is set or the nic fails. Its port 0
/// is the nic's.
///
/// # Errors
/// [`Misfit`] before the first frame is taken; a device's later failure is in the [`GuestsOutcome`].
///
/// # Examples
/// Until another thread sets `stop`:
/// ```no_run
/// use std::sync::atomic::AtomicBool;
///
/// use rxo::driver::{Device, DeviceOptions};
/// use rxo::switch::{PortSettings, Switch, SwitchOptions, Vlans};
/// use rxo::{Policy, WorkerConfig, live};
///
/// let open = |name: &str| Device::open(&name.parse()?, DeviceOptions::default());
/// let guests = vec![open("tap:guest0")?, open("tap:guest1")?];
/// let settings = PortSettings { vlans: Vlans::Only(0), fixed: None };
/// let switch = Switch::new(vec![settings; 3], SwitchOptions::default())?;
/// let config = WorkerConfig::new(Policy::linux_gro());
/// let stop = AtomicBool::new(false);
/// let nic = open("packet:eth1")?;
/// live::run_guests(nic, guests, (switch, config), &stop, |_event| {})?.result?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn run_guests(
    nic: Device,
    guests: Vec<Device>,
    switch: (Switch, WorkerConfig),
    stop: &AtomicBool,
    mut observe: impl FnMut(GuestsEvent<'_>),
) -> Result<GuestsOutcome, Misfit> {
    run_observed(nic, guests, switch, stop, &mut observe)
}

/// An observer of a run with guests.
type Observer<'o> = &'o mut dyn FnMut(GuestsEvent<'_>);

fn run_observed(
    nic: Device,
    guests: Vec<Device>,
    switch: (Switch, WorkerConfig),
    stop: &AtomicBool,
    observe: Observer<'_>,
) -> Result<GuestsOutcome, Misfit> {
    let guests = guests.into_iter().map(ends).collect();
    among(ends(nic), guests, switch, stop, observe)
}

/// As [`run_guests`], with a log of what each device gives and takes; the nic's is the first.
///
/// # Errors
/// As [`run_guests`].
#[cfg(feature = "capture")]
pub fn run_guests_logged(
    devices: (Device, Vec<Device>),
    switch: (Switch, WorkerConfig),
    logs: Vec<FileLog>,
    stop: &AtomicBool,
    mut observe: impl FnMut(GuestsEvent<'_>),
) -> Result<GuestsOutcome, Misfit> {
    run_logged(devices, switch, logs, stop, &mut observe)
}

#[cfg(feature = "capture")]
fn run_logged(
    (nic, guests): (Device, Vec<Device>),
    switch: (Switch, WorkerConfig),
    logs: Vec<FileLog>,
    stop: &AtomicBool,
    observe: Observer<'_>,
) -> Result<GuestsOutcome, Misfit> {
    let mut logs = logs.into_iter();
    let nic = wrap(ends(nic), (None, logs.next()));
    let guests = guests.into_iter().map(|guest| wrap(ends(guest), (None, logs.next()))).collect();
    among(nic, guests, switch, stop, observe)
}

fn among<NI, NO, HI, HO>(
    nic: Duplex<NI, NO>,
    guests: Vec<Duplex<HI, HO>>,
    (switch, config): (Switch, WorkerConfig),
    stop: &AtomicBool,
    observe: Observer<'_>,
) -> Result<GuestsOutcome, Misfit>
where
    NI: FrameSource<Buffer: From<Vec<u8>>> + Descriptors,
    NO: FrameSink + Notices + Descriptors,
    HI: FrameSource + Descriptors,
    HO: FrameSink + Notices + Descriptors,
{
    let mut switched = vec![Switched::default(); guests.len()];
    let mut workers = Guests::new(nic, guests, switch, on_a_system(config))?;
    let mut alarm = Alarm::default();
    let result = workers.run(&mut SystemWaiter::new(), stop, |report| {
        let (reading, is_due) = (report.reading, report.is_due);
        let alarms = alarm.lines(reading.elapsed, Violations::of_guests(reading));
        let coalescing = switched.iter_mut().zip(&reading.guests).enumerate();
        let coalescing = coalescing.filter_map(|(n, (switched, guest))| {
            let line = switched.line(&guest.coalescing)?;
            Some(format!("guest {} of {}: {line}", n + 1, reading.guests.len()))
        });
        alarms
            .chain(coalescing)
            .chain(notices(report))
            .for_each(|line| observe(GuestsEvent::Notice(line)));
        if is_due {
            observe(GuestsEvent::Reading(reading));
        }
    });
    workers.report(false, &mut |report| {
        notices(report).for_each(|line| observe(GuestsEvent::Notice(line)));
    });
    let totals = workers.reading();
    let alarms = alarm.last(Violations::of_guests(&totals));
    alarms.for_each(|line| observe(GuestsEvent::Notice(line)));
    Ok(GuestsOutcome { totals, result })
}

/// What the sinks have to say.
fn notices<NO: Notices, HO: Notices>(
    GuestsReport { nic_sink, guest_sinks, .. }: GuestsReport<'_, NO, HO>,
) -> impl Iterator<Item = String> {
    let of_guests = guest_sinks.into_iter().flat_map(|sink| from_fn(|| sink.notice()));
    from_fn(|| nic_sink.notice()).chain(of_guests)
}
