//! Writes pcapng files. A file has one section, with times in nanoseconds and packets in any number of pieces.
//! The module [`verbatim`] writes files with the same sections, interfaces and times as another file.

mod verbatim;

use std::io::{self, BufWriter, Write};

use rxo_frame::Instant;
use thiserror::Error;

use super::limits::{INTERFACES, RECORD_BYTES};
use super::{Direction, Interface, LinkType};

pub use self::verbatim::Verbatim;

/// A pcapng file that is being written, in little-endian byte order.
///
/// Output is buffered. [`finish`](Self::finish) writes the buffered bytes and reports errors. Dropping the
/// writer instead ignores the errors of this last write.
#[derive(Debug)]
pub struct CaptureWriter<W: Write> {
    output: BufWriter<W>,
    /// The number of interfaces in the section so far.
    interfaces: u32,
    /// The bytes of the current block before the packet. The memory is reused.
    head: Vec<u8>,
    tail: Vec<u8>,
}

/// A packet to write.
#[derive(Clone, Copy, Debug)]
pub struct Packet<'a> {
    /// The number of the packet's interface, as [`CaptureWriter::add_interface`] returned it.
    pub interface: u32,
    /// The time of the packet in nanoseconds since 1970 UTC.
    pub at: Instant,
    /// The length of the packet on the wire, in bytes.
    pub original_bytes: u32,
    /// The bytes of the packet, from its first link-layer byte, in any number of pieces.
    pub pieces: &'a [&'a [u8]],
    /// The direction of the packet; `None` if it is unknown.
    pub direction: Option<Direction>,
    /// Comments on the packet, which Wireshark shows.
    pub comments: &'a [&'a str],
    /// Custom options of the packet.
    pub custom: &'a [Custom<'a>],
}

/// A custom option: bytes under an enterprise number. The option is marked so that tools that change the packet
/// do not copy it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Custom<'a> {
    /// The private enterprise number that IANA has assigned to the writer.
    pub enterprise: u32,
    /// The bytes of the option, at most [`Custom::MOST_BYTES`]. Longer values must be split into several options; their
    /// order is preserved.
    pub bytes: &'a [u8],
}

impl Custom<'_> {
    /// The maximum number of bytes of one custom option: its length has 16 bits and includes the enterprise number.
    pub const MOST_BYTES: usize = MOST_OPTION_BYTES - 4;
}

/// The reason why a capture cannot be written.
#[derive(Debug, Error)]
pub enum WriteError {
    /// The system refused to write.
    #[error(transparent)]
    Io(#[from] io::Error),
    /// An option has this number of bytes, which do not fit its 16-bit length. The caller must split the
    /// option.
    #[error("an option of {0} bytes does not fit into pcapng, which allows 65535; split it")]
    OptionTooLong(usize),
    /// A packet has this number of bytes, which are too many: a reader would refuse the block.
    #[error("a block of {0} bytes is longer than the {RECORD_BYTES} that are read back")]
    PacketTooLong(usize),
    /// The packet names an interface with this number, which was not added before.
    #[error("interface {0} was not added to the capture")]
    UnknownInterface(u32),
    /// The file has the maximum number of interfaces: a reader would refuse another one.
    #[error("a capture has at most {INTERFACES} interfaces")]
    TooManyInterfaces,
}

/// The size of the output buffer, in bytes. Longer packets are written directly to the output.
const BUFFER_BYTES: usize = 32 * 1024;

/// The maximum length of an option's value, in bytes.
const MOST_OPTION_BYTES: usize = u16::MAX as usize;

mod code {
    pub(super) const END: u16 = 0;
    pub(super) const COMMENT: u16 = 1;
    pub(super) const PACKET_FLAGS: u16 = 2;
    pub(super) const INTERFACE_NAME: u16 = 2;
    pub(super) const SECTION_APPLICATION: u16 = 4;
    pub(super) const INTERFACE_RESOLUTION: u16 = 9;
    pub(super) const CUSTOM_BYTES_NOT_COPIED: u16 = 19373;
}

impl<W: Write> CaptureWriter<W> {
    /// Begins a file on `output`. The section of the file names `application` as the writer.
    ///
    /// # Errors
    /// If `output` cannot be written, or `application` is too long for an option.
    ///
    /// # Examples
    /// ```
    /// use rxo_capture::{CaptureWriter, Interface, LinkType, Packet};
    /// use rxo_frame::Instant;
    ///
    /// let mut writer = CaptureWriter::new(Vec::new(), "an example")?;
    /// let ethernet = Interface { link: LinkType::ETHERNET, snap_bytes: None, name: None };
    /// let interface = writer.add_interface(&ethernet)?;
    /// writer.write(&Packet {
    ///     interface,
    ///     at: Instant::from_micros(5),
    ///     original_bytes: 60,
    ///     pieces: &[&[1; 20], &[2; 40]],
    ///     direction: None,
    ///     comments: &["seen twice"],
    ///     custom: &[],
    /// })?;
    /// let file = writer.finish()?;
    /// assert_eq!(file[..4], [0x0a, 0x0d, 0x0d, 0x0a]);
    /// # Ok::<(), rxo_capture::WriteError>(())
    /// ```
    pub fn new(output: W, application: &str) -> Result<Self, WriteError> {
        Self::with_section(output, application, &[], &[])
    }

