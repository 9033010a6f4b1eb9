//! Writes the restored file. In its original format, the file is restored byte for byte (pcap) or block for
//! block (pcapng). The file can also be written in the other format, if that format can represent all packets.

mod pcap;
mod pcapng;

use rxo_capture::{Clock, Described, Part};

use self::pcap::PcapFile;
use self::pcapng::{FreshFile, SameFile};
use super::order::RestoredRecord;
use super::origin::Origin;
use super::{RewriteError, RewriteOutput};

/// A format of capture files.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FileFormat {
    /// The pcap format: one link type per file, and no options on packets.
    Pcap,
    /// The pcapng format.
    PcapNg,
}

/// The restored file that is being written.
#[derive(Debug)]
pub(super) enum Original<'w> {
    /// A pcap file, with its original header or a new one.
    Pcap(Box<PcapFile<'w>>),
    /// A pcapng file whose original was pcapng.
    Same(Box<SameFile<'w>>),
    /// A pcapng file whose original was pcap.
    Fresh(Box<FreshFile<'w>>),
}

impl<'w> Original<'w> {
    /// Begins the restored file in `format`; `None` means the format of the original capture.
    pub(super) fn begin(
        output: RewriteOutput<'w>,
        origin: &Origin,
        format: Option<FileFormat>,
    ) -> Result<Self, RewriteError> {
        let header = origin.pcap_header;
        let had = if header.is_some() { FileFormat::Pcap } else { FileFormat::PcapNg };
        Ok(match (format.unwrap_or(had), header) {
            (FileFormat::Pcap, header) => Self::Pcap(Box::new(PcapFile::new(output, header))),
            (FileFormat::PcapNg, None) => Self::Same(Box::new(SameFile::new(output))),
            (FileFormat::PcapNg, Some(_)) => Self::Fresh(Box::new(FreshFile::new(output)?)),
        })
    }

    /// Adds further sections and interfaces of the original capture.
    pub(super) fn describe(&mut self, described: &[Described]) -> Result<(), RewriteError> {
        match self {
            Self::Pcap(file) => described.iter().try_for_each(|one| file.describe(&one.part)),
            Self::Same(file) => {
                file.describe(described);
                Ok(())
            }
            Self::Fresh(file) => described.iter().try_for_each(|one| file.describe(&one.part)),
        }
    }

    /// Writes the next record. `ticks` is the time of the record in the unit of the original capture; `None` if
    /// the record has no time.
    pub(super) fn write(
        &mut self,
        record: &RestoredRecord,
        ticks: Option<u64>,
    ) -> Result<(), RewriteError> {
        match self {
            Self::Pcap(file) => file.write(record, ticks),
            Self::Same(file) => file.write(record, ticks),
            Self::Fresh(file) => file.write(record),
        }
    }

    /// Writes the truncated record at the end of the original capture.
    pub(super) fn put_cut_record(&mut self, bytes: &[u8]) -> Result<(), RewriteError> {
        match self {
            Self::Pcap(file) => file.put_cut_record(bytes),
            Self::Same(_) | Self::Fresh(_) => Ok(()),
        }
    }

    /// Drops the descriptions of sections and interfaces that come after a missing record.
    pub(super) fn leave_out_rest(&mut self) {
        if let Self::Same(file) = self {
            file.leave_out_rest();
        }
    }

    /// Writes the data that is still buffered, and ends the file.
    pub(super) fn finish(self) -> Result<(), RewriteError> {
        match self {
            Self::Pcap(file) => file.finish(),
            Self::Same(file) => file.finish(),
            Self::Fresh(file) => file.finish(),
        }
    }
}

/// Returns the clocks of the interfaces in `described`, in order. `header` is the header of the original file
/// if the original was a pcap file; otherwise `None`.
pub(super) fn clocks<'a>(
    described: &'a [Described],
    pcap_header: Option<&[u8; 24]>,
) -> impl Iterator<Item = Clock> + 'a {
    let of_pcap = pcap_header.map(pcap::clock);
    described.iter().filter_map(move |one| match &one.part {
        Part::Section { .. } => None,
        Part::Interface { options, .. } => {
            Some(of_pcap.unwrap_or_else(|| Clock::of_interface(options)))
        }
    })
}
