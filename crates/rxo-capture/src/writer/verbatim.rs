//! Writes a pcapng file as it was read: sections, interfaces, times in ticks, packets without a
//! time.
//!
//! Separate from the other methods of the writer, which choose all of this themselves. Here the
//! caller decides, and numbers interfaces within their section.

use std::io::{BufWriter, Write};

use super::{BUFFER_BYTES, CaptureWriter, WriteError};
use crate::LinkType;
use crate::limits::INTERFACES;

/// A packet with the fields that it has in another file.
#[derive(Clone, Copy, Debug)]
pub struct Verbatim<'a> {
    /// Number of the packet's interface within the section.
    pub interface: u32,
    /// Time in ticks of the packet's interface. `None` makes a simple packet block, which has neither time nor options,
    /// and belongs to the section's first interface.
    pub ticks: Option<u64>,
    /// Length on the wire, in bytes.
    pub original_bytes: u32,
    /// The captured bytes.
    pub bytes: &'a [u8],
    /// The packet's options, encoded as by [`put_option`](crate::put_option).
    pub options: &'a [u8],
}

impl<W: Write> CaptureWriter<W> {
    /// Makes a writer that has written nothing. [`section`](Self::section) must be called first.
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

    /// Adds the section's next interface as in another file. Returns its number in the section.
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

    /// Writes one packet as in another file.
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
