//! Segments that the peer has sent to a multicast group, of which this side is a member (Chan and Cheriton
//! 2013, section 4).
//!
//! One such segment serves many receivers. Therefore the fields that differ between receivers, the ACK number
//! and the window, are ignored; SEQ, data, PSH, FIN and TSval are used. TSecr names the receiver that leads the
//! congestion control of the group and acknowledges each segment at once. The ignored fields are replaced by
//! this connection's current values, and the segment is then processed like any other, fast paths included.
//!
//! On a single connection the ACK number exposes forged segments (RFC 5961, section 5). In segments to a group,
//! the timestamp exposes forgeries: TSval must be a value that the peer's clock can have reached since the last
//! segment. Segments outside the window are answered rarely, because all members of the group receive them and
//! may all answer.

use rxo_frame::{Frames, Instant};
use rxo_wire::tcp::{AckRecord, Timestamp};
use rxo_wire::{SeqNumber, TcpFlags};

use crate::challenge::Answer;
use crate::options::SegmentOptions;
use crate::plain::{PlainSegment, PlainSegments};
use crate::segment::Segment;
use crate::{Arrival, Connection};

/// Numbers of segments that arrived for a multicast group, by outcome. The counters wrap.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct GroupCounts {
    /// The number of accepted segments to the group, whether by the numbered steps or by a fast path.
    pub taken: u32,
    /// The number of segments to the group that lie outside the window. Most carry data that this side has
    /// received before, which the peer repeats for another member.
    pub outside: u32,
    /// The number of refused segments to the group: the timestamp is missing, old or ahead of the peer's
    /// clock; SYN or RST is set; or the segment has neither data nor a FIN.
    pub refused: u32,
}

impl<B: AsRef<[u8]>> Connection<B> {
    /// Processes segments that the peer has sent to a group. The caller has checked that the source is the
    /// peer and that the checksums are right. Drops everything if timestamps are not in use or the handshake
    /// is not over. Otherwise behaves as [`Connection::on_arrival`].
    pub fn on_group_arrival<F, A, S>(&mut self, now: Instant, arrival: Arrival<B, F, A, S>)
    where
        F: Frames<B>,
        A: Iterator<Item = AckRecord>,
        S: Iterator<Item = Segment<B>>,
    {
        match arrival {
            Arrival::Run(segments) => self.take_group_run(now, segments),
            Arrival::Gso(mut gso) => {
                gso.rest = gso.rest.take().and_then(|whole| self.as_own(now, whole));
                if let Some(whole) = &gso.rest {
                    // `as_own` has counted the whole frame as one segment; add the others.
                    let count = whole.text_bytes().div_ceil(gso.size.get().into());
                    add(&mut self.group_counts.taken, count.saturating_sub(1) as usize);
                    self.take_gso(now, gso);
                }
            }
            Arrival::Acks(records) => add(&mut self.group_counts.refused, records.count()),
            Arrival::Segments(segments) => {
                for segment in segments {
                    if let Some(own) = self.as_own(now, segment) {
                        self.take_segment(now, own);
                    }
                }
            }
        }
        self.end_arrival(now);
    }

    fn take_group_run<F>(&mut self, now: Instant, mut segments: PlainSegments<F>)
    where
        F: Frames<B>,
    {
        let mut run = self.begin_run(now);
        while let Some(segment) = segments.next() {
            let count = 1 + segments.like_last();
            let bytes = segment.payload.bytes();
            let fields = Fields::of(&segment, bytes);
            let Some(own) = self.judge(now, fields) else { continue };
            let segment = own.apply_to(segment);
            let header = super::expected_text::Header::of(&segment);
            if count > 1 && self.expects_alike(&run, header, bytes, count) {
                add(&mut self.group_counts.taken, count - 1);
                self.take_alike(&mut run, header, segment.payload, segments.frames_like_last());
            } else {
                self.take_plain(&mut run, segment);
            }
        }
    }

    /// Returns `segment` with this connection's own ACK number, window and TSecr; `None` if it is refused or
    /// outside the window.
    fn as_own(&mut self, now: Instant, segment: Segment<B>) -> Option<Segment<B>> {
        let fields = Fields {
            seq: segment.seq,
            bytes: segment.text_bytes(),
            flags: segment.flags,
            value: segment.options.timestamp.map(|timestamp| timestamp.value),
            leader: segment.options.timestamp.map_or(0, |timestamp| timestamp.echo),
        };
        let own = self.judge(now, fields)?;
        let options = SegmentOptions { timestamp: own.timestamp, ..SegmentOptions::default() };
        let Own { ack, flags, window, .. } = own;
        Some(Segment { ack, flags, window, options, ..segment })
    }

