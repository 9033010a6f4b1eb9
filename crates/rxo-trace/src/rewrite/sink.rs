//! Receives the deliveries of the engines, adds notes, puts the packets into the order of their first records, and
//! writes them.

use std::collections::BTreeMap;

use rxo_capture::{Capture, Clock, Interface, LinkType, Record, SharedBytes};
use rxo_coalesce::{Aggregate, Deliveries, Delivery};
use rxo_wire::Offsets;
use rxo_wire::checksum::Summer;

use super::beside::{Beside, PacketOptions, split};
use super::digest::{Around, Digest, Summed};
use super::held::{Carried, Held};
use super::note::{self, Merged, Original, Outer};
use super::origin::Origin;
use super::output::{Output, Written};
use super::remark::{End, Remark};
use super::span::Span;
use super::{Coalesced, RewriteError, RewriteOutput, merged};
use crate::numbered::Numbered;
use crate::words::form;

/// The sink of the engines, which writes the coalesced file.
#[derive(Debug)]
pub(super) struct Sink<'w> {
    output: Output<'w>,
    interfaces: Vec<Interface>,
    clocks: Vec<Clock>,
    summer: Summer,
    digest: Digest,
    span: Span,
    pub(super) held: Held,
    /// The deliveries that wait until all older records are delivered, by the position of their first record.
    ready: BTreeMap<u64, Written>,
    /// `true` while the engines deliver everything early, because too many records are held.
    is_early: bool,
    pub(super) figures: Coalesced,
    failed: Option<RewriteError>,
}

impl<'w> Sink<'w> {
    /// Creates a sink that has written nothing.
    pub(super) fn new(output: RewriteOutput<'w>, origin: Origin, comment: String) -> Self {
        Self {
            output: Output::new(output, origin, comment),
            interfaces: Vec::new(),
            clocks: Vec::new(),
            summer: Summer::detect(),
            digest: Digest::default(),
            span: Span::default(),
            held: Held::default(),
            ready: BTreeMap::new(),
            is_early: false,
            figures: Coalesced::default(),
            failed: None,
        }
    }

    /// Stores the sections and interfaces that the capture has described so far.
    pub(super) fn learn(&mut self, capture: &Capture) -> Result<(), RewriteError> {
        if capture.describes_too_much() {
            return Err(RewriteError::DescribesTooMuch);
        }
        let new = self.output.learn(capture.described());
        self.clocks.extend(new);
        let known = self.interfaces.len();
        self.interfaces.extend_from_slice(capture.interfaces().get(known..).unwrap_or_default());
        Ok(())
    }

    /// Returns the link type of an interface's packets; `None` if there is no such interface.
    pub(super) fn link(&self, interface: u32) -> Option<LinkType> {
        self.interfaces.get(interface as usize).map(|interface| interface.link)
    }

    pub(super) const fn summer(&self) -> Summer {
        self.summer
    }

    /// Records the arrival of a record and returns its position.
    pub(super) fn enter(&mut self, record: &Record) -> u64 {
        let bytes = record.bytes.as_ref();
        self.figures.packets += 1;
        self.figures.captured_bytes += bytes.len() as u64;
        let options = options_of(record);
        self.digest.add(&Summed {
            interface: record.interface,
            at: record.at,
            ticks: record.ticks,
            original_bytes: record.original_bytes,
            bytes,
            head: record.head.as_ref(),
            options: &options,
        });
        self.span.enter(bytes.len() + options.len() + record.head.as_ref().len())
    }

    /// Returns `true` if all held packets must be delivered now, because too many records are held.
    pub(super) fn is_full(&self) -> bool {
        self.span.is_full()
    }

    /// Marks the following deliveries as early, because the limit on held records forces them.
    pub(super) const fn begin_early(&mut self) {
        self.figures.early_flushes += 1;
        self.is_early = true;
    }

    /// Marks the following deliveries as normal: the limit on held records does not force them.
    pub(super) const fn end_early(&mut self) {
        self.is_early = false;
    }

    /// Checks that all writes to the file have succeeded so far.
    ///
    /// # Errors
    /// The first error of writing since the last call of this function.
    pub(super) fn check(&mut self) -> Result<(), RewriteError> {
        self.failed.take().map_or(Ok(()), Err)
    }

    /// Writes the rest of the file, after all packets were delivered.
    pub(super) fn finish(
        mut self,
        cut_record: &[u8],
        is_partial: bool,
    ) -> Result<Coalesced, RewriteError> {
        self.check()?;
        let (pcap_header, described) = self.output.around();
        let digest = self.digest.sum(&Around { pcap_header, described, is_partial, cut_record });
        let records = self.digest.records;
        let end = End { records, digest, is_partial, cut_record: cut_record.to_vec() };
        let remembered_bytes = self.output.finish(&self.interfaces, end)?;
        Ok(Coalesced { remembered_bytes, ..self.figures })
    }

    pub(super) fn take(&mut self, deliveries: Deliveries<'_, Numbered>) {
        for delivery in deliveries.iter() {
            match delivery {
                Delivery::Frame(single) => self.alone(single.frame().bytes.number),
                Delivery::Aggregate(aggregate) => self.aggregate(&aggregate),
                // Every pure ACK stays unchanged in the capture: merging them would save no payload.
                Delivery::Acks(acks) => {
                    for frame in acks.frames() {
                        self.figures.single_acks += 1;
                        self.alone(frame.bytes.number);
                    }
                }
            }
        }
    }