    /// Begins a file like [`new`](Self::new), and adds comments and custom options to the section.
    ///
    /// # Errors
    /// If `output` cannot be written, or an option is too long.
    pub fn with_section(
        output: W,
        application: &str,
        comments: &[&str],
        custom: &[Custom<'_>],
    ) -> Result<Self, WriteError> {
        let mut writer = Self::verbatim(output);
        writer.begin();
        writer.comments(comments)?;
        writer.option(code::SECTION_APPLICATION, &[application.as_bytes()])?;
        writer.customs(custom)?;
        writer.write_section()?;
        Ok(writer)
    }

    /// Adds an interface and returns its number for packets. Times are written in nanoseconds.
    ///
    /// # Errors
    /// If the output cannot be written, the name is too long for an option, or there are too many
    /// interfaces.
    pub fn add_interface(&mut self, interface: &Interface) -> Result<u32, WriteError> {
        if self.interfaces as usize == INTERFACES {
            return Err(WriteError::TooManyInterfaces);
        }
        self.begin();
        if let Some(name) = &interface.name {
            self.option(code::INTERFACE_NAME, &[name.as_bytes()])?;
        }
        self.option(code::INTERFACE_RESOLUTION, &[&[9]])?;
        self.write_interface(interface.link, interface.snap_bytes.unwrap_or(0))
    }

    /// Writes one packet. The pieces of the packet are not joined first.
    ///
    /// # Errors
    /// If the output cannot be written, the interface was not added, or a comment, a custom option or the whole
    /// packet is too long. Nothing of a refused packet is written to the file.
    pub fn write(&mut self, packet: &Packet<'_>) -> Result<(), WriteError> {
        self.write_with(packet, &[])
    }

    /// Writes one packet with additional options, which precede the packet's own. `options` is encoded as by
    /// [`put_option`](super::put_option).
    ///
    /// # Errors
    /// The errors of [`write`](Self::write).
    pub fn write_with(&mut self, packet: &Packet<'_>, options: &[u8]) -> Result<(), WriteError> {
        self.begin();
        self.tail.extend_from_slice(options);
        self.packet_options(packet)?;
        let nanos = packet.at.as_nanos();
        self.write_enhanced(packet.interface, nanos, packet.original_bytes, packet.pieces)
    }

    /// Writes the buffered bytes and returns the output.
    ///
    /// # Errors
    /// If the output cannot be written.
    pub fn finish(self) -> Result<W, WriteError> {
        let mut output = self.output.into_inner().map_err(io::IntoInnerError::into_error)?;
        output.flush()?;
        Ok(output)
    }

    fn begin(&mut self) {
        self.head.clear();
        self.tail.clear();
    }

    fn packet_options(&mut self, packet: &Packet<'_>) -> Result<(), WriteError> {
        self.comments(packet.comments)?;
        if let Some(direction) = packet.direction {
            let flags: u32 = match direction {
                Direction::In => 0b01,
                Direction::Out => 0b10,
            };
            self.option(code::PACKET_FLAGS, &[&flags.to_le_bytes()])?;
        }
        self.customs(packet.custom)
    }

    fn comments(&mut self, comments: &[&str]) -> Result<(), WriteError> {
        comments.iter().try_for_each(|text| self.option(code::COMMENT, &[text.as_bytes()]))
    }

    fn customs(&mut self, customs: &[Custom<'_>]) -> Result<(), WriteError> {
        customs.iter().try_for_each(|custom| {
            let enterprise = custom.enterprise.to_le_bytes();
            self.option(code::CUSTOM_BYTES_NOT_COPIED, &[&enterprise, custom.bytes])
        })
    }

    fn option(&mut self, code: u16, pieces: &[&[u8]]) -> Result<(), WriteError> {
        let bytes = pieces.iter().map(|piece| piece.len()).sum::<usize>();
        let len = u16::try_from(bytes).map_err(|_| WriteError::OptionTooLong(bytes))?;
        self.tail.extend(code.to_le_bytes());
        self.tail.extend(len.to_le_bytes());
        pieces.iter().for_each(|piece| self.tail.extend_from_slice(piece));
        self.tail.resize(self.tail.len().next_multiple_of(4), 0);
        Ok(())
    }

    /// Writes the section header, with the options that were prepared in `tail`.
    fn write_section(&mut self) -> Result<(), WriteError> {
        self.head.extend(0x1a2b_3c4d_u32.to_le_bytes());
        self.head.extend([1, 0, 0, 0]);
        // -1 means that the section's length is unknown.
        self.head.extend((-1_i64).to_le_bytes());
        self.interfaces = 0;
        self.write_block(0x0a0d_0d0a, &[])
    }

    /// Writes an interface description, with the options that were prepared in `tail`. Returns the interface's number
    /// in the section.
    fn write_interface(&mut self, link: LinkType, snap_bytes: u32) -> Result<u32, WriteError> {
        self.head.extend(link.0.to_le_bytes());
        self.head.extend([0, 0]);
        self.head.extend(snap_bytes.to_le_bytes());
        self.write_block(1, &[])?;
        self.interfaces += 1;
        Ok(self.interfaces - 1)
    }

    /// Writes an enhanced packet block, with the options that were prepared in `tail`.
    fn write_enhanced(
        &mut self,
        interface: u32,
        ticks: u64,
        original_bytes: u32,
        pieces: &[&[u8]],
    ) -> Result<(), WriteError> {
        if interface >= self.interfaces {
            return Err(WriteError::UnknownInterface(interface));
        }
        let kept_bytes = pieces.iter().map(|piece| piece.len()).sum::<usize>();
        let (high, low) = ((ticks >> 32) as u32, ticks as u32);
        for number in [interface, high, low, kept_bytes as u32, original_bytes] {
            self.head.extend(number.to_le_bytes());
        }
        self.write_block(6, pieces)
    }

    fn end_options(&mut self) {
        if !self.tail.is_empty() {
            self.tail.extend(code::END.to_le_bytes());
            self.tail.extend([0, 0]);
        }
    }

    /// Writes a block of type `kind`: the prepared head, the packet, and the prepared tail. Fails if a reader
    /// would refuse the block.
    fn write_block(&mut self, kind: u32, packet: &[&[u8]]) -> Result<(), WriteError> {
        self.end_options();
        let packet_bytes = packet.iter().map(|piece| piece.len()).sum::<usize>();
        let padding = packet_bytes.next_multiple_of(4) - packet_bytes;
        let length = 12 + self.head.len() + packet_bytes + padding + self.tail.len();
        if length > RECORD_BYTES {
            return Err(WriteError::PacketTooLong(length));
        }
        let length = (length as u32).to_le_bytes();
        self.output.write_all(&kind.to_le_bytes())?;
        self.output.write_all(&length)?;
        self.output.write_all(&self.head)?;
        for piece in packet {
            self.output.write_all(piece)?;
        }
        self.output.write_all(&[0; 3][..padding])?;
        self.output.write_all(&self.tail)?;
        self.output.write_all(&length)?;
        Ok(())
    }
}
