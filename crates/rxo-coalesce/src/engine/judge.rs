//! Decides on candidates, for the tiers that parse whole headers.

use rxo_frame::FrameBuffer;

use super::Engine;
use crate::acks::ack_verdict;
use crate::held::Segment;
use crate::verdict::regular_step;
use crate::{Candidate, FlushReason, Kind, Verdict, verdict};

impl<B: FrameBuffer> Engine<B> {
    /// Decides on a candidate and applies the verdict. If its flow holds segments of the same kind, `found` is
    /// the flow's index and `last` the last held segment. Returns the index at which the candidate is held, or
    /// `None` if it was delivered.
    #[inline]
    pub(super) fn judge_and_apply(
        &mut self,
        (candidate, mut segment): (&Candidate<'_>, Segment),
        found: Option<u16>,
        last: Option<&Candidate<'_>>,
    ) -> Option<u16> {
        segment.id_step = last.map_or(0, |last| regular_step(last, candidate));
        let verdict = self.verdict(found.zip(last), candidate, &segment);
        self.apply(verdict, found, &segment)
    }

    /// Returns the verdict on a candidate. `last` is the index of the candidate's flow and the last segment
    /// that the flow holds; `None` if the flow holds nothing.
    fn verdict(
        &self,
        last: Option<(u16, &Candidate<'_>)>,
        candidate: &Candidate<'_>,
        segment: &Segment,
    ) -> Verdict {
        let policy = &self.config.policy;
        let of = |flow| &self.store.held[usize::from(flow)];
        match (segment.kind(), last) {
            (Kind::PureAck, None) => self.ack_alone(segment),
            (Kind::PureAck, Some((flow, last))) => {
                match ack_verdict((of(flow), last), candidate, policy) {
                    Verdict::Append(_) if !self.adds_to(flow, segment) => {
                        Verdict::FlushThenStart(FlushReason::Window, None)
                    }
                    verdict => verdict,
                }
            }
            (_, last) => verdict(last.map(|(flow, last)| (of(flow), last)), candidate, policy),
        }
    }
}
