//! Writes a pcapng file with the sections, interfaces and times in ticks of the file that was read, including
//! packets without a time.
//!
//! The other methods of the writer create the section and choose the clock resolution themselves. With the
//! methods of this module, the caller writes the sections and chooses the clock resolution, and interfaces are
//! numbered within their section.

use std::io::{BufWriter, Write};

use super::{BUFFER_BYTES, CaptureWriter, WriteError};
use crate::LinkType;
use crate::limits::INTERFACES;

/// A packet with the fields that it has in the file that was read.
#[derive(Clone, Copy, Debug)]
pub struct Verbatim<'a> {
    /// The number of the packet's interface within the section.
    pub interface: u32,
    /// The time of the packet in ticks of its interface. `None` makes a simple packet block, which has neither time nor
    /// options, and belongs to the section's first interface.
    pub ticks: Option<u64>,
    /// The length of the packet on the wire, in bytes.
    pub original_bytes: u32,
    /// The captured bytes of the packet.
    pub bytes: &'a [u8],
    /// The options of the packet, encoded as by [`put_option`](crate::put_option).
    pub options: &'a [u8],
}

impl<W: Write> CaptureWriter<W> {
    /// Creates a writer that has written nothing yet. [`section`](Self::section) must be called first.
    pub fn verbatim(output: W) -> Self {
        Self {
            output: BufWriter::with_capacity(BUFFER_BYTES, output),
            interfaces: 0,
            head: Vec::new(),
            tail: Vec::new(),
        }
    }

    /// Begins a section with `options` and no interfaces.
    ///
    /// # Errors
    /// If the output cannot be written.
    pub fn section(&mut self, options: &[u8]) -> Result<(), WriteError> {
        self.begin();
        self.tail.extend_from_slice(options);
        self.write_section()
    }

    /// Adds the next interface of the section, with the fields that it has in the file that was read. Returns its
    /// number in the section.
    ///
    /// # Errors
    /// If the output cannot be written, or there are too many interfaces.
    pub fn describe(
        &mut self,
        link: LinkType,
        snap_bytes: u32,
        options: &[u8],
    ) -> Result<u32, WriteError> {
        if self.interfaces as usize == INTERFACES {
            return Err(WriteError::TooManyInterfaces);
        }
        self.begin();
        self.tail.extend_from_slice(options);
        self.write_interface(link, snap_bytes)
    }

    /// Writes one packet with the fields that it has in the file that was read.
    ///
    /// # Errors
    /// If the output cannot be written, the section has no such interface, or the block would be
    /// too long.
    pub fn write_verbatim(&mut self, packet: &Verbatim<'_>) -> Result<(), WriteError> {
        self.begin();
        let Verbatim { interface, ticks, original_bytes, bytes, options } = *packet;
        if let Some(ticks) = ticks {
            self.tail.extend_from_slice(options);
            return self.write_enhanced(interface, ticks, original_bytes, &[bytes]);
        }
        if interface > 0 || self.interfaces == 0 {
            return Err(WriteError::UnknownInterface(interface));
        }
        self.head.extend(original_bytes.to_le_bytes());
        self.write_block(3, &[bytes])
    }
}
