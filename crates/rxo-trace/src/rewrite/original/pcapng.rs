//! Writes the restored file as pcapng, whether the original was pcapng ([`SameFile`]) or pcap
//! ([`FreshFile`]).

use std::collections::VecDeque;

use rxo_capture::{CaptureWriter, Described, Interface, Packet, Part, Verbatim};

use super::super::order::RestoredRecord;
use super::super::{RewriteError, RewriteOutput};

/// A pcapng file with its original sections, interfaces and times. Each section and interface is written
/// between the same packets as in the original, because a section ends the previous one.
#[derive(Debug)]
pub(in super::super) struct SameFile<'w> {
    writer: CaptureWriter<RewriteOutput<'w>>,
    /// The sections and interfaces that are not written yet.
    waiting: VecDeque<Described>,
    records: u64,
    /// The number of interfaces written, in all sections.
    interfaces: u32,
    /// The number of interfaces in earlier sections, which is the index of the current section's first
    /// interface.
    first_interface: u32,
}

impl<'w> SameFile<'w> {
    pub(super) fn new(output: RewriteOutput<'w>) -> Self {
        let writer = CaptureWriter::verbatim(output);
        Self { writer, waiting: VecDeque::new(), records: 0, interfaces: 0, first_interface: 0 }
    }

    pub(super) fn describe(&mut self, described: &[Described]) {
        self.waiting.extend(described.iter().cloned());
    }

    pub(super) fn write(
        &mut self,
        record: &RestoredRecord,
        ticks: Option<u64>,
    ) -> Result<(), RewriteError> {
        while let Some(next) = self.waiting.pop_front_if(|next| next.records_before <= self.records)
        {
            self.put(&next.part)?;
        }
        self.records += 1;
        if record.interface >= self.interfaces {
            return Err(NOT_DESCRIBED);
        }
        let interface = record.interface.checked_sub(self.first_interface).ok_or(NOT_DESCRIBED)?;
        Ok(self.writer.write_verbatim(&Verbatim {
            interface,
            ticks,
            original_bytes: record.original_bytes,
            bytes: record.bytes.as_ref(),
            options: &record.options,
        })?)
    }

    fn put(&mut self, part: &Part) -> Result<(), RewriteError> {
        match part {
            Part::Section { options } => {
                self.first_interface = self.interfaces;
                self.writer.section(options)?;
            }
            Part::Interface { link, snap_bytes, options } => {
                self.writer.describe(*link, *snap_bytes, options)?;
                self.interfaces += 1;
            }
        }
        Ok(())
    }

    pub(super) fn leave_out_rest(&mut self) {
        self.waiting.retain(|next| next.records_before <= self.records);
    }

    pub(super) fn finish(mut self) -> Result<(), RewriteError> {
        while let Some(next) = self.waiting.pop_front() {
            self.put(&next.part)?;
        }
        self.writer.finish()?;
        Ok(())
    }
}

const NOT_DESCRIBED: RewriteError =
    RewriteError::Changed("a packet is of an interface that its section does not have");

/// A pcapng file that is made from a pcap file, with times in nanoseconds.
#[derive(Debug)]
pub(in super::super) struct FreshFile<'w>(CaptureWriter<RewriteOutput<'w>>);

impl<'w> FreshFile<'w> {
    pub(super) fn new(output: RewriteOutput<'w>) -> Result<Self, RewriteError> {
        Ok(Self(CaptureWriter::new(output, APPLICATION)?))
    }

    pub(super) fn describe(&mut self, part: &Part) -> Result<(), RewriteError> {
        if let Part::Interface { link, snap_bytes, .. } = part {
            let snap_bytes = (*snap_bytes > 0).then_some(*snap_bytes);
            self.0.add_interface(&Interface { link: *link, snap_bytes, name: None })?;
        }
        Ok(())
    }

    pub(super) fn write(&mut self, record: &RestoredRecord) -> Result<(), RewriteError> {
        let packet = Packet {
            interface: record.interface,
            at: record.at,
            original_bytes: record.original_bytes,
            pieces: &[record.bytes.as_ref()],
            direction: None,
            comments: &[],
            custom: &[],
        };
        Ok(self.0.write(&packet)?)
    }

    pub(super) fn finish(self) -> Result<(), RewriteError> {
        self.0.finish()?;
        Ok(())
    }
}

const APPLICATION: &str = concat!("rxo ", env!("CARGO_PKG_VERSION"));
