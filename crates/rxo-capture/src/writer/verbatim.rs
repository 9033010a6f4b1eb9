//! Writes a pcapng file as it was read: sections, interfaces, times in ticks, packets without a time.
//!
//! Separate from the writer's other face, which chooses all of this itself: here the caller says
//! everything, and numbers interfaces within their section.

use std::io::{BufWriter, Write};

use super::{BUFFER_BYTES, CaptureWriter, WriteError};
use crate::LinkType;
use crate::limits::INTERFACES;

/// A packet as a file had it.
#[derive(Clone, Copy, Debug)]
pub struct Verbatim<'a> {
    /// The number of its interface within the section.
    pub interface: u32,
    /// When it was seen, in ticks of that interface; `None` makes a simple packet block, which has
    /// neither time nor options and belongs to the section's first interface.
    pub ticks: Option<u64>,
    /// How many bytes it had on the wire.
    pub original_bytes: u32,
    /// What is kept of them.
    pub bytes: &'a [u8],
    /// Its options, one after the other as [`put_option`](crate::put_option) makes them.
    pub options: &'a [u8],
}

impl<W: Write> CaptureWriter<W> {
    /// A file that does not begin yet: [`section`](Self::section) comes first.
    pub fn verbatim(output: W) -> Self {
        Self {
            output: BufWriter::with_capacity(BUFFER_BYTES, output),
            interfaces: 0,
            head: Vec::new(),
            tail: Vec::new(),
        }
    }

    /// Begins a section that says `options` of itself; it has no interfaces yet.
    ///
    /// # Errors
    /// When the output cannot be written.
    pub fn section(&mut self, options: &[u8]) -> Result<(), WriteError> {
        self.begin();
        self.tail.extend_from_slice(options);
        self.write_section()
    }

    /// Describes the section's next interface as a file had it, and says its number in the section.
    ///
    /// # Errors
    /// When the output cannot be written, or there are too many.
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

    /// Writes one packet as a file had it.
    ///
    /// # Errors
    /// When the output cannot be written, the section has no such interface, or the block would
    /// be too long.
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
