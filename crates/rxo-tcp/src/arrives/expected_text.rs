//! A run whose text is just what comes next, taken in one go (header prediction; Jacobson 1990).
//!
//! Nearly all text is. It says "yes" only where each numbered step of this folder would let the
//! segment through and do nothing but what is done here; everything else takes the steps. The
//! property tests hold the two against each other.

use core::ops::Range;

use rxo_frame::{Frame, Instant};
use rxo_wire::tcp::Timestamp;
use rxo_wire::{SeqNumber, TcpFlags};

use crate::plain::{PlainSegment, PlainSegments};
use crate::segment::{Ecn, Payload};
use crate::sequence::before;
use crate::{Connection, Events, State};

impl<B: AsRef<[u8]>> Connection<B> {
    /// Takes a run of plain segments. Of those that are alike (see [`Layout::run`]) one header is read.
    ///
    /// [`Layout::run`]: crate::Layout::run
    #[inline(never)]
    pub(super) fn take_run<F>(&mut self, now: Instant, mut segments: PlainSegments<F>)
    where
        F: Iterator<Item = Frame<B>>,
    {
        let mut run = self.begin_run(now);
        while let Some(segment) = segments.next() {
            let (header, range) = (Header::of(&segment), segment.payload.range());
            self.take_plain(&mut run, segment);
            if self.expects_alike(&run, header, range.len() as u32, segments.like_last()) {
                self.take_alike(&mut run, header, range, segments.buffers_like_last());
            }
        }
    }

    pub(super) fn begin_run(&self, now: Instant) -> Run {
        Run { now, may_expect: self.may_expect_text(), is_heard: false }
    }

    #[inline(always)]
    fn take_plain(&mut self, run: &mut Run, segment: PlainSegment<B>) {
        // Taken apart at once, so that its fields can stay in registers.
        let PlainSegment { seq, ack, flags, window, timestamp, payload, ecn, arrived_at } = segment;
        let header = Header { seq, ack, flags, window, timestamp, ecn };
        if run.may_expect && self.expects_text(header, payload.bytes()) {
            self.take_timestamp(run.now, header);
            self.take_window(header);
            self.hear(run);
            self.take_expected_text(payload);
        } else {
            let odd = PlainSegment { seq, ack, flags, window, timestamp, payload, ecn, arrived_at };
            self.take_segment(run.now, odd.into());
            run.may_expect = self.may_expect_text();
        }
    }

    /// Whether text can be expected at all: what no expected segment changes. Established, so that
    /// the steps for other states do nothing; nothing is missing or was twice here, so that each
    /// second segment owes an acknowledgement; text keeps its buffers; no FIN has come; nothing is being recovered, so that an
    /// acknowledgement of nothing new says nothing.
    fn may_expect_text(&self) -> bool {
        self.state == State::Established
            && !self.is_abandoned()
            && !self.rcv.has_gap()
            && !self.rcv.is_spilling()
            && !self.rcv.sack.has_duplicate()
            && self.rcv.fin_at.is_none()
            && self.recovery.is_calm()
    }

    /// Whether a segment with `bytes` of text is what comes next: in order and inside the window, with
    /// a timestamp that is not old, acknowledging nothing new, with nothing to say about congestion.
    #[inline(always)]
    pub(super) fn expects_text(&self, header: Header, bytes: u32) -> bool {
        let is_plain = header.flags.without(TcpFlags::PSH) == TcpFlags::ACK;
        let is_next = header.seq == self.rcv.nxt && header.ack == self.snd.una;
        is_plain
            && is_next
            && header.ecn != Ecn::Congestion
            && bytes <= self.rcv.wnd()
            && self.rcv.room() > 0
            && self.timestamps.expects(header.timestamp)
    }

    /// Whether `count` segments of so many `bytes` each, like the one with `header` that was taken
    /// just now, are what comes next.
    fn expects_alike(&self, run: &Run, header: Header, bytes: u32, count: usize) -> bool {
        let next = Header { seq: header.seq + bytes, ..header };
        let has_room =
            count <= self.rcv.room() && count as u64 * u64::from(bytes) <= self.rcv.wnd().into();
        count > 0 && has_room && run.may_expect && self.expects_text(next, bytes)
    }

