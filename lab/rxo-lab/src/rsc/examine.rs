//! Examines a capture: simulates the paper's card and its variants on it.
//!
//! The engine runs unchanged, with all variants in one pass (`rxo_trace::study`). As in the paper, a window
//! is a number of packets, whatever time they take.

use std::fmt;
use std::time::Duration;

use anyhow::{Result, anyhow};
use rxo::wire::{FlowKey, TcpFlags, Transport, parse, parse_ip};
use rxo_capture::{Capture, LinkType, Network, Record};
use rxo_coalesce::{Hold, Policy};
use rxo_console::numbers::{ratio, rounded};
use rxo_trace::report::{Outcome, ReasonCount};
use rxo_trace::study::{Point, PollRule, Settings, Study};
use rxo_trace::sweep::Grid;
use serde::Serialize;

/// The condition of a capture: connections of the lab's senders, and the bytes per write of each.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub(super) struct Condition {
    /// Number of senders, each with one connection.
    pub(super) connections: usize,
    /// The application's payload, in units of 1,024 bytes.
    pub(super) payload_kb: usize,
}

impl Condition {
    /// Returns the file name under which the capture is kept.
    pub(super) fn file_name(self) -> String {
        format!("{}-connections-{}-KB.pcapng", self.connections, self.payload_kb)
    }

    /// Parses the condition from the name of a kept capture; `None` for other names.
    pub(super) fn of_file(name: &str) -> Option<Self> {
        let name = name.strip_suffix(".pcapng")?.strip_suffix("-KB")?;
        let (connections, payload_kb) = name.split_once("-connections-")?;
        Some(Self { connections: connections.parse().ok()?, payload_kb: payload_kb.parse().ok()? })
    }
}

impl fmt::Display for Condition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} connections, {} KB payloads", self.connections, self.payload_kb)
    }
}

/// The results of one capture. Eliminated packets are given per 10,000.
#[derive(Clone, Debug, Serialize)]
pub(super) struct Examined {
    /// Name of the capture's file.
    pub(super) name: String,
    /// Condition of the capture; `None` if the user brought it.
    pub(super) condition: Option<Condition>,
    pub(super) packets: u64,
    /// Rate on the wire, headers included.
    pub(super) gbit_per_s: f64,
    /// Frames that arrived but are missing in the capture.
    pub(super) lost_frames: u64,
    /// The mixture of flows in windows of 20 packets.
    pub(super) interleaving: Interleaving,
    /// Eliminated packets with 4 entries, buffers of 8 KB and windows of 20 packets.
    pub(super) eliminated: f64,
    /// Reasons that ended aggregates in that configuration, most frequent first.
    pub(super) flushed: Vec<ReasonCount>,
    /// Reasons for packets that were not coalesced in that configuration.
    pub(super) bypassed: Vec<ReasonCount>,
    /// Eliminated packets for each of [`ENTRIES`].
    pub(super) by_entries: Vec<f64>,
    /// Eliminated packets for each of [`BUFFERS_KB`].
    pub(super) by_buffer: Vec<f64>,
    /// Eliminated packets for each of [`WINDOWS`].
    pub(super) by_window: Vec<f64>,
    /// The reason why the capture was not read completely; `None` if it was.
    pub(super) damage: Option<String>,
}

/// Reads the capture to its end, or to its first damaged record.
pub(super) fn examine(
    mut capture: Capture,
    name: &str,
    condition: Option<Condition>,
    lost_frames: u64,
) -> Result<Examined> {
    let mut study = Study::new(settings())?;
    study.begin_source(name);
    let (mut flows, mut records) = (Flows::default(), Vec::new());
    let damage = loop {
        match capture.read_batch(&mut records, BATCH_RECORDS) {
            Ok(0) => break None,
            Ok(_) => {}
            Err(error) => break Some(error.to_string()),
        }
        for record in &records {
            if let Some(interface) = capture.interfaces().get(record.interface as usize) {
                flows.take(data_segment(interface.link, record));
            }
        }
        study.take(capture.interfaces(), &mut records);
    };
    study.end_source(&capture.format().to_string(), damage.clone());
    let report = study.finish(None);
    let outcomes = report.sweep.ok_or_else(|| anyhow!("the study has no sweep"))?.outcomes;
    let mut eliminated = outcomes.iter().map(per_10_000);
    let mut next = |count: usize| eliminated.by_ref().take(count).collect::<Vec<f64>>();
    Ok(Examined {
        name: name.to_owned(),
        condition,
        packets: report.traffic.packets,
        gbit_per_s: rounded(
            ratio(report.traffic.bytes as f64 * 8.0, report.traffic.duration_ns as f64),
            3,
        ),
        lost_frames,
        interleaving: flows.finish(),
        eliminated: per_10_000(&report.outcome),
        flushed: report.outcome.flushed,
        bypassed: report.outcome.bypassed,
        by_entries: next(ENTRIES.len()),
        by_buffer: next(BUFFERS_KB.len()),
        by_window: next(WINDOWS.len()),
        damage,
    })
}

