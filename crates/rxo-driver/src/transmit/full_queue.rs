//! Full queue: distinguishes a full queue behind a packet socket from a packet that the kernel refuses for
//! another reason.
//!
//! This module is separate because the kernel reports both by the same error, ENOBUFS: the interface's queue is
//! full, or an egress filter dropped the packet. This module makes no system calls. Contract: a packet that the
//! kernel would never accept is retried only until the bytes that were queued before it have left.

/// The state of the packet that was refused last and is being retried.
#[derive(Debug, Default)]
pub(crate) struct FullQueue {
    /// The number of bytes from this socket that were queued in the kernel when the packet was first refused;
    /// `None` if no packet is being retried.
    waited: Option<u64>,
}

/// The limit of retries: a packet is retried until this many times its own length has left the queue. If the
/// kernel still refuses the packet then, the reason is not a full queue. The factor is large because the kernel
/// counts queued bytes with overhead: 768 bytes for a frame of 60.
const RETRY_FACTOR: u64 = 16;

impl FullQueue {
    /// Returns `true` if a packet of `packet_bytes` bytes should be retried once queued bytes have left. The
    /// packet was refused while `queued` bytes from this socket were in the kernel.
    pub(crate) fn may_pass_later(&mut self, packet_bytes: u64, queued: u64) -> bool {
        let waited = *self.waited.get_or_insert(queued);
        let has_left = waited.saturating_sub(queued);
        let may_pass = queued > 0 && has_left <= packet_bytes * RETRY_FACTOR;
        if !may_pass {
            self.waited = None;
        }
        may_pass
    }

    /// Ends the retries of the last packet because a packet was sent; the next refusal is of another packet.
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
