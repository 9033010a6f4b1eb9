//! Restores the original capture from a coalesced one.

use std::io::Write;

use rxo_capture::{Capture, CaptureError, Clock, Described, Record, limits};
use rxo_frame::Instant;
use serde::Serialize;

use super::beside::{Beside, PacketOptions, split};
use super::digest::{Around, Digest, Summed};
use super::note::{self, BadNote, Merged};
use super::order::{Order, RestoredRecord};
use super::origin::Origin;
use super::original::{FileFormat, Original, clocks};
use super::remark::{End, Remark};
use super::{RewriteError, RewriteOutput};

/// The totals of restoring a capture.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Expanded {
    /// The number of packets in the coalesced capture.
    pub packets: u64,
    /// The number of aggregates among the packets of the coalesced capture.
    pub aggregates: u64,
    /// The number of original packets written.
    pub originals: u64,
    /// The number of original packets that were read but not written, because an earlier packet is missing.
    pub left_out: u64,
    /// `true` if the original capture had not been read to its end when it was coalesced.
    pub original_was_partial: bool,
}

/// Restores the original capture from a coalesced one.
#[derive(Debug)]
pub struct Expander<'w> {
    file: Original<'w>,
    /// `true` if the coalesced capture is compressed.
    is_packed: bool,
    pcap_header: Option<[u8; 24]>,
    /// The descriptions of the original capture's sections and interfaces that were read so far.
    described: Vec<Described>,
    /// The clocks of the interfaces in `described`, in order.
    clocks: Vec<Clock>,
    order: Order,
    digest: Digest,
    end: Option<End>,
    figures: Expanded,
}

