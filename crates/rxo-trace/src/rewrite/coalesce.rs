//! A capture as the host's stack would see it.

use std::collections::BTreeMap;
use std::io::Write;

use rxo_coalesce::{Aggregate, Deliveries, Delivery};
use rxo_device::capture::{Capture, Interface, LinkType, Network, Record};
use rxo_frame::Frame;
use rxo_wire::checksum::Summer;
use serde::Serialize;

use super::digest::{Digest, PacketOptions};
use super::lane::{Carried, Lane};
use super::note::{self, Layout, Merged, Original};
use super::origin::{Origin, is_ours};
use super::output::{Output, Written};
use super::remark::{End, Remark, apart};
use super::span::Span;
use super::{RewriteError, merged};
use crate::study::{ChecksumMode, Clock, Point, checksum_status};

/// How a capture is coalesced.
#[derive(Clone, Copy, Debug)]
pub struct Settings {
    /// The policy, and when the host polls.
    pub point: Point,
    /// What to make of TCP checksums. Packets that the capture holds only the beginning of are
    /// never coalesced, whatever this says: the bytes to put into an aggregate are not there.
    pub checksums: ChecksumMode,
    /// Seeds the engines' hashes; the result does not depend on it.
    pub seed: u64,
}

/// What became of a capture.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Coalesced {
    /// Packets read.
    pub packets: u64,
    /// Packets written: single ones and aggregates.
    pub deliveries: u64,
    /// Aggregates among them.
    pub aggregates: u64,
    /// Packets in those.
    pub aggregated_packets: u64,
    /// Captured bytes of the packets read.
    pub captured_bytes: u64,
    /// Bytes that say what aggregates cannot.
    pub remembered_bytes: u64,
    /// How often everything was delivered early, because a packet had waited for too many others.
    pub early_flushes: u64,
    /// Packets of interfaces for which there was no engine any more; they passed as they are.
    pub unserved_packets: u64,
}

/// Coalesces one capture into a file.
#[derive(Debug)]
pub struct Coalescer<W: Write> {
    settings: Settings,
    clock: Clock,
    lanes: Vec<Option<Lane>>,
    lane_count: usize,
    sink: Sink<W>,
}

/// Interfaces with an engine; what one needs depends on the policy and is some 100 KB.
const MOST_LANES: usize = 256;

impl<W: Write> Coalescer<W> {
    /// Begins, once the first batch of `capture` was read.
    ///
    /// # Errors
    /// The capture was coalesced already, or the policy cannot be.
    pub fn new(capture: &Capture, output: W, settings: Settings) -> Result<Self, RewriteError> {
        let origin = Origin::of(capture)?;
        // What is wrong with the policy is known before anything is written.
        Lane::new(&settings, rxo_frame::LinkKind::Ethernet)?;
        let point = &settings.point;
        let comment =
            format!("coalesced by rxo: policy {}, poll {}", point.policy.name, point.poll);
        Ok(Self {
            sink: Sink {
                output: Output::new(output, origin, comment),
                interfaces: Vec::new(),
                summer: Summer::detect(),
                digest: Digest::default(),
                span: Span::default(),
                ready: BTreeMap::new(),
                is_early: false,
                packet: Vec::new(),
                figures: Coalesced::default(),
                failed: None,
            },
            settings,
            clock: Clock::default(),
            lanes: Vec::new(),
            lane_count: 0,
        })
    }

    /// Takes all `records` of the capture; `interfaces` are the capture's, as far as known.
    ///
    /// # Errors
    /// The output cannot be written, or a record rides with what `rxo coalesce` wrote.
    pub fn take(
        &mut self,
        interfaces: &[Interface],
        records: &mut Vec<Record>,
    ) -> Result<(), RewriteError> {
        self.sink.learn(interfaces);
        for record in records.drain(..) {
            self.take_one(record)?;
        }
        let (now, sink) = (self.clock.now(), &mut self.sink);
        for lane in self.lanes.iter_mut().flatten() {
            lane.advance(now, &mut |deliveries| sink.take(deliveries));
        }
        self.sink.check()
    }

    /// What became of it so far.
    #[must_use]
    pub const fn figures(&self) -> &Coalesced {
        &self.sink.figures
    }

