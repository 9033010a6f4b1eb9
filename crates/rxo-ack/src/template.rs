//! The ACK template: the first ACK as a frame, and the later ACKs as [`AckNumbers`].

use core::fmt;

use rxo_frame::{Frame, LinkKind};

use crate::AckNumbers;
use crate::expanded::{AckSlot, Expanded};
use crate::pattern::{NotATemplate, Pattern};

/// Several ACKs of one connection in compact form: the first as a frame, the later ones as [`AckNumbers`]
/// (Menon and Zwaenepoel 2008, section 4.2).
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
    /// The [`AckNumbers`] of the first ACK; `None` if the first ACK is the pattern's frame, unchanged.
    first: Option<&'a AckNumbers>,
    later: &'a [AckNumbers],
    ids: IdRule,
}

/// The rule by which the IPv4 identification changes from one ACK to the next.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum IdRule {
    /// The identification increases by one.
    #[default]
    Increment,
    /// The identification does not change, as from senders that keep it constant for packets with DF (RFC
    /// 6864, section 4.1).
    Keep,
}

impl IdRule {
    /// Returns the increment of the identification from one ACK to the next.
    pub(crate) const fn step(self) -> u16 {
        match self {
            Self::Increment => 1,
            Self::Keep => 0,
        }
    }
}

/// Error: there are fewer slots than ACKs in the template.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NoRoom {
    /// The number of slots needed.
    pub needed: usize,
    /// The number of slots given.
    pub given: usize,
}

impl<'a> AckTemplate<'a> {
    /// Creates a template from the frame `first`, whose first header is `link`, and the numbers `later`.
    /// Parses the headers once. The checksums of `first` are assumed to be right; if they are wrong, the
    /// checksums of all ACKs are wrong, and the receiver drops all ACKs.
    ///
    /// # Errors
    /// [`NotATemplate`] if `first` is not a pure ACK of at most 96 bytes without options other than a
    /// timestamp.
    pub fn new(
        first: Frame<&'a [u8]>,
        link: LinkKind,
        later: &'a [AckNumbers],
        ids: IdRule,
    ) -> Result<Self, NotATemplate> {
        Ok(Self { pattern: Pattern::read(first, link)?, first: None, later, ids })
    }

    /// Creates a template of ACKs like `pattern`, with `numbers`; `None` if `numbers` is empty. All ACKs of the
    /// template repeat the frame's IPv4 identification, because the caller also sends the frame itself.
    pub(crate) fn like(pattern: Pattern<'a>, numbers: &'a [AckNumbers]) -> Option<Self> {
        let (first, later) = numbers.split_first()?;
        Some(Self { pattern, first: Some(first), later, ids: IdRule::Keep })
    }

    /// Returns the number of ACKs in the template, at least one.
    #[inline]
    #[must_use]
    pub const fn count(&self) -> usize {
        1 + self.later.len()
    }

    /// Returns the [`AckNumbers`] of all ACKs in the template, in order.
    pub fn numbers(&self) -> impl Iterator<Item = AckNumbers> + use<'a> {
        let first = self.first.copied().unwrap_or(self.pattern.numbers());
        core::iter::once(first).chain(self.later.iter().copied())
    }

    /// Returns `true` if the ACKs have a timestamp.
    #[must_use]
    pub const fn has_timestamp(&self) -> bool {
        self.pattern.has_timestamp
    }

    /// Writes the template's ACKs into the first slots of `memory`. Each ACK is byte for byte the frame that
    /// the stack would have built. A partial checksum stays partial. Does not allocate; O(ACKs).
    ///
    /// # Errors
    /// [`NoRoom`] if there are more ACKs than slots. In that case nothing is written.
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
            self.pattern.change_slot(first, numbers, 0);
        }
        self.write_later(&like, later);
        Ok(Expanded { slots: &memory[..needed], like: self.pattern.like() })
    }

    /// Writes all ACKs of the template except the first: the inner loop of expansion.
    #[inline(always)]
    fn write_later(&self, like: &AckSlot, slots: &mut [AckSlot]) {
        let (step, mut id_step) = (self.ids.step(), 0_u16);
        for (slot, numbers) in slots.iter_mut().zip(self.later) {
            id_step = id_step.wrapping_add(step);
            *slot = *like;
            self.pattern.change_slot(slot, numbers, id_step);
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