/// The mixture of flows in a capture, whatever the policy. Means are 0 without data segments.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub(super) struct Interleaving {
    /// TCP packets with payload; the next field counts those with PSH.
    data_segments: u64,
    pushed_segments: u64,
    /// Mean number of flows with data in a window of [`PAPER_WINDOW`] packets.
    pub(super) flows_per_window: f64,
    /// Mean number of consecutive data segments of one flow.
    segments_per_run: f64,
}

/// Computes [`Interleaving`] packet by packet.
#[derive(Debug, Default)]
struct Flows {
    /// Packets of the window so far, and their flows.
    packets: u32,
    flows: Vec<FlowKey>,
    last: Option<FlowKey>,
    windows: u64,
    flows_in_windows: u64,
    runs: u64,
    found: Interleaving,
}

impl Flows {
    /// Takes the next packet: its flow and flags if it has data, otherwise `None`.
    fn take(&mut self, data: Option<(FlowKey, TcpFlags)>) {
        if let Some((flow, flags)) = data {
            self.found.data_segments += 1;
            self.found.pushed_segments += u64::from(flags.contains(TcpFlags::PSH));
            self.runs += u64::from(self.last.replace(flow) != Some(flow));
            if !self.flows.contains(&flow) {
                self.flows.push(flow);
            }
        }
        self.packets += 1;
        if self.packets == PAPER_WINDOW {
            self.end_window();
        }
    }

    fn end_window(&mut self) {
        self.packets = 0;
        self.windows += 1;
        self.flows_in_windows += self.flows.drain(..).len() as u64;
    }

    /// Returns the result, including an incomplete last window.
    fn finish(mut self) -> Interleaving {
        if self.packets > 0 {
            self.end_window();
        }
        let mean = |sum: u64, count: u64| ratio(sum as f64, count as f64);
        Interleaving {
            flows_per_window: mean(self.flows_in_windows, self.windows),
            segments_per_run: mean(self.found.data_segments, self.runs),
            ..self.found
        }
    }
}

/// Returns the flow and the flags of a TCP packet with payload; `None` for other packets.
fn data_segment(link: LinkType, record: &Record) -> Option<(FlowKey, TcpFlags)> {
    let Network { link, packet, .. } = link.network(&record.bytes)?;
    let parsed = link.read(packet.as_ref(), parse, parse_ip).ok()?;
    match parsed.transport {
        Transport::Tcp(segment) if parsed.payload_bytes() > 0 => Some((parsed.key, segment.flags)),
        _ => None,
    }
}

fn per_10_000(outcome: &Outcome) -> f64 {
    outcome.eliminated_per_10_000.round()
}

/// Returns the settings of the paper's card and of every variant in figures 6 to 8, in their order.
fn settings() -> Settings {
    let card = Policy { max_hold: NO_LIMIT, ..Policy::rsc_2006() };
    let entries = ENTRIES.map(|flows| Policy { flows, ..card });
    let buffers = BUFFERS_KB.map(|kb| Policy { buffer_bytes: kb * 1_024, ..card });
    let windows = WINDOWS.map(|packets| Policy { hold: Hold::EveryNPackets(packets), ..card });
    let point = |policy| Point { policy, poll: PollRule::Packets(POLL_PACKETS) };
    let variants = entries.into_iter().chain(buffers).chain(windows);
    let sweep = Grid { axes: Vec::new(), points: variants.map(point).collect() };
    Settings { sweep: Some(sweep), advise: false, top: 0, ..Settings::new(point(card)) }
}