    /// Writes the rest and gives the output back. `is_partial` says that not all of `capture` could
    /// be read.
    ///
    /// # Errors
    /// The output cannot be written.
    pub fn finish(
        mut self,
        capture: &Capture,
        is_partial: bool,
    ) -> Result<(W, Coalesced), RewriteError> {
        self.sink.learn(capture.interfaces());
        self.empty();
        self.sink.check()?;
        let Sink { output, interfaces, digest, mut figures, .. } = self.sink;
        let end = End {
            records: digest.records,
            digest: digest.sum(),
            is_partial,
            cut_record: capture.cut_record().to_vec(),
        };
        let (output, remembered_bytes) = output.finish(&interfaces, end)?;
        figures.remembered_bytes = remembered_bytes;
        Ok((output, figures))
    }

    fn take_one(&mut self, record: Record) -> Result<(), RewriteError> {
        if is_ours(&record.options) {
            return Err(RewriteError::AlreadyCoalesced);
        }
        let now = self.clock.advance(record.at);
        let place = self.sink.enter(&record);
        let interface = self.sink.interfaces.get(record.interface as usize);
        let link = interface.map_or(LinkType(u16::MAX), |interface| interface.link);
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
                let checksum = checksum_status(&network, self.settings.checksums, sink.summer);
                let Network { packet, vlan, header_bytes: link_bytes, .. } = network;
                let bytes = Carried { packet, link_bytes, record, place };
                let frame = Frame { bytes, arrived_at: now, checksum, gso: None, vlan };
                lane.push(frame, &mut |deliveries| sink.take(deliveries));
            }
            None => {
                sink.figures.unserved_packets += u64::from(is_ip);
                sink.single(&record, place);
            }
        }
        if self.sink.span.is_full() {
            self.sink.figures.early_flushes += 1;
            self.sink.is_early = true;
            self.empty();
            self.sink.is_early = false;
        }
        self.sink.check()
    }

    /// Delivers everything.
    fn empty(&mut self) {
        let (now, sink) = (self.clock.now(), &mut self.sink);
        for lane in self.lanes.iter_mut().flatten() {
            lane.empty(now, &mut |deliveries| sink.take(deliveries));
        }
    }
}

/// The lane of the record's interface; made when it is not there. `None` when there are too many.
fn lane<'a>(
    lanes: &'a mut Vec<Option<Lane>>,
    count: &mut usize,
    settings: &Settings,
    record: &Record,
    network: &Network,
) -> Option<&'a mut Lane> {
    let index = record.interface as usize;
    if lanes.len() <= index {
        lanes.resize_with(index + 1, || None);
    }
    let lane = lanes.get_mut(index)?;
    if lane.is_none() && *count < MOST_LANES {
        *lane = Lane::new(settings, network.link).ok();
        *count += 1;
    }
    lane.as_mut()
}

/// What deliveries go to.
#[derive(Debug)]
struct Sink<W: Write> {
    output: Output<W>,
    interfaces: Vec<Interface>,
    summer: Summer,
    digest: Digest,
    span: Span,
    /// What is delivered while something older is not, by the place of its first record.
    ready: BTreeMap<u64, Written>,
    /// Whether deliveries are forced now.
    is_early: bool,
    /// The memory of merged packets.
    packet: Vec<u8>,
    figures: Coalesced,
    failed: Option<RewriteError>,
}

impl<W: Write> Sink<W> {
    /// These are the interfaces, as far as known.
    fn learn(&mut self, interfaces: &[Interface]) {
        let known = self.interfaces.len();
        self.interfaces.extend_from_slice(interfaces.get(known..).unwrap_or_default());
    }

    /// A record arrives; says its place.
    fn enter(&mut self, record: &Record) -> u64 {
        let bytes = record.bytes.as_ref();
        self.figures.packets += 1;
        self.figures.captured_bytes += bytes.len() as u64;
        let about = (record.interface, record.at, record.original_bytes);
        self.digest.add(about, bytes, &options_of(record));
        self.span.enter(bytes.len())
    }

    /// The first thing that went wrong since the last call.
    fn check(&mut self) -> Result<(), RewriteError> {
        self.failed.take().map_or(Ok(()), Err)
    }

