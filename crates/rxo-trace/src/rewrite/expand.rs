//! The original capture out of a coalesced one.

use std::io::Write;

use rxo_device::capture::{Capture, Interface, Record};
use rxo_frame::Instant;
use serde::Serialize;

use super::RewriteError;
use super::digest::{Digest, PacketOptions};
use super::note::{self, BadNote, Merged};
use super::order::{Given, Order};
use super::origin::Origin;
use super::original::{FileFormat, Original};
use super::remark::{End, Remark, apart};

/// What was given back.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Expanded {
    /// Packets of the coalesced capture.
    pub packets: u64,
    /// Aggregates among them.
    pub aggregates: u64,
    /// Original packets written.
    pub originals: u64,
    /// Whether the capture that was coalesced had itself not been read to its end.
    pub original_was_partial: bool,
}

/// Gives back what a coalesced capture was made of.
#[derive(Debug)]
pub struct Expander<W: Write> {
    file: Original<W>,
    /// Of every interface, as far as told.
    snaps: Vec<Option<u32>>,
    interfaces: usize,
    order: Order,
    digest: Digest,
    end: Option<End>,
    figures: Expanded,
}

impl<W: Write> Expander<W> {
    /// Begins, once the first batch of `capture` was read. `format` is that of the file to write;
    /// `None` for the one that the original had.
    ///
    /// # Errors
    /// The capture is not one of ours, or the output cannot be written.
    pub fn new(
        capture: &Capture,
        output: W,
        format: Option<FileFormat>,
    ) -> Result<Self, RewriteError> {
        let origin = Origin::read(capture)?;
        Ok(Self {
            file: Original::begin(output, &origin, format)?,
            snaps: origin.snaps,
            interfaces: 0,
            order: Order::default(),
            digest: Digest::default(),
            end: origin.end,
            figures: Expanded::default(),
        })
    }

    /// Takes all `records`; `interfaces` are the capture's, as far as known.
    ///
    /// # Errors
    /// The capture was changed since it was coalesced, or the output cannot be written.
    pub fn take(
        &mut self,
        interfaces: &[Interface],
        records: &mut Vec<Record>,
    ) -> Result<(), RewriteError> {
        for record in records.drain(..) {
            self.figures.packets += 1;
            let packet = self.figures.packets;
            self.put(&record).map_err(|why| RewriteError::Packet { packet, why })?;
            self.add_interfaces(interfaces)?;
            while let Some(given) = self.order.next() {
                self.give(&given)?;
            }
        }
        Ok(())
    }

    /// What was given back so far.
    #[must_use]
    pub const fn figures(&self) -> &Expanded {
        &self.figures
    }

    /// Writes the rest, and gives the output back.
    ///
    /// # Errors
    /// Something is missing or was changed, or the output cannot be written.
    pub fn finish(mut self, interfaces: &[Interface]) -> Result<(W, Expanded), RewriteError> {
        self.add_interfaces(interfaces)?;
        let end = self.end.take().ok_or(RewriteError::Changed("its last packets are missing"))?;
        if !self.order.is_empty() || end.records != self.digest.records {
            return Err(RewriteError::Changed("packets are missing"));
        }
        if end.digest != self.digest.sum() {
            return Err(RewriteError::Changed("packets differ from those that were written"));
        }
        self.figures.original_was_partial = end.is_partial;
        self.file.put_cut_record(&end.cut_record)?;
        Ok((self.file.finish()?, self.figures))
    }

    /// Writes what there is of a capture that could not be read to its end, in order, and gives
    /// the output back.
    ///
    /// # Errors
    /// The output cannot be written.
    pub fn finish_partial(mut self) -> Result<(W, Expanded), RewriteError> {
        while let Some(given) = self.order.next_of_rest() {
            self.give(&given)?;
        }
        Ok((self.file.finish()?, self.figures))
    }

    /// Restores what one packet was made of.
    fn put(&mut self, record: &Record) -> Result<(), BadNote> {
        if self.end.is_some() {
            return Err(BadNote("came after the last"));
        }
        let (options, ours) = if record.options.is_empty() {
            <(PacketOptions, Vec<u8>)>::default()
        } else {
            apart(&record.options)
        };
        let remark = Remark::read(&ours)?;
        self.snaps.extend_from_slice(&remark.snaps);
        self.end = remark.end;
        match &remark.note {
            Some(note) => self.aggregate(record, note, remark.options),
            None => self.single(record, options),
        }
    }

    fn single(&mut self, record: &Record, options: PacketOptions) -> Result<(), BadNote> {
        let given = Given {
            interface: record.interface,
            at: record.at,
            original_bytes: record.original_bytes,
            bytes: record.bytes.as_ref().to_vec(),
            options,
        };
        self.order.put(self.order.next_place(), given)
    }

    fn aggregate(
        &mut self,
        record: &Record,
        note: &[u8],
        options: Vec<(usize, PacketOptions)>,
    ) -> Result<(), BadNote> {
        self.figures.aggregates += 1;
        let merged = Merged {
            bytes: record.bytes.as_ref(),
            at_ns: record.at.as_nanos(),
            expected_place: self.order.next_place(),
        };
        let mut restored = note::read(merged, note)?;
        let mut options = options.into_iter().peekable();
        for (number, restored) in restored.drain(..).enumerate() {
            let own = options.next_if(|(of, _)| *of == number).map(|(_, options)| options);
            let given = Given {
                interface: record.interface,
                at: Instant::from_nanos(restored.at_ns),
                original_bytes: restored.original_bytes,
                bytes: restored.bytes,
                options: own.unwrap_or_default(),
            };
            self.order.put(restored.place, given)?;
        }
        if options.next().is_some() {
            return Err(BadNote("speaks of more packets than it has"));
        }
        Ok(())
    }

    /// Describes the interfaces that are known, and whose snap lengths are.
    fn add_interfaces(&mut self, interfaces: &[Interface]) -> Result<(), RewriteError> {
        let told = interfaces.iter().zip(&self.snaps).skip(self.interfaces);
        let told: Vec<Interface> = told
            .map(|(interface, snap)| Interface { snap_bytes: *snap, ..interface.clone() })
            .collect();
        for interface in told {
            self.file.add_interface(&interface)?;
            self.interfaces += 1;
        }
        Ok(())
    }

    fn give(&mut self, given: &Given) -> Result<(), RewriteError> {
        if given.interface as usize >= self.interfaces {
            return Err(RewriteError::Changed("an interface is described that was not there"));
        }
        let about = (given.interface, given.at, given.original_bytes);
        self.digest.add(about, &given.bytes, &given.options);
        self.figures.originals += 1;
        self.file.write(given)
    }
}
