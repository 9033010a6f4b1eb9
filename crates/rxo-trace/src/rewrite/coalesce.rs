//! Writes a capture as the host's stack would see it.

use std::io::Write;

use rxo_capture::{Capture, LinkType, Network, Record};
use rxo_coalesce::Engine;
use rxo_frame::{ConfigError, Frame, LinkKind};
use serde::Serialize;

use super::RewriteError;
use super::RewriteOutput;
use super::beside::is_ours;
use super::held::Carried;
use super::origin::Origin;
use super::sink::Sink;
use crate::numbered::Numbered;
use crate::study::{ChecksumMode, Clock, Point, Replay, checksum_status};

/// The settings for coalescing a capture.
#[derive(Clone, Copy, Debug)]
pub struct Settings {
    /// The policy and the poll rule to apply.
    pub point: Point,
    /// The treatment of TCP checksums. Truncated packets are never coalesced, because their bytes are missing.
    pub checksums: ChecksumMode,
    /// The seed of the engines' hashes. The result does not depend on the seed.
    pub seed: u64,
}

/// The totals of coalescing a capture.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Coalesced {
    /// The number of packets read.
    pub packets: u64,
    /// The number of packets written: single ones and aggregates.
    pub deliveries: u64,
    /// The number of aggregates among the deliveries.
    pub aggregates: u64,
    /// The number of packets in the aggregates.
    pub aggregated_packets: u64,
    /// The number of pure ACKs that the policy would aggregate, but that are written one by one. So the file
    /// contains a packet for each ACK of the peer.
    pub single_acks: u64,
    /// The number of captured bytes of the packets read.
    pub captured_bytes: u64,
    /// The number of bytes of notes about properties that aggregates cannot express.
    pub remembered_bytes: u64,
    /// The number of times that all held packets were flushed early, because the limit on packets that arrive
    /// after the oldest held packet was reached.
    pub early_flushes: u64,
    /// The number of packets of interfaces beyond the maximum number of engines, which were written unchanged.
    pub unserved_packets: u64,
}

/// Coalesces one capture into a file: processes records and writes packets.
#[derive(Debug)]
pub struct Coalescer<'w> {
    settings: Settings,
    clock: Clock,
    lanes: Vec<Option<Replay>>,
    lane_count: usize,
    sink: Sink<'w>,
}

/// The maximum number of interfaces with an engine. An engine takes about 100 KB, depending on the policy.
const MOST_LANES: usize = 256;

