//! The end of a poll: decides which flows each hold policy flushes.

use rxo_frame::{FrameBuffer, Instant, Load};

use super::Engine;
use crate::{FlushReason, Hold};

impl<B: FrameBuffer> Engine<B> {
    /// Ends a poll: flushes the flows that the hold policy does not keep.
    pub(super) fn hold_or_flush(&mut self, now: Instant, load: Option<Load>) {
        match self.config.policy.hold {
            Hold::EndOfPoll if self.table.is_empty() => return,
            Hold::EndOfPoll => {
                return self.flush_all(self.store.end(), FlushReason::EndOfPoll, now);
            }
            Hold::EveryNthPoll(polls) => {
                self.polls += 1;
                if self.polls >= polls {
                    self.polls = 0;
                    self.flush_all(self.store.end(), FlushReason::PollLimit, now);
                } else {
                    self.flush_lone(now);
                    self.flush_overdue(now);
                }
            }
            Hold::EveryNPackets(_) | Hold::Within(_) => self.flush_overdue(now),
            Hold::Auto { .. } => self.hold_or_flush_by_load(now, load),
        }
        self.store.marks.poll = self.store.end();
    }

    /// Flushes every flow that holds a single segment. Only flows that began in this poll can hold a single
    /// segment: older ones were flushed at the end of an earlier poll.
    fn flush_lone(&mut self, now: Instant) {
        self.flush_for(self.store.marks.poll, now, |_, held| {
            (held.segments == 1).then_some(FlushReason::LoneSegment)
        });
    }
}
