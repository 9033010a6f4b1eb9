//! The segments that a connection returns to its owner, to be built and sent.

use core::num::NonZeroU16;

use rxo_wire::build::TcpHeader;
use rxo_wire::{FlowKey, SeqNumber, TcpFlags};

use crate::options::OptionBytes;
use crate::receive::PendingAck;
use crate::segment::{Ecn, Segment};
use crate::send::Text;

/// A segment to build and send. Its payload stays in the send buffer. The default has no flags, options or
/// payload.
#[derive(Clone, Copy, Debug, Default)]
pub struct Transmit<'a> {
    /// SEG.SEQ: the sequence number.
    pub seq: SeqNumber,
    /// SEG.ACK: the ACK number; meaningless without the ACK flag.
    pub ack: SeqNumber,
    /// The control bits of the TCP header. FIN and PSH belong to the last segment of a GSO frame, CWR to the
    /// first.
    pub flags: TcpFlags,
    /// SEG.WND: the window field of the header.
    pub window: u16,
    /// The encoded TCP options.
    pub options: OptionBytes,
    /// The payload of the segment, in the send buffer.
    pub payload: Text<'a>,
    /// The payload size, in bytes, of the segments into which this GSO frame must be split; `None` if this is a
    /// single segment.
    pub gso_size: Option<NonZeroU16>,
    /// The ECN field of the IP header.
    pub ecn: Ecn,
    /// ACKs to send after this segment, each as a segment of its own. This segment is their template: the ACKs
    /// differ from it only in ACK number, window and TSecr (Menon and Zwaenepoel 2008, section 4). Empty if
    /// this segment has payload.
    pub later_acks: &'a [PendingAck],
}

impl Transmit<'_> {
    /// Returns the length of the payload, in bytes.
    #[must_use]
    pub fn payload_bytes(&self) -> usize {
        self.payload.len()
    }

    /// Returns each of [`Transmit::later_acks`] as a segment, for callers that build them one by one.
    pub fn later(&self) -> impl Iterator<Item = Self> {
        self.later_acks.iter().map(|pending| {
            let mut one = Self { later_acks: &[], ..*self };
            one.set_acknowledgement(pending);
            one
        })
    }

    /// Replaces the fields of this segment by those of the ACK `pending`, which is one of
    /// [`Transmit::later_acks`]. Cheaper than [`Transmit::later`], which copies the segment.
    #[inline]
    pub fn set_acknowledgement(&mut self, pending: &PendingAck) {
        (self.ack, self.window) = (pending.ack, pending.window);
        self.options.set_echo(pending.echo);
    }

    /// Returns the TCP header without checksum. `pair` is the flow key of the segment, which contains the ports.
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

/// A reset: the answer to a segment that no connection accepts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Reset {
    seq: SeqNumber,
    ack: Option<SeqNumber>,
}

impl Reset {
    /// Returns the reset that answers a segment for which there is no connection; `None` if the segment is
    /// itself a reset (RFC 9293, section 3.10.7.1).
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

    /// Creates a reset with the sequence number that the peer expects.
    pub(crate) const fn of_connection(seq: SeqNumber, ack: SeqNumber) -> Self {
        Self { seq, ack: Some(ack) }
    }

    /// Returns the reset as a segment to send.
    #[must_use]
    pub fn transmit(self) -> Transmit<'static> {
        let acks = if self.ack.is_some() { TcpFlags::ACK } else { TcpFlags::default() };
        Transmit {
            seq: self.seq,
            ack: self.ack.unwrap_or_default(),
            flags: TcpFlags::RST | acks,
            ..Transmit::default()
        }
    }
}