    /// Decides whether a segment to the group is accepted, and returns this connection's own values for the
    /// fields that must be replaced. If the segment is dropped, counts the reason and returns `None`.
    fn judge(&mut self, now: Instant, fields: Fields) -> Option<Own> {
        if !self.may_be_the_peers(now, fields) {
            add(&mut self.group_counts.refused, 1);
            return None;
        }
        if !self.is_in_window(fields) {
            add(&mut self.group_counts.outside, 1);
            self.answer_seldom(now);
            return None;
        }
        add(&mut self.group_counts.taken, 1);
        if fields.leader == Self::name(self.pair.source()) {
            self.acks.answer_next();
        }
        // A TSecr in the future, so that no round-trip time is measured from it.
        let echo = self.timestamps.clock(now).wrapping_add(1);
        Some(Own {
            ack: self.snd.una,
            flags: TcpFlags::from_bits(fields.flags.bits() & COUNT.bits()) | TcpFlags::ACK,
            window: u16::try_from(self.snd.wnd >> self.snd.scale).unwrap_or(u16::MAX),
            timestamp: fields.value.map(|value| Timestamp { value, echo }),
        })
    }

    fn may_be_the_peers(&self, now: Instant, fields: Fields) -> bool {
        let says_something = fields.len() > 0 && !fields.flags.intersects(NEVER_TO_GROUPS);
        let is_timely = |value| self.timestamps.is_timely(value, now);
        says_something && self.state.is_synchronized() && fields.value.is_some_and(is_timely)
    }

    /// Returns `true` if a segment with data or a FIN is acceptable by the table in RFC 9293, section 3.10.7.4.
    /// Returns `false` while the window is closed.
    fn is_in_window(&self, fields: Fields) -> bool {
        let (nxt, wnd) = (self.rcv.nxt, self.rcv.wnd());
        let is_inside = |seq: SeqNumber| seq.is_at_or_after(nxt) && seq.is_before(nxt + wnd);
        is_inside(fields.seq) || is_inside(fields.seq + (fields.len() - 1))
    }

    /// Answers a segment outside the window at a limited rate: the peer may have repeated the segment because
    /// an ACK was lost. The limit equals that on challenge ACKs but is counted separately, so that
    /// challenge ACKs remain available for resets.
    fn answer_seldom(&mut self, now: Instant) {
        if self.challenges.may_send(Answer::Group, now) {
            self.acks.begin_segment();
            self.acks.answer_alone();
            self.end_segment();
        }
    }
}

/// The fields of a segment to a group that are not ignored, without its data.
#[derive(Clone, Copy)]
struct Fields {
    seq: SeqNumber,
    /// The length of the segment's data in bytes.
    bytes: u32,
    flags: TcpFlags,
    /// TSval of the segment; `None` without the timestamp option.
    value: Option<u32>,
    /// TSecr: the name of the receiver that acknowledges each segment at once; 0 if there is none.
    leader: u32,
}

impl Fields {
    #[inline]
    fn of<B>(segment: &PlainSegment<B>, bytes: u32) -> Self {
        let value = segment.timestamp.map(|timestamp| timestamp.value);
        let leader = segment.timestamp.map_or(0, |timestamp| timestamp.echo);
        Self { seq: segment.seq, bytes, flags: segment.flags, value, leader }
    }

    /// Returns SEG.LEN, the number of sequence numbers that the segment occupies. A SYN is not counted,
    /// because a segment with a SYN to a group is refused.
    fn len(self) -> u32 {
        self.bytes + u32::from(self.flags.contains(TcpFlags::FIN))
    }
}

/// This connection's own values for the ignored fields of a segment to the group. With these values the segment
/// acknowledges nothing new.
struct Own {
    ack: SeqNumber,
    flags: TcpFlags,
    window: u16,
    timestamp: Option<Timestamp>,
}

impl Own {
    #[inline]
    fn apply_to<B>(self, segment: PlainSegment<B>) -> PlainSegment<B> {
        let Self { ack, flags, window, timestamp } = self;
        PlainSegment { ack, flags, window, timestamp, ..segment }
    }
}

const fn add(count: &mut u32, more: usize) {
    *count = count.wrapping_add(more as u32);
}

const NEVER_TO_GROUPS: TcpFlags = TcpFlags::SYN.union(TcpFlags::RST);
/// The flags that have a meaning in a segment to a group.
const COUNT: TcpFlags = TcpFlags::PSH.union(TcpFlags::FIN);
