//! The template: one ACK as a frame, the others as numbers.

use core::fmt;

use rxo_frame::{Frame, LinkKind};

use crate::AckNumbers;
use crate::expanded::{AckSlot, Expanded};
use crate::pattern::{NotATemplate, Pattern};

/// Many ACKs of one connection in little space: the first as a frame, and what the later ones say
/// instead (Menon and Zwaenepoel 2008, section 4.2).
///
/// # Examples
/// ```
/// use rxo_ack::{AckNumbers, AckSlot, AckTemplate, IdRule};
/// use rxo_frame::{Frame, Instant, LinkKind};
/// use rxo_wire::SeqNumber;
/// # use rxo_wire::build::{Ipv4Header, TcpHeader, write_tcp_checksum};
/// # use rxo_wire::{TcpFlags, checksum::Summer};
/// # let tcp = TcpHeader { flags: TcpFlags::ACK, ack: SeqNumber(2897), ..TcpHeader::default() };
/// # let ip = Ipv4Header { protocol: 6, payload_bytes: 20, ..Ipv4Header::default() };
/// # let mut packet = [0; 40];
/// # let segment = ip.write(&mut packet)?;
/// # tcp.write(segment)?;
/// # write_tcp_checksum(segment, ip.pseudo_header(), Summer::detect())?;
///
/// // `packet` acknowledges 2897; two more ACKs shall follow it.
/// let later = [5793, 8689].map(|ack| AckNumbers { ack: SeqNumber(ack), ..AckNumbers::default() });
/// let first = Frame::new(&packet[..], Instant::ZERO);
/// let template = AckTemplate::new(first, LinkKind::RawIp, &later, IdRule::Increment)?;
///
/// let mut memory = [AckSlot::EMPTY; 16];
/// let acks = template.expand(&mut memory)?;
/// assert_eq!(acks.len(), 3);
/// assert_eq!(acks.iter().next().map(|frame| frame.bytes), Some(&packet[..]));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Copy, Debug)]
pub struct AckTemplate<'a> {
    pattern: Pattern<'a>,
    /// What the first says when that is not what the pattern says.
    first: Option<&'a AckNumbers>,
    later: &'a [AckNumbers],
    ids: IdRule,
}

/// What becomes of the IPv4 identification from one ACK to the next.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum IdRule {
    /// It counts up by one.
    #[default]
    Increment,
    /// It stays as it is in the first: right for senders that leave it alone when nothing can be
    /// fragmented (RFC 6864, section 4.1).
    Keep,
}

/// The memory lent has fewer slots than the template has ACKs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NoRoom {
    /// Slots needed.
    pub needed: usize,
    /// Slots given.
    pub given: usize,
}

impl<'a> AckTemplate<'a> {
    /// A template of `first`, which begins with what `link` says, and `later`. Its checksums are
    /// taken to be right; wrong ones are wrong in all its ACKs, so that a receiver drops them all.
    /// Reads the headers once.
    ///
    /// # Errors
    /// [`NotATemplate`] when `first` is not a pure ACK with nothing but a timestamp in at most 96
    /// bytes.
    pub fn new(
        first: Frame<&'a [u8]>,
        link: LinkKind,
        later: &'a [AckNumbers],
        ids: IdRule,
    ) -> Result<Self, NotATemplate> {
        Ok(Self { pattern: Pattern::read(first, link)?, first: None, later, ids })
    }

    /// A template of ACKs like `pattern`, all of them in `numbers`; `None` when there are none. The
    /// identification stays: who makes these keeps the pattern's frame, too.
    pub(crate) fn like(pattern: Pattern<'a>, numbers: &'a [AckNumbers]) -> Option<Self> {
        let (first, later) = numbers.split_first()?;
        Some(Self { pattern, first: Some(first), later, ids: IdRule::Keep })
    }

    /// How many ACKs it stands for: at least one.
    #[inline]
    #[must_use]
    pub const fn count(&self) -> usize {
        1 + self.later.len()
    }

    /// The numbers of all its ACKs, in order.
    pub fn numbers(&self) -> impl Iterator<Item = AckNumbers> + use<'a> {
        let first = self.first.copied().unwrap_or(self.pattern.numbers());
        core::iter::once(first).chain(self.later.iter().copied())
    }

    /// Whether its ACKs carry a timestamp.
    #[must_use]
    pub const fn has_timestamp(&self) -> bool {
        self.pattern.has_timestamp
    }

    /// Writes its ACKs into the first slots of `memory`. Each is, byte for byte, the frame that the
    /// stack would have built and checksummed for it; a checksum that was only a seed stays one.
    /// Does not allocate; costs the ACKs.
    ///
    /// # Errors
    /// [`NoRoom`] when there are more ACKs than slots; nothing has been written then.
    pub fn expand<'m>(&self, memory: &'m mut [AckSlot]) -> Result<Expanded<'m>, NoRoom> {
        let (needed, given) = (self.count(), memory.len());
        let Some((first, later)) =
            memory.get_mut(..needed).and_then(|slots| slots.split_first_mut())
        else {
            return Err(NoRoom { needed, given });
        };
        let like = self.pattern.slot();
        *first = like;
        if let Some(numbers) = self.first {
            self.pattern.change(first, numbers, 0);
        }
        self.write_later(&like, later);
        Ok(Expanded { slots: &memory[..needed], shape: self.pattern.shape() })
    }

    /// The loop that speed depends on.
    #[inline(always)]
    fn write_later(&self, like: &AckSlot, slots: &mut [AckSlot]) {
        let step = match self.ids {
            IdRule::Increment => 1,
            IdRule::Keep => 0,
        };
        let mut id_step = 0_u16;
        for (slot, numbers) in slots.iter_mut().zip(self.later) {
            id_step = id_step.wrapping_add(step);
            *slot = *like;
            self.pattern.change(slot, numbers, id_step);
        }
    }
}

impl fmt::Display for NoRoom {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { needed, given } = self;
        write!(f, "a template of {needed} ACKs does not fit into {given} slots; lend it more")
    }
}

impl core::error::Error for NoRoom {}