impl<'w> Coalescer<'w> {
    /// Begins the coalesced file. The first batch of `capture` must have been read.
    ///
    /// # Errors
    /// If the capture was coalesced already, or the policy is invalid.
    ///
    /// # Examples
    /// ```
    /// use std::io::Cursor;
    ///
    /// use rxo_capture::Capture;
    /// use rxo_coalesce::Policy;
    /// use rxo_trace::rewrite::{Coalescer, Settings};
    /// use rxo_trace::study::{ChecksumMode, Point};
    /// # use rxo_capture::{CaptureWriter, Interface, LinkType, Packet};
    /// # let mut writer = CaptureWriter::new(Vec::new(), "an example")?;
    /// # let raw_ip = Interface { link: LinkType::RAW, snap_bytes: None, name: None };
    /// # let interface = writer.add_interface(&raw_ip)?;
    /// # writer.write(&Packet {
    /// #     interface,
    /// #     at: rxo_frame::Instant::from_micros(5),
    /// #     original_bytes: 60,
    /// #     pieces: &[&[0x45; 60]],
    /// #     direction: None,
    /// #     comments: &[],
    /// #     custom: &[],
    /// # })?;
    /// # let file = writer.finish()?;
    ///
    /// let point = Point { policy: Policy::linux_gro(), poll: "time:50us".parse()? };
    /// let settings = Settings { point, checksums: ChecksumMode::Verify, seed: 0 };
    /// let mut capture = Capture::from_reader("traffic", Box::new(Cursor::new(file)))?;
    /// let mut records = Vec::new();
    /// capture.read_batch(&mut records, 64)?;
    /// let mut coalesced = Vec::new();
    /// let mut coalescer = Coalescer::new(&capture, &mut coalesced, settings)?;
    /// while !records.is_empty() {
    ///     coalescer.take(&capture, &mut records)?;
    ///     capture.read_batch(&mut records, 64)?;
    /// }
    /// let figures = coalescer.finish(&capture, false)?;
    /// assert_eq!((figures.packets, figures.deliveries), (1, 1));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn new(
        capture: &Capture,
        output: &'w mut dyn Write,
        settings: Settings,
    ) -> Result<Self, RewriteError> {
        let origin = Origin::of(capture)?;
        // An invalid policy is rejected before anything is written.
        new_lane(&settings, LinkKind::Ethernet)?;
        let point = &settings.point;
        let comment =
            format!("coalesced by rxo: policy {}, poll {}", point.policy.name, point.poll);
        Ok(Self {
            sink: Sink::new(RewriteOutput(output), origin, comment),
            settings,
            clock: Clock::default(),
            lanes: Vec::new(),
            lane_count: 0,
        })
    }

    /// Processes `records`, which were read from `capture`.
    ///
    /// # Errors
    /// If the output cannot be written, a record has a note of `rxo coalesce`, or the descriptions of sections
    /// and interfaces exceed the limits.
    pub fn take(
        &mut self,
        capture: &Capture,
        records: &mut Vec<Record>,
    ) -> Result<(), RewriteError> {
        self.sink.learn(capture)?;
        for record in records.drain(..) {
            self.take_one(record)?;
        }
        let (now, sink) = (self.clock.now(), &mut self.sink);
        for lane in self.lanes.iter_mut().flatten() {
            lane.advance(now, &mut |deliveries| sink.take(deliveries));
        }
        self.sink.check()
    }

    /// Returns the totals so far.
    #[must_use]
    pub const fn figures(&self) -> &Coalesced {
        &self.sink.figures
    }

    /// Writes the rest of the coalesced file, and returns the totals. `is_partial` means that `capture` could not be
    /// read completely.
    ///
    /// # Errors
    /// If the output cannot be written, or the descriptions of sections and interfaces exceed the limits.
    pub fn finish(
        mut self,
        capture: &Capture,
        is_partial: bool,
    ) -> Result<Coalesced, RewriteError> {
        self.sink.learn(capture)?;
        self.empty();
        self.sink.finish(capture.cut_record(), is_partial)
    }

    fn take_one(&mut self, record: Record) -> Result<(), RewriteError> {
        if is_ours(&record.options) {
            return Err(RewriteError::AlreadyCoalesced);
        }
        let now = self.clock.advance(record.at);
        let place = self.sink.enter(&record);
        let link = self.sink.link(record.interface).unwrap_or(LinkType(u16::MAX));
        let network = link.network(&record.bytes);
        let is_ip = network.is_some();
        let sink = &mut self.sink;
        let served = network.and_then(|network| {
            let lane =
                lane(&mut self.lanes, &mut self.lane_count, &self.settings, &record, &network);
            lane.map(|lane| (lane, network))
        });
        match served {
            Some((lane, network)) => {
                let checksum = checksum_status(&network, self.settings.checksums, sink.summer());
                let Network { packet, vlan, header_bytes: link_bytes, .. } = network;
                let number = sink.held.keep(Carried { record, link_bytes, place });
                let bytes = Numbered { bytes: packet, number };
                let frame = Frame { bytes, arrived_at: now, checksum, gso: None, vlan };
                lane.push(frame, &mut |deliveries| sink.take(deliveries));
            }
            None => {
                sink.figures.unserved_packets += u64::from(is_ip);
                sink.single(&record, place);
            }
        }
        if self.sink.is_full() {
            self.sink.begin_early();
            self.empty();
            self.sink.end_early();
        }
        self.sink.check()
    }

    /// Flushes every engine, so that all packets that they hold are written.
    fn empty(&mut self) {
        let (now, sink) = (self.clock.now(), &mut self.sink);
        for lane in self.lanes.iter_mut().flatten() {
            lane.empty(now, &mut |deliveries| sink.take(deliveries));
        }
    }
}

/// Returns the lane of the record's interface: an engine, with the replay that passes packets to it. Creates
/// the lane if necessary. `None` if there are too many interfaces.
fn lane<'a>(
    lanes: &'a mut Vec<Option<Replay>>,
    count: &mut usize,
    settings: &Settings,
    record: &Record,
    network: &Network,
) -> Option<&'a mut Replay> {
    let index = record.interface as usize;
    if lanes.len() <= index {
        lanes.resize_with(index + 1, || None);
    }
    let lane = lanes.get_mut(index)?;
    if lane.is_none() && *count < MOST_LANES {
        *lane = new_lane(settings, network.link).ok();
        *count += 1;
    }
    lane.as_mut()
}

/// Creates a lane, an engine with its replay, for packets whose first header is `link`.
fn new_lane(settings: &Settings, link: LinkKind) -> Result<Replay, ConfigError> {
    let trust = settings.checksums == ChecksumMode::Trust;
    let config = settings.point.config(link, trust, settings.seed);
    Ok(Replay::new(Box::new(Engine::new(config)?), settings.point.poll))
}
