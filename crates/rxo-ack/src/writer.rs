//! Writes the later ACKs of a connection one by one, without a template.
//!
//! The writer is separate from the template because it needs neither an array of [`AckNumbers`] nor slots. It
//! serves a stack that writes its own packets, one ACK at a time, each into a buffer of its own.

use rxo_frame::{Frame, LinkKind};

use crate::pattern::{NotATemplate, Pattern};
use crate::{AckNumbers, IdRule};

/// Writes the ACKs that follow a given first ACK, byte for byte like an expanded
/// [`AckTemplate`](crate::AckTemplate).
///
/// # Examples
/// ```
/// use rxo_ack::{AckNumbers, AckWriter, IdRule};
/// use rxo_frame::{Frame, Instant, LinkKind};
/// use rxo_wire::SeqNumber;
/// # use rxo_wire::build::{Ipv4Header, TcpHeader, write_tcp_checksum};
/// # use rxo_wire::{TcpFlags, checksum::Summer};
/// # let tcp = TcpHeader { flags: TcpFlags::ACK, ack: SeqNumber(2897), ..TcpHeader::default() };
/// # let ip = Ipv4Header { protocol: 6, payload_bytes: 20, ..Ipv4Header::default() };
/// # let mut first = [0; 40];
/// # let segment = ip.write(&mut first)?;
/// # tcp.write(segment)?;
/// # write_tcp_checksum(segment, ip.pseudo_header(), Summer::detect())?;
///
/// // `first` acknowledges 2897; another ACK follows it.
/// let frame = Frame::new(&first[..], Instant::ZERO);
/// let mut writer = AckWriter::new(frame, LinkKind::RawIp, IdRule::Increment)?;
/// let mut second = [0; 40];
/// writer.write(&AckNumbers { ack: SeqNumber(5793), ..AckNumbers::default() }, &mut second);
/// assert_eq!(second[28..32], 5793_u32.to_be_bytes());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug)]
pub struct AckWriter<'a> {
    pattern: Pattern<'a>,
    /// The difference between the IPv4 identification of the last ACK written and that of the first ACK.
    id_ahead: u16,
    id_step: u16,
}

impl<'a> AckWriter<'a> {
    /// Creates a writer of ACKs like the frame `first`, whose first header is `link`. Parses the headers
    /// once. The checksums of `first` are assumed to be right.
    ///
    /// # Errors
    /// [`NotATemplate`], for the same reasons as [`AckTemplate::new`](crate::AckTemplate::new).
    pub fn new(first: Frame<&'a [u8]>, link: LinkKind, ids: IdRule) -> Result<Self, NotATemplate> {
        Ok(Self { pattern: Pattern::read(first, link)?, id_ahead: 0, id_step: ids.step() })
    }

    /// Writes the next ACK, with `numbers`, to `to`, which must be as long as the first ACK. A partial
    /// checksum stays partial.
    ///
    /// # Panics
    /// If the length of `to` differs from that of the first ACK.
    #[inline(always)]
    pub fn write(&mut self, numbers: &AckNumbers, to: &mut [u8]) {
        copy(self.pattern.bytes(), to);
        self.id_ahead = self.id_ahead.wrapping_add(self.id_step);
        self.pattern.change(to, numbers, self.id_ahead);
    }
}

/// Copies the bytes of an ACK. Most ACKs have 40 to 64 bytes, for which two copies of fixed length are cheaper than a
/// call of `memcpy`.
#[inline(always)]
fn copy(from: &[u8], to: &mut [u8]) {
    assert!(from.len() == to.len(), "an ACK of {} bytes in {}", from.len(), to.len());
    if from.len() > 2 * HALF
        || copy_half(from.first_chunk(), to.first_chunk_mut()).is_none()
        || copy_half(from.last_chunk(), to.last_chunk_mut()).is_none()
    {
        to.copy_from_slice(from);
    }
}

#[inline(always)]
fn copy_half(from: Option<&[u8; HALF]>, to: Option<&mut [u8; HALF]>) -> Option<()> {
    *to? = *from?;
    Some(())
}

const HALF: usize = 32;