    fn take(&mut self, deliveries: Deliveries<'_, Carried>) {
        for delivery in deliveries.iter() {
            match delivery {
                Delivery::Frame(frame) => self.single(&frame.bytes.record, frame.bytes.place),
                Delivery::Aggregate(aggregate) => self.aggregate(&aggregate),
                // There is no payload to save: a capture keeps every pure ACK as it came.
                Delivery::Acks(acks) => {
                    for frame in acks.frames() {
                        self.single(&frame.bytes.record, frame.bytes.place);
                    }
                }
            }
        }
    }

    fn single(&mut self, record: &Record, place: u64) {
        let written = Written {
            interface: record.interface,
            at: record.at,
            original_bytes: record.original_bytes,
            bytes: record.bytes.as_ref().to_vec(),
            comment: None,
            options: options_of(record),
            remark: Remark::default(),
        };
        self.span.leave(place);
        self.write(written, place);
    }

    fn aggregate(&mut self, aggregate: &Aggregate<'_, Carried>) {
        let all: Vec<&Carried> = aggregate.frames().map(|frame| &frame.bytes).collect();
        let Some(first) = all.first() else { return };
        let link = first.record.bytes.as_ref().get(..first.link_bytes).unwrap_or_default();
        let mut bytes = std::mem::take(&mut self.packet);
        let layout = merged::write(aggregate, link, self.summer, &mut bytes);
        let at = first.record.at;
        let merged = Merged { bytes: &bytes, at_ns: at.as_nanos(), expected_place: first.place };
        match remark(merged, layout, aggregate.network_at(), &all) {
            Err(why) => {
                let packet = self.figures.deliveries + 1;
                self.failed.get_or_insert(RewriteError::Packet { packet, why });
            }
            Ok(remark) => {
                let written = Written {
                    interface: first.record.interface,
                    at,
                    original_bytes: bytes.len() as u32,
                    bytes: bytes.clone(),
                    comment: Some(self.comment(aggregate)),
                    options: PacketOptions::new(),
                    remark,
                };
                all.iter().for_each(|carried| self.span.leave(carried.place));
                self.figures.aggregates += 1;
                self.figures.aggregated_packets += all.len() as u64;
                self.write(written, first.place);
            }
        }
        self.packet = bytes;
    }

    /// What Wireshark shows beside an aggregate.
    fn comment(&self, aggregate: &Aggregate<'_, Carried>) -> String {
        let (segments, bytes) = (aggregate.segment_count(), aggregate.payload_bytes());
        let reason = if self.is_early { EARLY } else { aggregate.flush_reason().name() };
        format!("rxo: {segments} segments, {bytes} bytes of payload, flushed: {reason}")
    }

    /// Writes what is delivered in the order of first records: so an acknowledgement never stands
    /// before the data that it speaks of, and whoever expands need not be told any place.
    fn write(&mut self, written: Written, first_place: u64) {
        self.figures.deliveries += 1;
        self.ready.insert(first_place, written);
        while let Some(next) = self.ready.first_entry().filter(|e| *e.key() < self.span.oldest()) {
            let written = next.remove();
            if self.failed.is_none()
                && let Err(error) = self.output.write(&self.interfaces, written)
            {
                self.failed = Some(error);
            }
        }
    }
}

/// The reason of a flush that no rule of the policy asked for.
const EARLY: &str = "order_limit";

/// What rides beside an aggregate of `all`, whose IP headers stand `network_at` bytes into what
/// the engine saw.
fn remark(
    merged: Merged<'_>,
    layout: Layout,
    network_at: usize,
    all: &[&Carried],
) -> Result<Remark, note::BadNote> {
    let originals: Vec<Original<'_>> = all
        .iter()
        .map(|carried| Original {
            bytes: carried.record.bytes.as_ref(),
            network: carried.link_bytes + network_at,
            original_bytes: carried.record.original_bytes,
            at_ns: carried.record.at.as_nanos(),
            place: carried.place,
        })
        .collect();
    let mut note = Vec::new();
    note::write(merged, layout, &originals, &mut note)?;
    let options = all.iter().enumerate();
    let options = options.filter(|(_, carried)| !carried.record.options.is_empty());
    let options = options.map(|(number, carried)| (number, options_of(&carried.record)));
    Ok(Remark { note: Some(note), options: options.collect(), ..Remark::default() })
}

/// The options that the file keeps with a record. None of them is ours.
fn options_of(record: &Record) -> PacketOptions {
    if record.options.is_empty() { PacketOptions::new() } else { apart(&record.options).0 }
}
