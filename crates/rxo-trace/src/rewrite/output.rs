//! The coalesced file.
//!
//! One packet stays back until the next is there, because the last one says what all were. The
//! file begins with its first packet, because its section says whether there is one.

use std::io::Write;

use rxo_device::capture::{CaptureWriter, Interface, Packet};
use rxo_frame::Instant;

use super::RewriteError;
use super::digest::PacketOptions;
use super::origin::Origin;
use super::remark::{End, Remark, customs};

/// A packet of the coalesced file.
#[derive(Debug)]
pub(super) struct Written {
    pub(super) interface: u32,
    pub(super) at: Instant,
    pub(super) original_bytes: u32,
    pub(super) bytes: Vec<u8>,
    pub(super) comment: Option<String>,
    pub(super) options: PacketOptions,
    pub(super) remark: Remark,
}

/// The coalesced file being written.
#[derive(Debug)]
pub(super) struct Output<W: Write> {
    origin: Origin,
    comment: String,
    file: File<W>,
    /// How many of the capture's interfaces the file has.
    interfaces: usize,
    last: Option<Written>,
    /// What rides beside packets, in bytes.
    pub(super) remark_bytes: u64,
}

#[derive(Debug)]
enum File<W: Write> {
    NotBegun(W),
    Begun(CaptureWriter<W>),
    /// Beginning it failed.
    Lost,
}

impl<W: Write> Output<W> {
    /// Nothing is written yet; `comment` is for whoever looks at the file.
    pub(super) const fn new(file: W, origin: Origin, comment: String) -> Self {
        let file = File::NotBegun(file);
        Self { origin, comment, file, interfaces: 0, last: None, remark_bytes: 0 }
    }

    /// Writes a packet, or rather the one before it. `interfaces` are the capture's, as far as
    /// known.
    pub(super) fn write(
        &mut self,
        interfaces: &[Interface],
        mut packet: Written,
    ) -> Result<(), RewriteError> {
        let known = self.interfaces;
        let is_first = matches!(self.file, File::NotBegun(_));
        self.add_interfaces(interfaces, None)?;
        if !is_first && interfaces.len() > known {
            packet.remark.snaps = snaps(interfaces.get(known..).unwrap_or_default());
        }
        let before = self.last.replace(packet);
        before.map_or(Ok(()), |packet| self.put(&packet))
    }

    /// Writes the rest, and gives the file back.
    pub(super) fn finish(
        mut self,
        interfaces: &[Interface],
        end: End,
    ) -> Result<(W, u64), RewriteError> {
        let known = self.interfaces;
        let of_no_packet = self.last.is_none().then(|| end.clone());
        self.add_interfaces(interfaces, of_no_packet)?;
        if let Some(mut last) = self.last.take() {
            last.remark.snaps.extend(snaps(interfaces.get(known..).unwrap_or_default()));
            last.remark.end = Some(end);
            self.put(&last)?;
        }
        match self.file {
            File::Begun(writer) => Ok((writer.finish()?, self.remark_bytes)),
            File::NotBegun(_) | File::Lost => Err(LOST),
        }
    }

    /// Begins the file if it is not yet, and describes what is new. An aggregate is longer than
    /// any snap length, so none is written; they are remembered.
    fn add_interfaces(
        &mut self,
        interfaces: &[Interface],
        of_no_packet: Option<End>,
    ) -> Result<(), RewriteError> {
        if let File::NotBegun(_) = self.file
            && let File::NotBegun(file) = std::mem::replace(&mut self.file, File::Lost)
        {
            self.origin.end = of_no_packet;
            self.origin.snaps = snaps(interfaces);
            let ours = self.origin.bytes();
            let comments = [self.comment.as_str()];
            let writer =
                CaptureWriter::with_section(file, APPLICATION, &comments, &customs(&ours))?;
            self.file = File::Begun(writer);
        }
        let File::Begun(writer) = &mut self.file else { return Err(LOST) };
        for interface in interfaces.get(self.interfaces..).unwrap_or_default() {
            writer.add_interface(&Interface { snap_bytes: None, ..interface.clone() })?;
        }
        self.interfaces = self.interfaces.max(interfaces.len());
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
            pieces: &[&packet.bytes],
            direction: None,
            comments: comment.as_slice(),
            custom: &customs(&ours),
        };
        Ok(writer.write_with(&written, &packet.options)?)
    }
}

fn snaps(interfaces: &[Interface]) -> Vec<Option<u32>> {
    interfaces.iter().map(|interface| interface.snap_bytes).collect()
}

const LOST: RewriteError = RewriteError::Changed("writing went on after an error");

const APPLICATION: &str = concat!("rxo ", env!("CARGO_PKG_VERSION"));