    /// Takes text in `range` of each of `buffers`, after that with `header`: what
    /// [`Connection::take_plain`] would do with each.
    fn take_alike(
        &mut self,
        run: &mut Run,
        header: Header,
        range: Range<usize>,
        buffers: impl Iterator<Item = B>,
    ) {
        let bytes = range.len() as u32;
        let count = self.rcv.append_alike(buffers, range);
        let seq = before(self.rcv.nxt, count as u32 * bytes);
        self.take_headers(run, Header { seq, ..header }, &[(bytes, count as u32)]);
    }

    /// Takes what the headers say of segments that differ from that with `header`, the first, in SEQ
    /// only; their text is here. `parts` are lengths, and how many have each.
    #[inline(always)]
    pub(super) fn take_headers(&mut self, run: &mut Run, header: Header, parts: &[(u32, u32)]) {
        self.hear(run);
        self.events |= Events::READABLE;
        self.take_timestamp(run.now, header);
        let (mut seq, mut last, mut owed) = (header.seq, header.seq, 0);
        let mut may_move_edge = self.rcv.may_move_edge();
        for &(bytes, count) in parts.iter().filter(|(_, count)| *count > 0) {
            let mut left = count;
            while left > 0 {
                // Of their timestamps one counts that stands where an acknowledgement ends; those behind the
                // second would say the same again.
                if owed == 1 {
                    self.take_timestamp(run.now, Header { seq, ..header });
                }
                let full_segment = self.rcv.full_segment();
                let (counted, is_owed) = self.acks.count_alike((bytes, left), full_segment);
                (seq, left) = (seq + counted * bytes, left - counted);
                if is_owed {
                    if may_move_edge {
                        self.rcv.move_edge(seq);
                        may_move_edge = self.rcv.may_move_edge();
                    }
                    self.owe(seq);
                    owed += 1;
                }
            }
            last = before(seq, bytes);
        }
        // Of their windows the last.
        self.take_window(Header { seq: last, ..header });
    }

    /// The peer is there: each segment would say so, and nothing else that is expected changes it.
    #[inline(always)]
    fn hear(&mut self, run: &mut Run) {
        if !core::mem::replace(&mut run.is_heard, true) {
            self.heard_of_peer(run.now);
        }
    }

    /// The first step.
    #[inline(always)]
    fn take_timestamp(&mut self, now: Instant, header: Header) {
        if let Some(timestamp) = header.timestamp.filter(|_| self.timestamps.is_agreed) {
            self.timestamps.remember(timestamp.value, header.seq, now);
        }
    }

    /// The fifth step.
    #[inline(always)]
    fn take_window(&mut self, header: Header) {
        let Header { seq, ack, window, .. } = header;
        self.snd.update_window(seq, ack, u32::from(window) << self.snd.scale);
    }

    /// The seventh step.
    #[inline(always)]
    fn take_expected_text(&mut self, payload: Payload<B>) {
        let bytes = payload.bytes();
        self.rcv.append_expected(payload);
        self.events |= Events::READABLE;
        if self.acks.count(bytes, self.rcv.full_segment()) {
            self.owe_next();
        }
    }
}

/// An aggregate that is being taken.
pub(super) struct Run {
    now: Instant,
    /// See [`Connection::may_expect_text`].
    pub(super) may_expect: bool,
    /// Whether it is noted that the peer is there.
    is_heard: bool,
}

/// What a header says.
#[derive(Clone, Copy)]
pub(super) struct Header {
    pub(super) seq: SeqNumber,
    pub(super) ack: SeqNumber,
    pub(super) flags: TcpFlags,
    pub(super) window: u16,
    pub(super) timestamp: Option<Timestamp>,
    pub(super) ecn: Ecn,
}

impl Header {
    #[inline(always)]
    fn of<B>(segment: &PlainSegment<B>) -> Self {
        let PlainSegment { seq, ack, flags, window, timestamp, ecn, .. } = *segment;
        Self { seq, ack, flags, window, timestamp, ecn }
    }
}
