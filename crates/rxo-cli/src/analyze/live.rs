//! `rxo analyze --live`: studies what an interface receives, for a limited time.
//!
//! A packet socket receives a copy of each frame. Nothing about the interface changes, and the host's stack
//! receives as before. Memory is bounded: the socket's ring has [`RING_BYTES`], and the study needs no more
//! memory than a study of captures. If frames arrive faster than they can be studied, some are missing in the
//! study, and are counted; the host still receives them.
//!
//! The socket is opened before the costs are measured. To measure the costs, a process without root enters a
//! user namespace, from which it could not reach the interface.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use anyhow::Result;
use rxo_demo::costs;
use rxo_device::FrameSource;
use rxo_driver::wait::{Interest, WaitList};
use rxo_driver::{Interface, PacketOptions, PacketSource, SystemSource, clock};
use rxo_frame::Instant;
use rxo_trace::report::{HostSettings, Report};
use rxo_trace::study::{Study, Watched};

use super::plan::Plan;
use super::study_of;
use crate::exit::usage;
use crate::{output, stop};

/// First measures the costs of receiving, unless the user has given them. Then watches `interface` for `time`,
/// or until a signal. Returns the report.
///
/// # Errors
/// If the interface cannot be opened, or the settings are invalid.
pub(super) fn report(plan: &mut Plan, interface: &str, time: Duration) -> Result<Report> {
    let stop = stop::on_request()?;
    // Invalid settings are refused before the costs are measured, which takes ten seconds.
    study_of(plan)?;
    let mut watch = Watch::open(interface, time)?;
    if plan.costs.is_none() {
        measure_costs(plan, &stop);
    }
    let note = use_host_costs(plan);
    let mut study = study_of(plan)?;
    study.begin_source(interface);
    let partial = watch.run(&mut study, &stop);
    let mut report = study.finish_live(&watch.watched, partial);
    report.notes.extend(note);
    Ok(report)
}

/// Measures the costs of receiving on this machine. If the measurement fails, keeps the assumed costs, and adds
/// a note with the reason.
fn measure_costs(plan: &mut Plan, stop: &AtomicBool) {
    match costs::measured(stop) {
        Ok(given) => plan.costs = Some(given),
        Err(error) => {
            output::note(&format!("the costs were not measured and are assumed: {error:#}"))
        }
    }
}

/// Lets `plan` predict from the costs of the host's kernel, which receives on a live interface, in place of those of rxo.
/// Returns a note if only rxo's costs are known. Costs that are assumed stay as they are.
fn use_host_costs(plan: &mut Plan) -> Option<String> {
    let given = plan.costs.as_mut()?;
    given.costs = given.host_costs();
    plan.settings.costs = given.costs;
    plan.settings.costs_from.clone_from(&given.from);
    given.host.is_none().then(|| ONLY_RXO.to_owned())
}

/// An interface that is watched.
struct Watch {
    source: PacketSource,
    time: Duration,
    watched: Watched,
}

impl Watch {
    fn open(name: &str, time: Duration) -> Result<Self> {
        let interface = Interface::find(name)?;
        if !interface.is_ethernet()? {
            return Err(usage(format!(
                "--live {name}: its frames have no Ethernet header, as on a tunnel; capture with `tcpdump -i {name} -w \
                 FILE`, and analyze the file"
            )));
        }
        let slot_bytes = interface.mtu()?.saturating_add(SLOT_OVERHEAD_BYTES);
        let ring_slots = (RING_BYTES / slot_bytes).clamp(FEWEST_SLOTS, MOST_SLOTS);
        let options = PacketOptions { ring_slots, promiscuous: false, ..PacketOptions::default() };
        let watched = Watched {
            interface: name.to_owned(),
            settings: settings(&interface),
            is_virtual: interface.is_virtual(),
            ..Watched::default()
        };
        Ok(Self { source: PacketSource::open(name, options)?, time, watched })
    }

    /// Studies all frames that arrive from now on until the time is over. Returns the reason if watching ended
    /// earlier; otherwise `None`.
    fn run(&mut self, study: &mut Study, stop: &AtomicBool) -> Option<String> {
        let begin = clock::now();
        self.source.discard_before(begin);
        let (name, seconds) = (&self.watched.interface, self.time.as_secs_f64());
        output::note(&format!("watching {name} for {seconds} s; Ctrl-C ends earlier"));
        let lost_before = self.lost();
        let partial = self.study_until(begin + self.time, study, stop);
        self.watched.time = clock::now().since(begin).min(self.time);
        self.watched.lost_packets = self.lost().saturating_sub(lost_before);
        partial.map(|why| {
            let [seconds, wanted] = [self.watched.time, self.time].map(|time| time.as_secs_f64());
            format!("{why} after {seconds:.1} s of {wanted} s")
        })
    }

