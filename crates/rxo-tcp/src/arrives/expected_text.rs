//! The fast path for data: processes a run of segments that continues the received data in one pass (header
//! prediction; Jacobson 1990).
//!
//! Nearly all data arrives this way. A segment takes the fast path only if the numbered steps would accept it
//! with exactly the same effect. The steps process all other segments. The property tests compare the two
//! paths.

use rxo_frame::{Frames, Instant};
use rxo_wire::tcp::Timestamp;
use rxo_wire::{SeqNumber, TcpFlags};

use crate::plain::{PlainSegment, PlainSegments};
use crate::segment::{Ecn, Payload};
use crate::sequence::before;
use crate::{Connection, Events, State};

impl<B: AsRef<[u8]>> Connection<B> {
    /// Processes a run of plain segments. For segments that are alike (see [`PlainSegments::new`]), only the
    /// first header is read.
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
        Run { now, may_expect: self.may_expect_text(), is_restarted: false }
    }

    #[inline(always)]
    pub(super) fn take_plain(&mut self, run: &mut Run, segment: PlainSegment<B>) {
        // Destructured at once, so that the fields can stay in registers.
        let PlainSegment { seq, ack, flags, window, timestamp, payload, ecn, arrived_at } = segment;
        let header = Header { seq, ack, flags, window, timestamp, ecn };
        if run.may_expect && self.expects_text(header, payload.bytes()) {
            self.take_timestamp(run.now, header);
            self.take_window(header);
            self.restart_keep_alive_once(run);
            self.take_expected_text(payload);
        } else {
            let odd = PlainSegment { seq, ack, flags, window, timestamp, payload, ecn, arrived_at };
            self.take_segment(run.now, odd.into());
            run.may_expect = self.may_expect_text();
        }
    }

    /// Returns `true` if the connection can take the fast path for data. The result stays the same after an
    /// expected segment is processed.
    ///
    /// The fast path requires an established connection, because the steps for other states then do nothing.
    /// There must be no gap and no duplicate to report, so that only every second full segment causes an ACK.
    /// No FIN may have arrived. Recovery must not be active, so that an ACK without new data has no effect.
    fn may_expect_text(&self) -> bool {
        self.state == State::Established
            && !self.is_abandoned()
            && !self.is_window_closed()
            && !self.rcv.has_gap()
            && !self.rcv.sack.has_duplicate()
            && self.rcv.fin_at().is_none()
            && self.recovery.is_undisturbed()
    }

    /// Returns `true` if a segment with `bytes` of data is the next expected one: in order, inside the
    /// window, with the current ACK number, no old timestamp, no congestion mark, and a nonzero window.
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

    /// Returns `true` if `count` segments with equal headers except SEQ, each with `bytes` bytes of data, are
    /// the next expected data and can stay in their buffers. `header` is the header of the first segment.
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

    /// Accepts the data `first` of a segment with `header`, and the data of `like` more segments at the same
    /// offset in their frames. The effect equals that of [`Connection::take_plain`] for each segment.
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

    /// Processes the headers of segments whose data was already accepted. The headers differ from `header`, the
    /// first header, in SEQ only. `parts` lists pairs of a data length in bytes and the number of segments with
    /// that length.
    #[inline(always)]
    pub(super) fn take_headers(&mut self, run: &mut Run, header: Header, parts: &[(u32, u32)]) {
        self.restart_keep_alive_once(run);
        self.events |= Events::READABLE;
        self.take_timestamp(run.now, header);
        let (mut seq, mut last, mut queued) = (header.seq, header.seq, 0);
        let mut may_move_edge = self.rcv.may_move_edge();
        for &(bytes, count) in parts.iter().filter(|(_, count)| *count > 0) {
            let mut left = count;
            while left > 0 {
                // A timestamp is recorded only at the end of each ACK, and after the second
                // ACK further timestamps would change nothing.
                if queued == 1 {
                    self.take_timestamp(run.now, Header { seq, ..header });
                }
                let is_settled =
                    queued > 1 || self.timestamps.is_unchanged_by(header.timestamp, run.now);
                if is_settled && !may_move_edge {
                    let taken = self.queue_acks_of_run(seq, bytes, left);
                    (seq, left) = (seq + taken * bytes, left - taken);
                    if left == 0 {
                        break;
                    }
                }
                let full_segment = self.rcv.full_segment();
                let (counted, causes_ack) = self.acks.count_alike((bytes, left), full_segment);
                (seq, left) = (seq + counted * bytes, left - counted);
                if causes_ack {
                    if may_move_edge {
                        self.rcv.move_edge(seq);
                        may_move_edge = self.rcv.may_move_edge();
                    }
                    self.queue_ack(seq);
                    queued += 1;
                }
            }
            last = before(seq, bytes);
        }
        // The window in the last header is the current one.
        self.take_window(Header { seq: last, ..header });
    }

    /// Records the ACKs that `count` segments of `bytes` bytes each cause; the first segment
    /// begins at `seq`. The window edge must not move and no timestamp may change. Returns the number of
    /// segments covered, possibly 0; the caller counts the remaining segments one by one.
    #[inline(always)]
    fn queue_acks_of_run(&mut self, seq: SeqNumber, bytes: u32, count: u32) -> u32 {
        let Some(segments) = self.acks.segments_for_one(bytes, self.rcv.full_segment()) else {
            return 0;
        };
        let queued = (count / segments).min(self.acks.room() as u32);
        if queued > 0 {
            self.queue_acks(seq + segments * bytes, segments * bytes, queued);
        }
        queued * segments
    }

    /// Restarts the keep-alive timer, once for the whole run.
    #[inline]
    fn restart_keep_alive_once(&mut self, run: &mut Run) {
        if !core::mem::replace(&mut run.is_restarted, true) {
            self.restart_keep_alive(run.now);
        }
    }

    /// Carries out the first step of segment processing: records the timestamp.
    #[inline]
    fn take_timestamp(&mut self, now: Instant, header: Header) {
        if let Some(timestamp) = header.timestamp.filter(|_| self.timestamps.is_agreed) {
            self.timestamps.remember(timestamp, header.seq, now);
        }
    }

    /// Carries out the fifth step of segment processing: updates the peer's window.
    #[inline]
    fn take_window(&mut self, header: Header) {
        let Header { seq, ack, window, .. } = header;
        self.snd.update_window(seq, ack, u32::from(window) << self.snd.scale);
    }

    /// Carries out the seventh step of segment processing: appends the data and counts it for an ACK.
    #[inline(always)]
    fn take_expected_text(&mut self, payload: Payload<B>) {
        let bytes = payload.bytes();
        self.rcv.append_expected(payload, bytes);
        self.events |= Events::READABLE;
        if self.acks.count(bytes, self.rcv.full_segment()) {
            self.acknowledge_all_plain();
        }
    }
}

/// The state of a run while it is processed.
pub(super) struct Run {
    now: Instant,
    /// `true` if the connection can take the fast path for data: the result of
    /// [`Connection::may_expect_text`].
    pub(super) may_expect: bool,
    /// `true` if the keep-alive timer has been restarted for this run.
    is_restarted: bool,
}

/// The header values of a data segment that the fast path compares and applies.
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
    #[inline]
    pub(super) fn of<B>(segment: &PlainSegment<B>) -> Self {
        let PlainSegment { seq, ack, flags, window, timestamp, ecn, .. } = *segment;
        Self { seq, ack, flags, window, timestamp, ecn }
    }
}