    /// Writes a delivered packet that is not part of an aggregate.
    fn alone(&mut self, number: u32) {
        if let Some(carried) = self.held.take(number) {
            self.single(&carried.record, carried.place);
        }
    }

    /// Writes a single packet, whose record has the position `place`.
    pub(super) fn single(&mut self, record: &Record, place: u64) {
        let mut remark = Remark::default();
        let beside = self.beside(record, PacketOptions::new());
        remark.beside.extend(beside.map(|beside| (0, beside)));
        let written = Written {
            interface: record.interface,
            at: record.at,
            original_bytes: record.original_bytes,
            bytes: record.bytes.clone(),
            comment: None,
            options: options_of(record),
            remark,
        };
        self.span.leave(place);
        self.write(written, place);
    }

    fn aggregate(&mut self, aggregate: &Aggregate<'_, Numbered>) {
        let numbers = aggregate.frames().map(|frame| frame.bytes.number);
        let all: Vec<Carried> = numbers.filter_map(|number| self.held.take(number)).collect();
        let Some(first) = all.first() else { return };
        let link = first.record.bytes.as_ref().get(..first.link_bytes).unwrap_or_default();
        let mut bytes = Vec::new();
        let headers = merged::write(aggregate, link, self.summer, &mut bytes);
        let at = first.record.at;
        let merged = Merged { bytes: &bytes, at_ns: at.as_nanos(), expected_place: first.place };
        match self.remark(merged, headers, aggregate.network_at(), &all) {
            Err(why) => {
                let packet = self.figures.deliveries + 1;
                self.failed.get_or_insert(RewriteError::Packet { packet, why });
            }
            Ok(remark) => {
                let written = Written {
                    interface: first.record.interface,
                    at,
                    original_bytes: bytes.len() as u32,
                    bytes: bytes.into(),
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
    }

    /// Returns the comment of an aggregate, which Wireshark shows.
    fn comment(&self, aggregate: &Aggregate<'_, Numbered>) -> String {
        let (segments, bytes) = (aggregate.segment_count(), aggregate.payload_bytes());
        let reason = if self.is_early { EARLY } else { aggregate.flush_reason().name() };
        let noun = form(bytes.into(), "byte", "bytes");
        format!("rxo: {segments} segments, {bytes} {noun} of payload, flushed: {reason}")
    }

    /// Returns the remark of an aggregate of the records `all`. `network_at` is the offset of the records' IP
    /// headers in the bytes that were passed to the engine.
    fn remark(
        &self,
        merged: Merged<'_>,
        headers: (Offsets, Option<Outer>),
        network_at: usize,
        all: &[Carried],
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
        // Space for the head of the note, and for the segments of a steady stream.
        let mut note = Vec::with_capacity(48 + 4 * originals.len());
        note::write(merged, headers, &originals, &mut note)?;
        let beside = all.iter().enumerate().filter_map(|(number, carried)| {
            let beside = self.beside(&carried.record, options_of(&carried.record))?;
            Some((number, beside))
        });
        Ok(Remark { note: Some(note), beside: beside.collect(), ..Remark::default() })
    }

    /// Returns the parts of a record that neither its bytes nor the file's fields express; `None` if there are
    /// no such parts.
    fn beside(&self, record: &Record, options: PacketOptions) -> Option<Beside> {
        let clock = *self.clocks.get(record.interface as usize)?;
        let beside = Beside::of(record, clock, options);
        (!beside.is_empty()).then_some(beside)
    }

    /// Writes deliveries in the order of their first records. Therefore no ACK precedes the data that it
    /// acknowledges, and the file need not store positions.
    fn write(&mut self, written: Written, first_place: u64) {
        self.figures.deliveries += 1;
        let oldest = self.span.oldest();
        if self.ready.is_empty() && first_place < oldest {
            return self.put(written);
        }
        // A waiting packet is copied, because it would keep the whole chunk that it was read in.
        let bytes = if first_place < oldest { written.bytes } else { detached(&written) };
        self.ready.insert(first_place, Written { bytes, ..written });
        while let Some(next) = self.ready.first_entry().filter(|entry| *entry.key() < oldest) {
            let written = next.remove();
            self.put(written);
        }
    }

    fn put(&mut self, written: Written) {
        if self.failed.is_none()
            && let Err(error) = self.output.write(&self.interfaces, written)
        {
            self.failed = Some(error);
        }
    }
}

/// The name of the flush reason for early deliveries, which are forced by the limit on held records and not by
/// a rule of the policy.
const EARLY: &str = "order_limit";

/// Returns the bytes of a packet in a chunk that only this packet uses. The bytes of an aggregate already have
/// their own chunk, and are not copied.
fn detached(written: &Written) -> SharedBytes {
    if written.remark.note.is_some() { written.bytes.clone() } else { written.bytes.detached() }
}

/// Returns the options of a record, without those that rxo has written.
fn options_of(record: &Record) -> PacketOptions {
    if record.options.is_empty() { PacketOptions::new() } else { split(&record.options).0 }
}
