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
    let mut study = study_of(plan)?;
    study.begin_source(interface);
    let partial = watch.run(&mut study, &stop);
    Ok(study.finish_live(&watch.watched, partial))
}

/// Measures the costs of receiving on this machine. If the measurement fails, keeps the assumed costs, and adds
/// a note with the reason.
fn measure_costs(plan: &mut Plan, stop: &AtomicBool) {
    match costs::measured(stop) {
        Ok(given) => {
            plan.settings.costs = given.costs;
            plan.settings.costs_from.clone_from(&given.from);
            plan.costs = Some(given);
        }
        Err(error) => {
            output::note(&format!("the costs were not measured and are assumed: {error:#}"))
        }
    }
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

/// The size of the socket's ring in bytes: enough for 8 ms at a million full-size packets a second.
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
