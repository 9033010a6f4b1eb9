//! SEGMENT ARRIVES: the numbered steps of RFC 9293, section 3.10.7, in their order.
//!
//! [`Connection::on_arrival`] is the entry point. The steps are the slow path, which processes any segment.
//! `expected_text.rs`, `expected_gso.rs` and `expected_acks.rs` are fast paths, one for each form of
//! [`Arrival`]; they leave unexpected segments to the steps. A pure ACK among segments of any kind takes the
//! fast path for ACKs.
//!
//! `closed.rs`, `listen.rs` and `syn_sent.rs` are the states with steps of their own; for all other states
//! `first_sequence.rs` to `eighth_fin.rs` are the steps of section 3.10.7.4. The third step (security) is
//! obsolete, and the sixth (URG) does nothing: urgent data is plain data here. `group.rs` is a second entry
//! point, for segments that the peer has sent to a multicast group; it leads into the same steps.

mod ack_records;
mod closed;
mod eighth_fin;
mod expected_acks;
mod expected_gso;
mod expected_text;
mod fifth_ack;
mod first_sequence;
mod fourth_syn;
mod group;
mod listen;
mod second_reset;
mod seventh_text;
mod syn;
mod syn_sent;

pub use self::group::GroupCounts;
pub(crate) use self::syn::{least_receive_bytes, offered_scale};

use core::iter::once;
use core::ops::ControlFlow;

use rxo_frame::{Frames, Instant};
use rxo_wire::TcpFlags;
use rxo_wire::tcp::{AckRecord, Timestamp};

use self::ack_records::{OneByOne, SideBySide};
use crate::options::SegmentOptions;
use crate::segment::{Ecn, Segment};
use crate::{AckPolicy, Arrival, Connection, State};

impl<B: AsRef<[u8]>> Connection<B> {
    /// Processes the segments of an arrival, in order. The caller has checked that addresses and ports are
    /// this connection's and that the checksums are right. `now` must not be earlier than any time given
    /// before. Allocates only up to the granted buffers.
    ///
    /// The variant of the arrival changes only the cost. An [`Arrival::Segments`] with the same segments has
    /// the same effect, and so has one arrival for each segment if nothing is transmitted in between.
    pub fn on_arrival<F, A, S>(&mut self, now: Instant, arrival: Arrival<B, F, A, S>)
    where
        F: Frames<B>,
        A: Iterator<Item = AckRecord>,
        S: Iterator<Item = Segment<B>>,
    {
        match arrival {
            Arrival::Run(segments) => self.take_run(now, segments),
            Arrival::Gso(segment) => self.take_gso(now, segment),
            Arrival::Acks(records) => self.take_acks(now, OneByOne(records)),
            Arrival::Segments(segments) => segments.for_each(|it| self.take_one(now, it)),
        }
        self.end_arrival(now);
    }

    /// Processes pure ACKs, like [`Connection::on_arrival`] with [`Arrival::Acks`]. Costs less than
    /// `on_arrival`, because `records` is contiguous.
    #[inline]
    pub fn on_pure_acks(&mut self, now: Instant, records: &[AckRecord]) {
        match records {
            [record] => self.on_only_ack(now, record),
            _ => self.on_acks_side_by_side(now, records),
        }
    }

    /// Processes a single ACK. Not inlined: a single ACK needs no loop, so the state of this function fits in
    /// registers.
    #[inline(never)]
    fn on_only_ack(&mut self, now: Instant, record: &AckRecord) {
        self.take_only_ack(now, record);
        self.end_arrival(now);
    }

    #[inline(never)]
    fn on_acks_side_by_side(&mut self, now: Instant, records: &[AckRecord]) {
        self.take_acks(now, SideBySide(records.iter()));
        self.end_arrival(now);
    }

    #[inline(always)]
    fn end_arrival(&mut self, now: Instant) {
        match self.config.acks {
            AckPolicy::EverySecondSegment => {}
            AckPolicy::OneForATurn => self.acks.stretch(),
            AckPolicy::Spread { .. } => self.acks.keep_last(),
        }
        self.update_timers(now);
    }