    fn study_until(
        &mut self,
        mut end: Instant,
        study: &mut Study,
        stop: &AtomicBool,
    ) -> Option<String> {
        let since_1970 = since_1970();
        let mut batch = Vec::with_capacity(BATCH_FRAMES);
        let mut partial = None;
        loop {
            if partial.is_none() && stop.load(Ordering::Relaxed) {
                // What has arrived until now still counts.
                (partial, end) = (Some("interrupted".to_owned()), end.min(clock::now()));
            }
            match self.source.receive(&mut batch, BATCH_FRAMES) {
                Ok(0) if clock::now() >= end => return partial,
                Ok(0) => self.wait(end),
                Ok(_) => {
                    let received = batch.len();
                    batch.retain(|frame| frame.arrived_at < end);
                    study.receive(&batch, since_1970);
                    if batch.len() < received {
                        return partial;
                    }
                }
                Err(error) => return Some(error.to_string()),
            }
            batch.clear();
        }
    }

    /// Waits for frames, at most until `end`. Ignores errors of the wait, because the next read returns such an
    /// error.
    fn wait(&self, end: Instant) {
        let mut list = WaitList::new();
        list.add(Some(&self.source), Interest::Readable);
        _ = list.wait(Some(end.since(clock::now()).min(LONGEST_WAIT)));
    }

    /// Returns the number of packets that the socket did not receive, or that could not be read.
    fn lost(&mut self) -> u64 {
        let counters = self.source.counters();
        counters.ring_drops + counters.truncated + counters.invalid
    }
}

fn settings(interface: &Interface) -> HostSettings {
    let found = interface.receive_settings();
    HostSettings {
        driver: found.driver,
        gro: found.gro,
        lro: found.lro,
        rx_usecs: found.rx_usecs,
        rx_frames: found.rx_frames,
        is_adaptive: found.is_adaptive,
        gro_flush_timeout_ns: found.gro_flush_timeout_ns,
        napi_defer_hard_irqs: found.napi_defer_hard_irqs,
    }
}

/// Returns the Unix time at which the monotonic clock was zero.
fn since_1970() -> Duration {
    let wall = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    wall.saturating_sub(Duration::from_nanos(clock::now().as_nanos()))
}

/// The note on costs of an old file of `rxo calibrate`, or of a machine on which the kernel's own path is not measured.
const ONLY_RXO: &str = "the cores are predicted from what receiving through rxo costs, because the costs have none of the \
                        kernel alone; rxo calibrate measures both where the kernel polls in a thread";
/// The size of the socket's ring in bytes: it bridges 8 ms of full-size packets at a million a second.
const RING_BYTES: u32 = 16 << 20;
/// The space for metadata in each slot of the ring, in addition to the packet, in bytes, rounded up.
const SLOT_OVERHEAD_BYTES: u32 = 512;
const FEWEST_SLOTS: u32 = 256;
const MOST_SLOTS: u32 = 8_192;
/// The maximum number of frames per batch. This number is small because a GSO frame may have 65,000 segments,
/// and all segments of a batch are in memory at once.
const BATCH_FRAMES: usize = 32;
/// The longest wait for frames between two checks for signals.
const LONGEST_WAIT: Duration = Duration::from_millis(100);

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;
    use crate::flags::{Cli, Command};

    fn plan(costs: &str) -> Plan {
        let line = format!("rxo analyze --live eth0 --costs {costs}");
        match Cli::try_parse_from(line.split_whitespace()).unwrap().command {
            Command::Analyze(flags) => Plan::from_flags(&flags).unwrap(),
            other => panic!("{other:?}"),
        }
    }

    /// Returns the cost of a packet that a plan with a file of `content` predicts from, and the note.
    fn from_file(name: &str, content: &str) -> (f64, Option<String>) {
        let path = std::env::temp_dir().join(format!("rxo-{name}-{}.json", std::process::id()));
        std::fs::write(&path, content).unwrap();
        let mut plan = plan(path.to_str().unwrap());
        std::fs::remove_file(&path).unwrap();
        let note = use_host_costs(&mut plan);
        let used = plan.settings.costs.packet_ns;
        assert_eq!(plan.costs.unwrap().costs.packet_ns, used, "the projection has them, too");
        (used, note)
    }

    #[test]
    fn a_live_interface_costs_what_the_kernel_costs() {
        let old = r#"{"costs":{"packet_ns":900,"byte_ns":0.2,"coalesce_ns":20}}"#;
        let (used, note) = from_file("old", old);
        assert!(used == 900.0 && note.unwrap().contains("receiving through rxo costs"));
        let host = r#","host":{"packet_ns":400,"byte_ns":0.1,"coalesce_ns":0}}"#;
        let new = format!("{}{host}", old.strip_suffix('}').unwrap());
        assert_eq!(from_file("new", &new), (400.0, None));
        let mut typed = plan("packet=800ns,byte=0.3ns");
        assert_eq!(use_host_costs(&mut typed), None);
        assert_eq!(typed.settings.costs.packet_ns, 800.0);
    }
}
