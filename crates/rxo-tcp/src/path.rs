//! Path MTU discovery: the reports of routers (RFC 1191, 8201), the reports to distrust (RFC 5927), and
//! discovery without reports (RFC 2923, 4821).
//!
//! Separate because this module only decides on the segment size, from the segments that were sent,
//! acknowledged and retransmitted. Segment sizes are payload bytes, without headers.
//!
//! A router's report is applied at once if no segment of the reported size has passed yet. Otherwise the report
//! may be a forgery by an attacker that has guessed a sequence number. Then the report is applied only when the
//! segment that it names times out; an ACK of that segment refutes the report (RFC 5927, section 7.2). After
//! the size was lowered, a larger segment is tried from time to time; if that segment is acknowledged, its size
//! is used again.

use rxo_frame::{Duration, Instant};
use rxo_wire::SeqNumber;

/// The state of path MTU discovery for one connection.
#[derive(Clone, Debug)]
pub(crate) struct Path {
    /// The segment size that the handshake allowed, in bytes; never exceeded.
    full: u32,
    /// The largest segment size that is known to have passed, in bytes.
    passed: u32,
    /// A segment in flight that is larger than `passed` and was sent once: its ACK will show that the path
    /// carries segments of its size. `None` if there is no such segment.
    watched: Option<Watched>,
    /// A router's report that must be confirmed by a timeout; `None` if there is none.
    pending: Option<PendingReport>,
    /// The time at which a larger segment is tried next; `None` if no trial is scheduled.
    try_at: Option<Instant>,
    pub(crate) counts: PathCounts,
}

/// Counters of path MTU discovery and ICMP errors.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PathCounts {
    /// The number of "packet too big" reports that lowered the segment size.
    pub too_big_taken: u32,
    /// The number of "packet too big" reports that were ignored: wrong sequence number, implausible size, or
    /// refuted by an ACK.
    pub too_big_ignored: u32,
    /// The number of times that repeated timeouts of full segments lowered the segment size.
    pub black_holes: u32,
    /// The number of larger segments that were tried and passed.
    pub raised: u32,
    /// The number of reports that the peer is unreachable.
    pub unreachable: u32,
}

#[derive(Clone, Copy, Debug)]
struct Watched {
    start: SeqNumber,
    end: SeqNumber,
    bytes: u32,
    is_trial: bool,
}

#[derive(Clone, Copy, Debug)]
struct PendingReport {
    seq: SeqNumber,
    mss: u32,
}

/// The treatment of a router's report.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ReportVerdict {
    /// The router's report is implausible or not new.
    Ignored,
    /// The router's report is applied if the segment that it names times out.
    Waits,
    /// The router's report is applied: this is the new segment size, in bytes.
    Applied(u32),
}

impl Path {
    pub(crate) fn new(mss: u32) -> Self {
        let counts = PathCounts::default();
        Self { full: mss, passed: 0, watched: None, pending: None, try_at: None, counts }
    }

    /// Sets the segment size that the handshake allowed, in bytes, and resets everything except the counters.
    pub(crate) fn start(&mut self, mss: u32) {
        *self = Self { counts: self.counts, ..Self::new(mss) };
    }

    /// Decides how to treat a router's report that the segment with `seq` was too large and that the path
    /// carries segments of `mss` bytes. `now_used` is the segment size in use, in bytes.
    pub(crate) fn judge(&mut self, seq: SeqNumber, mss: u32, now_used: u32) -> ReportVerdict {
        if mss >= now_used {
            self.counts.too_big_ignored += 1;
            return ReportVerdict::Ignored;
        }
        if mss < self.passed {
            self.pending = Some(PendingReport { seq, mss });
            return ReportVerdict::Waits;
        }
        ReportVerdict::Applied(mss)
    }

    /// Processes the timeout of the first outstanding segment. Returns the segment size in bytes of a
    /// router's report that waited for this timeout; `None` if no report waited.
    pub(crate) fn timed_out(&mut self, now_used: u32) -> Option<u32> {
        let pending = self.pending.take()?;
        (pending.mss < now_used).then_some(pending.mss)
    }

    /// Records that a smaller segment size is used from now on; a larger one is tried at `try_at`.
    pub(crate) fn lowered(&mut self, mss: u32, try_at: Instant) {
        self.passed = self.passed.min(mss);
        (self.watched, self.pending, self.try_at) = (None, None, Some(try_at));
    }

    /// Records that a full segment of `bytes` is sent for the first time.
    pub(crate) fn sent(&mut self, start: SeqNumber, bytes: u32) {
        if bytes > self.passed && self.watched.is_none() {
            self.watched = Some(Watched { start, end: start + bytes, bytes, is_trial: false });
        }
    }

    /// Records that a segment of `bytes` bytes is sent as a trial: the path is not known to carry segments of
    /// this size.
    pub(crate) fn trial_sent(&mut self, start: SeqNumber, bytes: u32) {
        self.try_at = None;
        self.watched = Some(Watched { start, end: start + bytes, bytes, is_trial: true });
    }

    /// Records that the range `start` to `end` is retransmitted. From then on it cannot be known whether the
    /// first transmission passed. Returns `true` if the first transmission tried a larger size; that trial
    /// has failed.
    pub(crate) fn sent_again(&mut self, start: SeqNumber, end: SeqNumber, now: Instant) -> bool {
        let overlaps =
            |watched: &mut Watched| watched.start.is_before(end) && start.is_before(watched.end);
        let has_failed = self.watched.take_if(overlaps).is_some_and(|watched| watched.is_trial);
        if has_failed {
            self.try_at = Some(now + TRY_AGAIN_AFTER);
        }
        has_failed
    }

