//! SEGMENT ARRIVES: the numbered steps of RFC 9293, section 3.10.7, in their order.
//!
//! `closed.rs`, `listen.rs` and `syn_sent.rs` are the states with steps of their own; for all others
//! `first_sequence.rs` to `eighth_fin.rs` are the steps of section 3.10.7.4. The third step (security)
//! is obsolete, and the sixth (URG) does nothing: urgent data is plain data here.

mod closed;
mod eighth_fin;
mod expected_acks;
mod expected_large;
mod expected_text;
mod fifth_ack;
mod first_sequence;
mod fourth_syn;
mod listen;
mod second_reset;
mod seventh_text;
mod syn;
mod syn_sent;

pub(crate) use self::syn::offered_scale;

use core::ops::ControlFlow;

use rxo_frame::Instant;
use rxo_wire::tcp::{AckRecord, Timestamp};

use crate::options::SegmentOptions;
use crate::segment::{Ecn, Segment};
use crate::{AckPolicy, Connection, State};

impl<B: AsRef<[u8]>> Connection<B> {
    /// Takes one segment, whose addresses and ports are this connection's and whose checksum is
    /// right. `now` is not before any time given earlier. Does not allocate.
    pub fn on_segment(&mut self, now: Instant, segment: Segment<B>) {
        self.arrive(now, segment);
        self.settle(now);
    }

    /// Takes an aggregate: its segments, in order. The same as one [`Connection::on_segment`] after
    /// the other with nothing transmitted in between, except that with
    /// [`AckPolicy::OneForAnAggregate`] one acknowledgement is owed for all.
    pub fn on_aggregate(&mut self, now: Instant, segments: impl IntoIterator<Item = Segment<B>>) {
        let owed_before = self.acks.count_owed();
        for segment in segments {
            self.arrive(now, segment);
        }
        if self.config.acks == AckPolicy::OneForAnAggregate {
            self.acks.stretch(owed_before);
        }
        self.settle(now);
    }

    #[inline(never)]
    fn arrive(&mut self, now: Instant, mut segment: Segment<B>) {
        self.acks.begin_segment();
        match self.state {
            State::Closed(_) => self.arrives_closed(&segment),
            State::Listen => self.arrives_listen(now, &segment),
            State::SynSent(_) => self.arrives_syn_sent(now, segment),
            _ => {
                // Break only says which step was the last.
                let _ = self.arrives_otherwise(now, &mut segment);
            }
        }
        self.end_segment();
    }

    /// Section 3.10.7.4.
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
        self.heard_of_peer(now);
        duplicate.into_iter().for_each(|block| self.rcv.sack.received_again(block));
        self.take_content(now, segment);
        if exceeds {
            self.acks.answer_alone();
        }
        ControlFlow::Continue(())
    }

    /// From the seventh step on; the sixth (URG) does nothing.
    #[inline(always)]
    fn take_content(&mut self, now: Instant, segment: &mut Segment<B>) {
        let fin_at = self.fin_of(segment);
        self.take_text(segment);
        self.check_fin(now, fin_at);
    }
}

impl<B> From<&AckRecord> for Segment<B> {
    /// The pure ACK of which `record` is.
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
