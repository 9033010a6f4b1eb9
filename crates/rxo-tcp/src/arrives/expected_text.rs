//! A run whose text is just what comes next, taken in one go (header prediction; Jacobson 1990).
//!
//! Nearly all text is. A segment takes the fast path only if each numbered step would let it through and do
//! nothing but what is done here; everything else takes the steps. The property tests compare the two.

use rxo_frame::{Frames, Instant};
use rxo_wire::tcp::Timestamp;
use rxo_wire::{SeqNumber, TcpFlags};

use crate::plain::{PlainSegment, PlainSegments};
use crate::segment::{Ecn, Payload};
use crate::sequence::before;
use crate::{Connection, Events, State};

impl<B: AsRef<[u8]>> Connection<B> {
    /// Takes a run of plain segments. Of those that are alike (see [`PlainSegments::new`]) one header is read.
    #[inline(never)]
    pub(super) fn take_run<F>(&mut self, now: Instant, mut segments: PlainSegments<F>)
    where
        F: Frames<B>,
    {
        let mut run = self.begin_run(now);
        while let Some(segment) = segments.next() {
            let (header, count) = (Header::of(&segment), 1 + segments.like_last());
            if count > 1 && self.expects_alike(&run, header, segment.payload.bytes(), count) {
                self.take_alike(&mut run, header, segment.payload, segments.frames_like_last());
            } else {
                self.take_plain(&mut run, segment);
            }
        }
    }

    pub(super) fn begin_run(&self, now: Instant) -> Run {
        Run { now, may_expect: self.may_expect_text(), is_heard: false }
    }

    #[inline(always)]
    pub(super) fn take_plain(&mut self, run: &mut Run, segment: PlainSegment<B>) {
        // Destructured at once, so that the fields can stay in registers.
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

    /// Whether the connection can take the fast path for text at all. No expected segment changes that. The
    /// connection is established, so that the steps for other states do nothing. No gap and no duplicate is
    /// to be reported, so that each second segment owes an acknowledgement. No FIN has arrived. Nothing is being
    /// recovered, so that an acknowledgement of nothing new says nothing.
    fn may_expect_text(&self) -> bool {
        self.state == State::Established
            && !self.is_abandoned()
            && !self.is_window_closed()
            && !self.rcv.has_gap()
            && !self.rcv.sack.has_duplicate()
            && self.rcv.fin_at.is_none()
            && self.recovery.is_calm()
    }

    /// Whether a segment with `bytes` of text is what comes next: in order, inside the window, with a
    /// timestamp that is not old, without a new acknowledgement and without a congestion mark; the peer's window stays
    /// open.
    #[inline(always)]
    pub(super) fn expects_text(&self, header: Header, bytes: u32) -> bool {
        let is_plain = header.flags.without(TcpFlags::PSH) == TcpFlags::ACK;
        let is_next = header.seq == self.rcv.nxt && header.ack == self.snd.una;
        is_plain
            && is_next
            && header.ecn != Ecn::Congestion
            && header.window != 0
            && bytes <= self.rcv.wnd()
            && self.timestamps.expects(header.timestamp)
    }

    /// Whether `count` segments of `bytes` each, the first with `header` and the others like it, are what comes
    /// next, and all of them can stay in their buffers.
    #[inline(always)]
    pub(super) fn expects_alike(
        &self,
        run: &Run,
        header: Header,
        bytes: u32,
        count: usize,
    ) -> bool {
        let has_room =
            count <= self.rcv.room() && count as u64 * u64::from(bytes) <= self.rcv.wnd().into();
        has_room && run.may_expect && self.expects_text(header, bytes)
    }

    /// Takes the text `first` of a segment with `header`, and the text at the same place in each of the next `like`,
    /// whose segments are like it. Does what [`Connection::take_plain`] would do with each.
    #[inline(always)]
    pub(super) fn take_alike(
        &mut self,
        run: &mut Run,
        header: Header,
        first: Payload<B>,
        like: (&mut impl Frames<B>, usize),
    ) {
        let bytes = first.bytes();
        let count = self.rcv.append_alike(first, like);
        self.take_headers(run, header, &[(bytes, count as u32)]);
    }

    /// Takes the headers of segments whose text has been taken. They differ from `header`, that of the first,
    /// in SEQ only. `parts` has lengths, in bytes, and how many segments have each.
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
                // Only a timestamp where an acknowledgement ends is recorded, and after the second one
                // further timestamps would change nothing.
                if owed == 1 {
                    self.take_timestamp(run.now, Header { seq, ..header });
                }
                let is_settled = owed > 1 || self.timestamps.is_settled(header.timestamp, run.now);
                if is_settled && !may_move_edge {
                    let taken = self.owe_for_each(seq, bytes, left);
                    (seq, left) = (seq + taken * bytes, left - taken);
                    if left == 0 {
                        break;
                    }
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
        // The last window counts.
        self.take_window(Header { seq: last, ..header });
    }

    /// Owes the acknowledgements of segments of `bytes` each, the first at `seq`, at most `count`, if the edge of
    /// the window stays and no timestamp changes any more. Returns of how many segments, which may be 0:
    /// each of the others must be counted by itself.
    #[inline(always)]
    fn owe_for_each(&mut self, seq: SeqNumber, bytes: u32, count: u32) -> u32 {
        let Some(segments) = self.acks.segments_for_one(bytes, self.rcv.full_segment()) else {
            return 0;
        };
        let owed = (count / segments).min(self.acks.room() as u32);
        if owed > 0 {
            self.owe_each(seq + segments * bytes, segments * bytes, owed);
        }
        owed * segments
    }

    /// Restarts keep-alive, once for the whole run.
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
            self.timestamps.remember(timestamp, header.seq, now);
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
        self.rcv.append_expected(payload, bytes);
        self.events |= Events::READABLE;
        if self.acks.count(bytes, self.rcv.full_segment()) {
            self.owe_next();
        }
    }
}

/// A run that is being taken.
pub(super) struct Run {
    now: Instant,
    /// See [`Connection::may_expect_text`].
    pub(super) may_expect: bool,
    /// Whether keep-alive was restarted.
    is_heard: bool,
}

/// The values of a header.
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
    pub(super) fn of<B>(segment: &PlainSegment<B>) -> Self {
        let PlainSegment { seq, ack, flags, window, timestamp, ecn, .. } = *segment;
        Self { seq, ack, flags, window, timestamp, ecn }
    }
}