    /// Returns `true` if `now_used` is a smaller segment size than the handshake allows.
    pub(crate) fn is_smaller_than_full(&self, now_used: u32) -> bool {
        now_used < self.full
    }

    /// Records that everything before `una` has arrived. Returns the new segment size in bytes if a trial
    /// passed, otherwise `None`.
    pub(crate) fn acknowledged(&mut self, una: SeqNumber) -> Option<u32> {
        if self.pending.take_if(|pending| pending.seq.is_before(una)).is_some() {
            self.counts.too_big_ignored += 1;
        }
        let watched = self.watched.take_if(|watched| una.is_at_or_after(watched.end))?;
        self.passed = self.passed.max(watched.bytes);
        self.counts.raised += u32::from(watched.is_trial);
        watched.is_trial.then_some(watched.bytes)
    }

    /// Returns `true` if [`Path::acknowledged`] may have an effect.
    pub(crate) fn is_watching(&self) -> bool {
        self.watched.is_some() || self.pending.is_some()
    }

    /// Returns the larger segment size to try now, in bytes; `None` if no trial is due.
    pub(crate) fn trial(&self, now_used: u32, now: Instant) -> Option<u32> {
        let is_due = self.try_at.is_some_and(|at| at <= now) && self.full > now_used;
        is_due.then_some(self.full)
    }

    /// Returns the next smaller segment size to try without a report, in bytes; `None` if there is no smaller
    /// size to try. `headers` is the length of the IP and TCP headers with options, in bytes.
    pub(crate) fn next_smaller(now_used: u32, headers: u32, is_v4: bool) -> Option<u32> {
        let sizes = if is_v4 { &SMALLER_MTUS_V4[..] } else { &SMALLER_MTUS_V6[..] };
        let mut sizes = sizes.iter().map(|mtu| mtu - headers);
        sizes.find(|size| *size < now_used)
    }
}

/// The time between two trials of a larger size: at least ten minutes (RFC 8201, section 5.3; RFC 1191,
/// section 6.3).
pub(crate) const TRY_AGAIN_AFTER: Duration = Duration::from_secs(600);
/// The MTUs in bytes to try without a report: the smallest MTU of an IPv6 link, which fits most tunnels, and
/// the packet size that every IPv4 host accepts.
const SMALLER_MTUS_V4: [u32; 2] = [1_280, LEAST_MTU_V4];
const SMALLER_MTUS_V6: [u32; 1] = [LEAST_MTU_V6];
/// The smallest MTU for IPv4, in bytes: a router's report does not lower it further (RFC 5927, section 7.2,
/// "Discussion").
pub(crate) const LEAST_MTU_V4: u32 = 576;
/// The smallest MTU of an IPv6 link, in bytes (RFC 8200, section 5).
pub(crate) const LEAST_MTU_V6: u32 = 1_280;

#[cfg(test)]
mod tests {
    use super::*;

    const AT: SeqNumber = SeqNumber(5_000);

    fn used(passed: bool) -> Path {
        let mut path = Path::new(1_400);
        path.sent(SeqNumber(0), 1_400);
        if passed {
            assert_eq!(path.acknowledged(SeqNumber(1_400)), None);
        }
        path
    }

    /// The first discovery is quick; a later report waits for a timeout (RFC 5927, section 7.2).
    #[test]
    fn a_routers_word_is_believed_unless_larger_ones_have_passed() {
        assert_eq!(used(false).judge(AT, 1_200, 1_400), ReportVerdict::Applied(1_200));
        let mut path = used(true);
        assert_eq!(path.judge(AT, 1_200, 1_400), ReportVerdict::Waits);
        assert_eq!(path.timed_out(1_400), Some(1_200));
        assert_eq!(path.timed_out(1_400), None);
        assert_eq!(path.judge(AT, 1_200, 1_400), ReportVerdict::Waits);
        path.acknowledged(AT + 1);
        assert_eq!(path.timed_out(1_400), None);
        assert_eq!(path.judge(AT, 1_400, 1_400), ReportVerdict::Ignored);
        assert_eq!(path.counts.too_big_ignored, 2);
    }

    #[test]
    fn a_trial_that_passes_raises_the_size() {
        let now = Instant::from_micros(9);
        let mut path = used(false);
        path.lowered(1_000, now + TRY_AGAIN_AFTER);
        assert_eq!(path.trial(1_000, now), None);
        let later = now + TRY_AGAIN_AFTER;
        assert_eq!(path.trial(1_000, later), Some(1_400));
        path.trial_sent(AT, 1_400);
        assert_eq!(path.trial(1_000, later), None);
        assert_eq!(path.acknowledged(AT + 1_399), None);
        assert_eq!(path.acknowledged(AT + 1_400), Some(1_400));

        path.lowered(1_000, later);
        path.trial_sent(AT, 1_400);
        path.sent_again(AT + 1_000, AT + 1_400, later);
        assert_eq!(path.acknowledged(AT + 1_400), None);
        assert_eq!(path.trial(1_000, later), None);
        assert_eq!(path.trial(1_000, later + TRY_AGAIN_AFTER), Some(1_400));
    }

    #[test]
    fn without_a_router_the_size_is_guessed() {
        assert_eq!(Path::next_smaller(1_460, 40, true), Some(1_240));
        assert_eq!(Path::next_smaller(1_240, 40, true), Some(536));
        assert_eq!(Path::next_smaller(536, 40, true), None);
        assert_eq!(Path::next_smaller(1_428, 72, false), Some(1_208));
        assert_eq!(Path::next_smaller(1_208, 72, false), None);
    }
}
