//! Writes the coalesced file.
//!
//! Each packet is written when the next packet arrives, because the last packet contains the totals. The
//! beginning of the file is written together with the first packet, because the section header contains the
//! totals if there are no packets.

use rxo_capture::{CaptureWriter, Clock, Described, Interface, Packet, SharedBytes};
use rxo_frame::Instant;

use super::beside::PacketOptions;
use super::origin::Origin;
use super::original::clocks;
use super::remark::{End, Remark, customs};
use super::{RewriteError, RewriteOutput};

/// A packet that is written to the coalesced file.
#[derive(Debug)]
pub(super) struct Written {
    pub(super) interface: u32,
    pub(super) at: Instant,
    pub(super) original_bytes: u32,
    pub(super) bytes: SharedBytes,
    pub(super) comment: Option<String>,
    pub(super) options: PacketOptions,
    pub(super) remark: Remark,
}

/// The coalesced file that is being written.
#[derive(Debug)]
pub(super) struct Output<'w> {
    origin: Origin,
    comment: String,
    file: File<'w>,
    /// The sections and interfaces of the capture that was coalesced.
    described: Vec<Described>,
    /// The number of descriptions of sections and interfaces that the file already contains.
    described_count: usize,
    /// The number of the capture's interfaces that the file already contains.
    interfaces: usize,
    last: Option<Written>,
    /// The total number of bytes of custom options.
    remark_bytes: u64,
}

#[derive(Debug)]
enum File<'w> {
    NotBegun(RewriteOutput<'w>),
    Begun(CaptureWriter<RewriteOutput<'w>>),
    /// An error occurred while the beginning of the file was written, so nothing more is written.
    Lost,
}

impl<'w> Output<'w> {
    /// Creates an output that has written nothing. `comment` becomes the comment of the section header, for
    /// people who open the file.
    pub(super) fn new(file: RewriteOutput<'w>, origin: Origin, comment: String) -> Self {
        let (file, described) = (File::NotBegun(file), Vec::new());
        Self {
            origin,
            comment,
            file,
            described,
            described_count: 0,
            interfaces: 0,
            last: None,
            remark_bytes: 0,
        }
    }

    /// Stores the sections and interfaces of the capture that were described since the last call. Returns the
    /// timestamp clock of each new interface.
    pub(super) fn learn(&mut self, described: &[Described]) -> Vec<Clock> {
        let new = described.get(self.described.len()..).unwrap_or_default();
        self.described.extend_from_slice(new);
        clocks(new, self.origin.pcap_header.as_ref()).collect()
    }

    /// Returns the parts of the original file besides its packets: the header of a pcap file, and the
    /// descriptions of sections and interfaces.
    pub(super) fn around(&self) -> (Option<&[u8; 24]>, &[Described]) {
        (self.origin.pcap_header.as_ref(), &self.described)
    }

    /// Writes the packet of the previous call, and keeps `packet` until the next call. `interfaces` are the
    /// interfaces that the capture has described so far.
    pub(super) fn write(
        &mut self,
        interfaces: &[Interface],
        mut packet: Written,
    ) -> Result<(), RewriteError> {
        self.begin(None)?;
        self.add_interfaces(interfaces)?;
        packet.remark.described = self.take_new_descriptions();
        let before = self.last.replace(packet);
        before.map_or(Ok(()), |packet| self.put(&packet))
    }

    /// Writes the kept packet with the totals, and ends the file. Returns the number of bytes in custom options.
    pub(super) fn finish(
        mut self,
        interfaces: &[Interface],
        end: End,
    ) -> Result<u64, RewriteError> {
        let of_no_packet = self.last.is_none().then(|| end.clone());
        self.begin(of_no_packet)?;
        self.add_interfaces(interfaces)?;
        if let Some(mut last) = self.last.take() {
            last.remark.described.extend(self.take_new_descriptions());
            last.remark.end = Some(end);
            self.put(&last)?;
        }
        match self.file {
            File::Begun(writer) => {
                writer.finish()?;
                Ok(self.remark_bytes)
            }
            File::NotBegun(_) | File::Lost => Err(LOST),
        }
    }

    /// Returns the descriptions of sections and interfaces that were recorded since the last call.
    fn take_new_descriptions(&mut self) -> Vec<Described> {
        let described_count = std::mem::replace(&mut self.described_count, self.described.len());
        self.described.get(described_count..).unwrap_or_default().to_vec()
    }

    /// Writes the beginning of the file, unless it was written already. `of_no_packet` are the totals of a
    /// capture without packets; `None` if the capture has packets.
    fn begin(&mut self, of_no_packet: Option<End>) -> Result<(), RewriteError> {
        if let File::NotBegun(_) = self.file
            && let File::NotBegun(file) = std::mem::replace(&mut self.file, File::Lost)
        {
            self.origin.end = of_no_packet;
            self.origin.described = self.take_new_descriptions();
            let ours = self.origin.bytes();
            let comments = [self.comment.as_str()];
            let writer =
                CaptureWriter::with_section(file, APPLICATION, &comments, &customs(&ours))?;
            self.file = File::Begun(writer);
        }
        Ok(())
    }

    /// Adds descriptions of new interfaces to the file, without a snap length, because aggregates may exceed
    /// the snap length of the original capture.
    fn add_interfaces(&mut self, interfaces: &[Interface]) -> Result<(), RewriteError> {
        let File::Begun(writer) = &mut self.file else { return Err(LOST) };
        for interface in interfaces.get(self.interfaces..).unwrap_or_default() {
            writer.add_interface(&Interface { snap_bytes: None, ..interface.clone() })?;
            self.interfaces += 1;
        }
        Ok(())
    }

    fn put(&mut self, packet: &Written) -> Result<(), RewriteError> {
        let File::Begun(writer) = &mut self.file else { return Err(LOST) };
        let ours = packet.remark.bytes();
        self.remark_bytes += ours.len() as u64;
        let comment = packet.comment.as_deref();
        let written = Packet {
            interface: packet.interface,
            at: packet.at,
            original_bytes: packet.original_bytes,
            pieces: &[packet.bytes.as_ref()],
            direction: None,
            comments: comment.as_slice(),
            custom: &customs(&ours),
        };
        Ok(writer.write_with(&written, &packet.options)?)
    }
}

const LOST: RewriteError = RewriteError::Changed("writing went on after an error");

const APPLICATION: &str = concat!("rxo ", env!("CARGO_PKG_VERSION"));