impl<'w> Expander<'w> {
    /// Begins the restored file. The first batch of `capture` must have been read. `format` is the format of
    /// the restored file; `None` means the format of the original capture.
    ///
    /// # Errors
    /// If the capture was not written by `rxo coalesce`, or the output cannot be written.
    ///
    /// # Examples
    /// ```no_run
    /// use std::fs::File;
    ///
    /// use rxo_capture::Capture;
    /// use rxo_trace::rewrite::Expander;
    ///
    /// let mut capture = Capture::open("coalesced.pcapng".as_ref())?;
    /// let mut records = Vec::new();
    /// capture.read_batch(&mut records, 64)?;
    /// let mut file = File::create("restored.pcap")?;
    /// let mut expander = Expander::new(&capture, &mut file, None)?;
    /// while !records.is_empty() {
    ///     expander.take(&mut records)?;
    ///     capture.read_batch(&mut records, 64)?;
    /// }
    /// let figures = expander.finish()?;
    /// println!("{} packets", figures.originals);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn new(
        capture: &Capture,
        output: &'w mut dyn Write,
        format: Option<FileFormat>,
    ) -> Result<Self, RewriteError> {
        let origin = Origin::read(capture)?;
        let mut expander = Self {
            file: Original::begin(RewriteOutput(output), &origin, format)?,
            is_packed: capture.format().compression.is_some(),
            pcap_header: origin.pcap_header,
            described: Vec::new(),
            clocks: Vec::new(),
            order: Order::default(),
            digest: Digest::default(),
            end: origin.end,
            figures: Expanded::default(),
        };
        expander.learn(origin.described)?;
        Ok(expander)
    }

    /// Restores the original packets of `records`, which were read from the coalesced capture, and writes them.
    ///
    /// # Errors
    /// If the capture was changed since it was coalesced, or the output cannot be written.
    pub fn take(&mut self, records: &mut Vec<Record>) -> Result<(), RewriteError> {
        for record in records.drain(..) {
            self.figures.packets += 1;
            self.take_one(record)?;
            while let Some(given) = self.order.next() {
                self.give(&given)?;
            }
        }
        Ok(())
    }

    /// Returns the totals so far.
    #[must_use]
    pub const fn figures(&self) -> &Expanded {
        &self.figures
    }

    /// Writes the rest of the restored capture, and checks it against the totals of the original. Returns the totals.
    ///
    /// # Errors
    /// If packets are missing or were changed, or the output cannot be written.
    pub fn finish(mut self) -> Result<Expanded, RewriteError> {
        let end = self.end.take().ok_or(RewriteError::Changed("its last packets are missing"))?;
        if !self.order.is_empty() || end.records != self.digest.records {
            return Err(RewriteError::Changed("packets are missing"));
        }
        let around = Around {
            pcap_header: self.pcap_header.as_ref(),
            described: &self.described,
            is_partial: end.is_partial,
            cut_record: &end.cut_record,
        };
        if end.digest != self.digest.sum(&around) {
            return Err(RewriteError::Changed("what it gives back is not what was written"));
        }
        self.figures.original_was_partial = end.is_partial;
        self.file.put_cut_record(&end.cut_record)?;
        self.file.finish()?;
        Ok(self.figures)
    }

    /// Ends the restored file before the first missing packet, for a coalesced capture that was not read to its
    /// end. `damage` is the error that ended reading; `None` if the caller stopped. The checksum of all data is
    /// at the end, which was not read, so the written packets are not verified.
    ///
    /// # Errors
    /// If the output cannot be written, or if a compressed capture is damaged, because the data that was
    /// unpacked before the damage may be wrong.
    pub fn finish_partial(
        mut self,
        damage: Option<&CaptureError>,
    ) -> Result<Expanded, RewriteError> {
        if let Some(error) = damage.filter(|_| self.is_packed) {
            return Err(RewriteError::DamagedPacked { offset: error.offset() });
        }
        self.figures.left_out = self.order.waiting();
        self.file.leave_out_rest();
        self.file.finish()?;
        Ok(self.figures)
    }

    /// Stores further sections and interfaces of the original capture, and writes their descriptions to the
    /// restored file.
    fn learn(&mut self, described: Vec<Described>) -> Result<(), RewriteError> {
        if self.described.len() + described.len() > limits::DESCRIBED {
            return Err(RewriteError::Changed("it describes more than can be"));
        }
        self.file.describe(&described)?;
        self.clocks.extend(clocks(&described, self.pcap_header.as_ref()));
        self.described.extend(described);
        Ok(())
    }

    /// Restores the original packets from which the packet `record` was made.
    fn take_one(&mut self, record: Record) -> Result<(), RewriteError> {
        let packet = self.figures.packets;
        let bad = |why| RewriteError::Packet { packet, why };
        if self.end.is_some() {
            return Err(bad(BadNote("came after the last")));
        }
        let (options, ours) = if record.options.is_empty() {
            <(PacketOptions, Vec<u8>)>::default()
        } else {
            split(&record.options)
        };
        let Remark { described, note, beside, end } = Remark::read(&ours).map_err(bad)?;
        self.learn(described)?;
        self.end = end;
        match note {
            Some(note) => self.aggregate(&record, &note, beside).map_err(bad),
            None => {
                let given = single(record, options, beside).map_err(bad)?;
                self.order.pass().map_err(bad)?;
                self.give(&given)
            }
        }
    }

    fn aggregate(
        &mut self,
        record: &Record,
        note: &[u8],
        beside: Vec<(usize, Beside)>,
    ) -> Result<(), BadNote> {
        self.figures.aggregates += 1;
        let merged = Merged {
            bytes: record.bytes.as_ref(),
            at_ns: record.at.as_nanos(),
            expected_place: self.order.next_place(),
        };
        let restored = note::read(merged, note)?;
        self.order.expect_chunk(restored.first().map_or(0, |one| one.bytes.chunk().0));
        let mut beside = beside.into_iter().peekable();
        for (number, restored) in restored.into_iter().enumerate() {
            let own = beside.next_if(|(of, _)| *of == number).map(|(_, beside)| beside);
            let Beside { time, head, options } = own.unwrap_or_default();
            let given = RestoredRecord {
                interface: record.interface,
                at: Instant::from_nanos(restored.at_ns),
                time,
                original_bytes: restored.original_bytes,
                bytes: restored.bytes,
                head: head.into(),
                options,
            };
            self.order.put(restored.place, given)?;
        }
        if beside.next().is_some() {
            return Err(BadNote("speaks of more packets than it has"));
        }
        Ok(())
    }

    fn give(&mut self, given: &RestoredRecord) -> Result<(), RewriteError> {
        let clock = self.clocks.get(given.interface as usize).copied();
        let clock = clock.ok_or(RewriteError::Changed("a packet is of an unknown interface"))?;
        let ticks = given.time.ticks(given.at, clock);
        let ticks = ticks.map_err(|BadNote(why)| RewriteError::Changed(why))?;
        self.digest.add(&Summed {
            interface: given.interface,
            at: given.at,
            ticks,
            original_bytes: given.original_bytes,
            bytes: given.bytes.as_ref(),
            head: given.head.as_ref(),
            options: &given.options,
        });
        self.figures.originals += 1;
        self.file.write(given, ticks)
    }
}

/// Returns the original record of a packet that is not an aggregate.
fn single(
    record: Record,
    options: PacketOptions,
    beside: Vec<(usize, Beside)>,
) -> Result<RestoredRecord, BadNote> {
    let mut beside = beside.into_iter();
    let Beside { time, head, .. } = match beside.next() {
        Some((0, beside)) if beside.options.is_empty() => beside,
        Some(_) => return Err(BadNote("speaks of more packets than it has")),
        None => Beside::default(),
    };
    if beside.next().is_some() {
        return Err(BadNote("speaks of more packets than it has"));
    }
    Ok(RestoredRecord {
        interface: record.interface,
        at: record.at,
        time,
        original_bytes: record.original_bytes,
        bytes: record.bytes,
        head: head.into(),
        options,
    })
}