/// Entries of the flow table in figure 6.
pub(super) const ENTRIES: [u16; 8] = [1, 2, 3, 4, 5, 6, 7, 8];
/// Buffer sizes in figure 7.
pub(super) const BUFFERS_KB: [u32; 5] = [4, 8, 16, 32, 64];
/// Windows in figure 8, in packets.
pub(super) const WINDOWS: [u32; 6] = [4, 8, 16, 20, 32, 64];
/// Packets between two interrupts in the paper's figures 4 to 7.
const PAPER_WINDOW: u32 = 20;
/// Time limit that never takes effect: the paper's windows are numbers of packets.
const NO_LIMIT: Duration = Duration::from_secs(3_600);
/// Packets per poll, which windows of packets do not depend on.
const POLL_PACKETS: u32 = 64;
const BATCH_RECORDS: usize = 256;

#[cfg(test)]
mod tests {
    use std::io::Cursor;

    use rxo_capture::{CaptureWriter, Interface, LinkType, Packet};
    use rxo_frame::Instant;
    use rxo_testkit::seg;

    use super::*;

    /// Makes a capture with payloads of six segments from four flows in turn.
    fn capture() -> Capture {
        let mut writer = CaptureWriter::new(Vec::new(), "a test").unwrap();
        let link = LinkType::ETHERNET;
        let interface =
            writer.add_interface(&Interface { link, snap_bytes: None, name: None }).unwrap();
        for number in 0..480_u32 {
            let (turn, part) = (number / 24, number % 6);
            let flow = number / 6 % 4;
            let packet = seg().flow(flow).seq(1 + turn * 8_192 + part * 1_460);
            let packet = packet.id((turn * 6 + part) as u16);
            let packet = if part == 5 { packet.len(892).psh() } else { packet.len(1_460) };
            let bytes = packet.bytes();
            let at = Instant::from_micros(u64::from(number) * 12);
            let (original_bytes, pieces) = (bytes.len() as u32, [bytes.as_slice()]);
            let packet = Packet {
                interface,
                at,
                original_bytes,
                pieces: &pieces,
                direction: None,
                comments: &[],
                custom: &[],
            };
            writer.write(&packet).unwrap();
        }
        let file = writer.finish().unwrap();
        Capture::from_reader("test", Box::new(Cursor::new(file))).unwrap()
    }

    #[test]
    fn every_variant_is_tried_in_its_place() {
        let examined = examine(capture(), "test", None, 0).unwrap();
        assert_eq!(examined.packets, 480);
        assert_eq!(examined.by_entries.len(), ENTRIES.len());
        assert_eq!(examined.by_window.len(), WINDOWS.len());
        // Four payloads are 24 packets, so each window of 20 cuts one payload in two.
        let at =
            |window: u32| examined.by_window[WINDOWS.iter().position(|&w| w == window).unwrap()];
        assert!((at(20) - examined.eliminated).abs() < f64::EPSILON, "{examined:?}");
        assert!(at(4) < at(16) && at(16) < at(64), "{examined:?}");
        // An 8 KB buffer holds a whole payload, a 4 KB buffer two segments.
        assert!((examined.by_buffer[0] - 5_000.0).abs() < 400.0, "{examined:?}");
        assert!(examined.by_buffer[1] > 7_500.0, "{examined:?}");
        assert!((examined.by_buffer[4] - examined.by_buffer[1]).abs() < 1.0, "{examined:?}");
        // Each window of 20 packets has parts of all four flows.
        let Interleaving { data_segments, pushed_segments, flows_per_window, segments_per_run } =
            examined.interleaving;
        assert_eq!((data_segments, pushed_segments), (480, 80), "{examined:?}");
        assert_eq!((flows_per_window, segments_per_run), (4.0, 6.0), "{examined:?}");
    }

    #[test]
    fn a_kept_capture_is_known_by_its_name() {
        let condition = Condition { connections: 16, payload_kb: 8 };
        assert_eq!(Condition::of_file(&condition.file_name()), Some(condition));
        for name in ["trace.pcapng", "16-connections-8-KB.pcap", "x-connections-8-KB.pcapng"] {
            assert_eq!(Condition::of_file(name), None, "{name}");
        }
    }
}
