//! Tail loss probes (RFC 8985, section 7): if the last segments of a flight are lost, no later segment reveals
//! the loss. A probe causes an answer of the peer before the retransmission timeout.

use rxo_wire::SeqNumber;

/// The state of the tail loss probe.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct TailProbe {
    /// TLP.end_seq: SND.NXT after the probe was sent; `None` if no probe is in flight.
    end: Option<SeqNumber>,
    /// TLP.is_retrans: `true` if the probe in flight is a retransmission.
    is_retransmission: bool,
    /// `true` if the timer has fired and the probe must be sent.
    pub(crate) is_due: bool,
}

/// The values of an ACK that concern the tail loss probe.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ProbeAck {
    pub(crate) ack: SeqNumber,
    /// `true` if the ACK reports data that arrived twice.
    pub(crate) reports_duplicate: bool,
    /// `true` if the ACK repeats the last ACK, with no SACK and no data.
    pub(crate) is_duplicate: bool,
}

impl TailProbe {
    /// Returns `true` if a tail loss probe is in flight.
    pub(crate) fn is_out(&self) -> bool {
        self.end.is_some()
    }

    /// Records that the probe is sent (RFC 8985, section 7.3). `nxt` is the value of SND.NXT after the probe.
    pub(crate) fn sent(&mut self, nxt: SeqNumber, is_retransmission: bool) {
        *self = Self { end: Some(nxt), is_retransmission, is_due: false };
    }

    pub(crate) fn cancel(&mut self) {
        *self = Self::default();
    }

    /// Processes an ACK. Returns `true` if the ACK shows that the probe has repaired a loss, which counts as
    /// congestion (RFC 8985, section 7.4.2).
    pub(crate) fn on_ack(&mut self, ack: &ProbeAck) -> bool {
        let Some(end) = self.end.filter(|end| ack.ack.is_at_or_after(*end)) else { return false };
        let both_arrived = ack.reports_duplicate || (ack.ack == end && ack.is_duplicate);
        if !self.is_retransmission || both_arrived {
            self.end = None;
            return false;
        }
        let has_repaired = ack.ack != end;
        if has_repaired {
            self.end = None;
        }
        has_repaired
    }
}

/// Returns PTO, the timeout of the probe, in nanoseconds (RFC 8985, section 7.2). `is_one_segment` adds time
/// for a peer that delays its ACK.
pub(crate) fn probe_timeout_ns(srtt_ns: Option<u64>, is_one_segment: bool) -> u64 {
    let Some(srtt_ns) = srtt_ns else { return WITHOUT_ESTIMATE_NS };
    let delay_ns = if is_one_segment { MAX_ACK_DELAY_NS } else { 0 };
    (srtt_ns * 2 + delay_ns).max(LEAST_NS)
}

const WITHOUT_ESTIMATE_NS: u64 = 1_000_000_000;
/// The shortest timeout of a tail loss probe, in nanoseconds: timers are not more exact.
const LEAST_NS: u64 = 1_000_000;
/// TLP.max_ack_delay, the longest delay of an ACK by the peer, in nanoseconds.
const MAX_ACK_DELAY_NS: u64 = 200_000_000;

#[cfg(test)]
mod tests {
    use super::*;

    const END: SeqNumber = SeqNumber(1000);

    fn acked(is_retransmission: bool, ack: &ProbeAck) -> (bool, bool) {
        let mut probe = TailProbe::default();
        probe.sent(END, is_retransmission);
        let repaired = probe.on_ack(ack);
        (repaired, probe.is_out())
    }

    /// Checks each case of RFC 8985, section 7.4.2.
    #[test]
    fn only_a_retransmission_that_was_needed_counts_as_loss() {
        let ack = |ack, reports_duplicate, is_duplicate| ProbeAck {
            ack: SeqNumber(ack),
            reports_duplicate,
            is_duplicate,
        };
        assert_eq!(acked(true, &ack(999, false, false)), (false, true));
        assert_eq!(acked(false, &ack(1000, false, false)), (false, false));
        assert_eq!(acked(true, &ack(1000, true, false)), (false, false));
        assert_eq!(acked(true, &ack(1000, false, true)), (false, false));
        assert_eq!(acked(true, &ack(1000, false, false)), (false, true));
        assert_eq!(acked(true, &ack(1001, false, false)), (true, false));
    }
}
