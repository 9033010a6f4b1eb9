//! Tells a full queue behind a packet socket from a packet that the kernel refuses for another reason.
//!
//! It is separate because the kernel answers both with the same error, ENOBUFS: the queue of the interface has no
//! room, or a filter on the way out dropped the packet. Pure. Contract: a packet that would never pass is kept for no
//! longer than it takes what waits before it to leave.

/// The packet that was refused last, and is to be tried again.
#[derive(Debug, Default)]
pub(crate) struct FullQueue {
    /// How many bytes of ours waited in the kernel when it was first refused.
    waited: Option<u64>,
}

/// How many times its own bytes must have left before a packet that is still refused is not refused for want of room.
/// The kernel counts what waits with its overhead: 768 bytes for a frame of 60.
const ROOM_FACTOR: u64 = 16;

impl FullQueue {
    /// Whether a packet of so many bytes, which was refused while `queued` bytes of ours waited in the kernel, may pass
    /// once some of those have left.
    pub(crate) fn may_pass_later(&mut self, packet_bytes: u64, queued: u64) -> bool {
        let waited = *self.waited.get_or_insert(queued);
        let has_left = waited.saturating_sub(queued);
        let may_pass = queued > 0 && has_left <= packet_bytes * ROOM_FACTOR;
        if !may_pass {
            self.waited = None;
        }
        may_pass
    }

    /// A packet was sent, so what is refused next is another.
    pub(crate) const fn passed(&mut self) {
        self.waited = None;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_packet_is_kept_while_ours_fill_the_queue() {
        let mut queue = FullQueue::default();
        for _ in 0..1_000 {
            assert!(queue.may_pass_later(1_000, 100_000));
        }
        assert!(queue.may_pass_later(1_000, 100_000 - 16_000));
    }

    #[test]
    fn a_packet_that_is_refused_though_there_is_room_is_not_kept() {
        let mut queue = FullQueue::default();
        assert!(!queue.may_pass_later(1_000, 0), "nothing of ours is in its way");
        assert!(queue.may_pass_later(1_000, 100_000));
        assert!(!queue.may_pass_later(1_000, 100_000 - 16_001), "more than enough has left");
        assert!(queue.may_pass_later(1_000, 100_000 - 16_001), "the next packet has its own time");
    }

    #[test]
    fn a_packet_that_passed_ends_the_time_of_the_one_before() {
        let mut queue = FullQueue::default();
        assert!(queue.may_pass_later(1_000, 100_000));
        queue.passed();
        assert!(queue.may_pass_later(1_000, 50_000));
    }
}