    /// Processes one segment: a pure ACK by the fast path for ACKs, any other by the steps.
    #[inline]
    fn take_one(&mut self, now: Instant, segment: Segment<B>) {
        if segment.is_pure_ack() {
            self.take_lone_ack(now, &segment);
        } else {
            self.take_segment(now, segment);
        }
    }

    /// Processes a pure ACK among segments of any kind, by the fast path for ACKs. Not inlined, because the
    /// inlined code would slow down segments with data by using registers.
    #[inline(never)]
    fn take_lone_ack(&mut self, now: Instant, ack: &Segment<B>) {
        self.take_acks(now, OneByOne(once(ack.ack_record())));
    }

    /// Processes one segment by the numbered steps, which are the slow path.
    #[inline(never)]
    fn take_segment(&mut self, now: Instant, mut segment: Segment<B>) {
        self.acks.begin_segment();
        match self.state {
            State::Closed(_) => self.arrives_closed(&segment),
            State::Listen => self.arrives_listen(now, &segment),
            State::SynSent(_) => self.arrives_syn_sent(now, segment),
            _ => {
                // A break only shows which step was the last.
                let _ = self.arrives_otherwise(now, &mut segment);
            }
        }
        self.end_segment();
        if self.is_window_closed() {
            // The next segment of the arrival may open the window, so the persist timer must be armed before
            // it.
            self.update_timers(now);
        }
    }

    /// Processes a segment in any state after SYN-SENT (RFC 9293, section 3.10.7.4).
    fn arrives_otherwise(&mut self, now: Instant, segment: &mut Segment<B>) -> ControlFlow<()> {
        self.check_sequence(now, segment)?;
        self.check_reset(now, segment)?;
        self.check_syn(now, segment)?;
        let (mut duplicate, mut exceeds) = (None, false);
        if !self.is_next(segment) {
            duplicate = self.duplicate_of(segment);
            exceeds = self.trim_to_window(segment);
        }
        self.check_ack(now, segment)?;
        self.remember_timestamp(now, segment);
        self.restart_keep_alive(now);
        duplicate.into_iter().for_each(|block| self.rcv.sack.received_again(block));
        self.take_content(now, segment);
        if exceeds {
            self.acks.answer_alone();
        }
        ControlFlow::Continue(())
    }

    /// Processes the data and the FIN of a segment: the seventh and the eighth step. The sixth step (URG)
    /// does nothing.
    #[inline(always)]
    fn take_content(&mut self, now: Instant, segment: &mut Segment<B>) {
        let fin_at = self.fin_of(segment);
        self.take_text(segment);
        self.check_fin(now, fin_at);
    }
}

impl<B> Segment<B> {
    /// Returns `true` for a pure ACK with no options except timestamps and without ECE or CWR.
    #[inline]
    fn is_pure_ack(&self) -> bool {
        self.flags == TcpFlags::ACK && self.payload.is_none() && self.options.is_plain()
    }

    /// Returns the record of this segment, which must be a pure ACK.
    fn ack_record(&self) -> AckRecord {
        let Timestamp { value, echo } = self.options.timestamp.unwrap_or_default();
        AckRecord {
            arrived_at_ns: self.arrived_at.as_nanos(),
            seq: self.seq,
            ack: self.ack,
            ts_value: value,
            ts_echo: echo,
            window: self.window,
            flags: self.flags,
            ecn: self.ecn.bits(),
            has_timestamp: self.options.timestamp.is_some(),
        }
    }
}

impl<B> From<&AckRecord> for Segment<B> {
    /// Returns the pure ACK that `record` describes.
    fn from(record: &AckRecord) -> Self {
        let timestamp = Timestamp { value: record.ts_value, echo: record.ts_echo };
        let timestamp = record.has_timestamp.then_some(timestamp);
        Self {
            seq: record.seq,
            ack: record.ack,
            flags: record.flags,
            window: record.window,
            options: SegmentOptions { timestamp, ..SegmentOptions::default() },
            payload: None,
            ecn: Ecn::from_traffic_class(record.ecn),
            arrived_at: Instant::from_nanos(record.arrived_at_ns),
        }
    }
}
