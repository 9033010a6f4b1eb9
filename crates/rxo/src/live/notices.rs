//! Notices: the lines that the user should see: alarms, changes of coalescing, and messages of devices.

use std::iter::from_fn;

use super::alarm::{Alarm, Violations};
use super::middleware::{LiveSink, notice};
use super::station::{Event, Observer};
use super::switched::Switched;
use crate::worker::{Readings, Report};

/// The lines that were already reported.
#[derive(Debug, Default)]
pub(super) struct Notices {
    alarm: Alarm,
    /// The state of coalescing that was reported, for the host or for each guest.
    switched: Vec<Switched>,
}

impl Notices {
    /// Gives `observe` the lines that are due, and the reading if it is due.
    pub(super) fn report(&mut self, report: Report<'_, LiveSink, LiveSink>, observe: Observer<'_>) {
        let Report { reading: readings, is_due, nic_sink, host_sinks, lines, .. } = report;
        let alarms = self.alarm.lines(readings.all.elapsed, Violations::of(&readings.all));
        alarms.for_each(|line| observe(Event::Notice(line)));
        self.switched_lines(readings).for_each(|line| observe(Event::Notice(line)));
        of_devices(nic_sink, host_sinks, observe);
        lines.into_iter().for_each(|line| observe(Event::Notice(line)));
        if is_due {
            observe(Event::Reading(readings));
        }
    }

    /// Passes lines that were not reported yet to `observe`, at the end.
    pub(super) fn last<'k>(
        &mut self,
        totals: &Readings,
        nic: &mut LiveSink,
        hosts: impl IntoIterator<Item = &'k mut LiveSink>,
        observe: Observer<'_>,
    ) {
        let alarms = self.alarm.last(Violations::of(&totals.all));
        alarms.for_each(|line| observe(Event::Notice(line)));
        of_devices(nic, hosts, observe);
    }

    fn switched_lines(&mut self, readings: &Readings) -> impl Iterator<Item = String> {
        let Readings { all, guests, .. } = readings;
        let count = guests.len();
        let hosts = if guests.is_empty() { std::slice::from_ref(all) } else { guests };
        self.switched.resize_with(hosts.len(), Switched::default);
        self.switched.iter_mut().zip(hosts).enumerate().filter_map(move |(n, (switched, host))| {
            let line = switched.line(&host.coalescing)?;
            Some(match count {
                0 => line.to_owned(),
                _ => format!("guest {} of {count}: {line}", n + 1),
            })
        })
    }
}

fn of_devices<'k>(
    nic: &mut LiveSink,
    hosts: impl IntoIterator<Item = &'k mut LiveSink>,
    observe: Observer<'_>,
) {
    let hosts = hosts.into_iter().flat_map(|sink| from_fn(|| notice(sink)));
    from_fn(|| notice(nic)).chain(hosts).for_each(|line| observe(Event::Notice(line)));
}
