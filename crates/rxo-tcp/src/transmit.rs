//! What a connection gives out: a segment to be built.

use core::num::NonZeroU16;

use rxo_wire::build::TcpHeader;
use rxo_wire::{FlowKey, SeqNumber, TcpFlags};

use crate::options::OptionBytes;
use crate::receive::AckOwed;
use crate::segment::{Ecn, Segment};

/// A segment to be built and sent; its payload stands in the send buffer.
#[derive(Clone, Copy, Debug)]
pub struct Transmit<'a> {
    /// SEG.SEQ.
    pub seq: SeqNumber,
    /// SEG.ACK; means nothing without the ACK flag.
    pub ack: SeqNumber,
    /// Control bits. FIN and PSH belong to the last segment of a large send, CWR to the first.
    pub flags: TcpFlags,
    /// SEG.WND, scaled.
    pub window: u16,
    /// Options.
    pub options: OptionBytes,
    /// The text, in two pieces where the buffer's end lies between them.
    pub payload: [&'a [u8]; 2],
    /// `Some` when the text is more than a segment: it is to be cut into segments of this size.
    pub gso_size: Option<NonZeroU16>,
    /// The ECN field of the IP header.
    pub ecn: Ecn,
    /// Acknowledgements that are to follow as segments of their own, equal to this one but for
    /// number, window and TSecr: this one is their template (Menon 2008, section 4). Only without text.
    pub later_acks: &'a [AckOwed],
}

impl Transmit<'_> {
    /// The text's length, in bytes.
    #[must_use]
    pub fn payload_bytes(&self) -> usize {
        self.payload.iter().map(|piece| piece.len()).sum()
    }

    /// Each of [`Transmit::later_acks`] as a segment: for a caller who builds them one by one.
    pub fn later(&self) -> impl Iterator<Item = Self> {
        self.later_acks.iter().map(|owed| {
            let mut one = Self { later_acks: &[], ..*self };
            one.say(owed);
            one
        })
    }

    /// Makes it say what `owed`, one of its [`Transmit::later_acks`], does: the same without a copy for each.
    #[inline]
    pub fn say(&mut self, owed: &AckOwed) {
        (self.ack, self.window) = (owed.ack, owed.window);
        self.options.set_echo(owed.echo);
    }

    /// The header, for the connection `pair`; its checksum is still to be written.
    #[must_use]
    pub fn header(&self, pair: &FlowKey) -> TcpHeader<'_> {
        TcpHeader {
            source_port: pair.source_port(),
            destination_port: pair.destination_port(),
            seq: self.seq,
            ack: self.ack,
            flags: self.flags,
            window: self.window,
            urgent: 0,
            options: self.options.as_slice(),
        }
    }
}

/// A reset: what answers a segment that no connection wants.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Reset {
    seq: SeqNumber,
    ack: Option<SeqNumber>,
}

impl Reset {
    /// The answer to a segment for which there is no connection; `None` when it is a reset itself
    /// (RFC 9293, section 3.10.7.1).
    #[must_use]
    pub fn answer<B>(segment: &Segment<B>) -> Option<Self> {
        if segment.has(TcpFlags::RST) {
            return None;
        }
        if segment.has(TcpFlags::ACK) {
            return Some(Self { seq: segment.ack, ack: None });
        }
        let ack = Some(segment.seq + segment.len());
        Some(Self { seq: SeqNumber(0), ack })
    }

    /// The answer to an acknowledgement of `ack` for which there is no connection.
    #[must_use]
    pub const fn answer_ack(ack: SeqNumber) -> Self {
        Self { seq: ack, ack: None }
    }

    /// One that the peer cannot mistake: SEQ is what it expects.
    pub(crate) const fn of_connection(seq: SeqNumber, ack: SeqNumber) -> Self {
        Self { seq, ack: Some(ack) }
    }

    /// The segment.
    #[must_use]
    pub fn transmit(self) -> Transmit<'static> {
        let acks = if self.ack.is_some() { TcpFlags::ACK } else { TcpFlags::default() };
        Transmit {
            seq: self.seq,
            ack: self.ack.unwrap_or_default(),
            flags: TcpFlags::RST | acks,
            window: 0,
            options: OptionBytes::default(),
            payload: [&[], &[]],
            gso_size: None,
            ecn: Ecn::NotCapable,
            later_acks: &[],
        }
    }
}
