//! Notices: messages for the user about violated invariants (alarms), changes of coalescing, and devices.

use std::iter::from_fn;

use super::alarm::{Alarm, Violations};
use super::middleware::{LiveSink, notice};
use super::station::{Event, Observer};
use super::switched::Switched;
use crate::worker::{Readings, Report};

/// The state of alarms and coalescing that was last reported to the user.
#[derive(Debug, Default)]
pub(super) struct Notices {
    alarm: Alarm,
    /// The last reported state of coalescing, for the host or for each guest or worker.
    switched: Vec<Switched>,
}

impl Notices {
    /// Passes to `observe` the notices that are due and, if a report is due, the counters.
    pub(super) fn report(&mut self, report: Report<'_, LiveSink, LiveSink>, observe: Observer<'_>) {
        let Report { reading: readings, is_due, nic_sink, host_sinks, lines, .. } = report;
        self.of_counters(readings, observe);
        of_devices(nic_sink, host_sinks, observe);
        lines.into_iter().for_each(|line| observe(Event::Notice(line)));
        if is_due {
            observe(Event::Reading(readings));
        }
    }

    /// Passes to `observe` the notices that follow from the counters: alarms and changes of coalescing.
    pub(super) fn of_counters(&mut self, readings: &Readings, observe: Observer<'_>) {
        let alarms = self.alarm.lines(readings.all.elapsed, Violations::of(&readings.all));
        alarms.for_each(|line| observe(Event::Notice(line)));
        self.switched_lines(readings).for_each(|line| observe(Event::Notice(line)));
    }

    /// Passes to `observe`, at the end of a run, the notices that were not reported yet.
    pub(super) fn last<'k>(
        &mut self,
        totals: &Readings,
        nic: &mut LiveSink,
        hosts: impl IntoIterator<Item = &'k mut LiveSink>,
        observe: Observer<'_>,
    ) {
        self.last_of_counters(totals, observe);
        of_devices(nic, hosts, observe);
    }

    /// Passes to `observe`, at the end of a run, the notices that follow from the counters and were not
    /// reported yet.
    pub(super) fn last_of_counters(&mut self, totals: &Readings, observe: Observer<'_>) {
        let alarms = self.alarm.last(Violations::of(&totals.all));
        alarms.for_each(|line| observe(Event::Notice(line)));
    }

    fn switched_lines(&mut self, readings: &Readings) -> impl Iterator<Item = String> {
        let Readings { all, guests, workers, .. } = readings;
        // With guests each of them coalesces; the workers do not.
        let (what, parts) = match guests.as_slice() {
            [] => ("worker", workers.as_slice()),
            guests => ("guest", guests),
        };
        let count = parts.len();
        let hosts = if parts.is_empty() { std::slice::from_ref(all) } else { parts };
        self.switched.resize_with(hosts.len(), Switched::default);
        self.switched.iter_mut().zip(hosts).enumerate().filter_map(move |(n, (switched, host))| {
            let line = switched.line(&host.coalescing)?;
            Some(match count {
                0 => line.to_owned(),
                _ => format!("{what} {} of {count}: {line}", n + 1),
            })
        })
    }
}

/// Passes to `observe` the notices of the devices, such as that an interface went down.
pub(super) fn of_devices<'k>(
    nic: &mut LiveSink,
    hosts: impl IntoIterator<Item = &'k mut LiveSink>,
    observe: Observer<'_>,
) {
    let hosts = hosts.into_iter().flat_map(|sink| from_fn(|| notice(sink)));
    from_fn(|| notice(nic)).chain(hosts).for_each(|line| observe(Event::Notice(line)));
}
