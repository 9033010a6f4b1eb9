//! How large a segment the path takes: what routers say (RFC 1191, 8201), what they may not say
//! (RFC 5927), and what is found out without them (RFC 2923, 4821).
//!
//! Separate because it decides only: it is told what was sent, acknowledged and sent again, and says
//! which size is to be used. Sizes are payload of a segment, in bytes.
//!
//! A router's word is believed at once while nothing so large is known to have passed. Later it may be
//! an attacker's, who has guessed a sequence number: then it waits until the segment that it names
//! has timed out, and an acknowledgement of that segment makes it a lie (RFC 5927, section 7.2).
//! After the path was found smaller, one larger segment is tried now and then; if it passes, it is
//! the size again.

use rxo_frame::{Duration, Instant};
use rxo_wire::SeqNumber;

/// What is known of the path.
#[derive(Clone, Debug)]
pub(crate) struct Path {
    /// What the handshake settled; never exceeded.
    full: u32,
    /// The largest that is known to have passed.
    passed: u32,
    /// A segment larger than that, sent once.
    watched: Option<Watched>,
    /// A router's word that a timeout must confirm.
    word: Option<Word>,
    /// When a larger segment is to be tried.
    try_at: Option<Instant>,
    pub(crate) counts: PathCounts,
}

/// What happened on the path, counted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PathCounts {
    /// Reports of packets too big that lowered the segment size.
    pub too_big_taken: u32,
    /// Those that did not: wrong sequence number, a size that cannot be, or refuted by an
    /// acknowledgement.
    pub too_big_ignored: u32,
    /// How often full segments timed out so often that smaller ones were tried.
    pub black_holes: u32,
    /// Larger segments that were tried later and passed.
    pub raised: u32,
    /// Reports that the peer cannot be reached.
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
struct Word {
    seq: SeqNumber,
    mss: u32,
}

/// What a router's word comes to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Judgement {
    /// It cannot be, or says nothing new.
    Ignored,
    /// It is believed when the segment times out.
    Waits,
    /// This is the size.
    Believed(u32),
}

impl Path {
    pub(crate) fn new(mss: u32) -> Self {
        let counts = PathCounts::default();
        Self { full: mss, passed: 0, watched: None, word: None, try_at: None, counts }
    }

    /// The handshake has settled the size.
    pub(crate) fn start(&mut self, mss: u32) {
        *self = Self { counts: self.counts, ..Self::new(mss) };
    }

    /// A router says that a segment with `seq` was too large, and that `mss` fits; `now_used` is the
    /// size in use.
    pub(crate) fn judge(&mut self, seq: SeqNumber, mss: u32, now_used: u32) -> Judgement {
        if mss >= now_used {
            self.counts.too_big_ignored += 1;
            return Judgement::Ignored;
        }
        if mss < self.passed {
            self.word = Some(Word { seq, mss });
            return Judgement::Waits;
        }
        Judgement::Believed(mss)
    }

    /// The segment at `una` has timed out; the size that a router's word asks for, if one waited.
    pub(crate) fn timed_out(&mut self, now_used: u32) -> Option<u32> {
        let word = self.word.take()?;
        (word.mss < now_used).then_some(word.mss)
    }

    /// A smaller size is used from now on; a larger one is tried at `try_at`.
    pub(crate) fn lowered(&mut self, mss: u32, try_at: Instant) {
        self.passed = self.passed.min(mss);
        (self.watched, self.word, self.try_at) = (None, None, Some(try_at));
    }

    /// A segment of `bytes`, which is full, leaves for the first time.
    pub(crate) fn sent(&mut self, start: SeqNumber, bytes: u32) {
        if bytes > self.passed && self.watched.is_none() {
            self.watched = Some(Watched { start, end: start + bytes, bytes, is_trial: false });
        }
    }

    /// The segment that tries a larger size leaves.
    pub(crate) fn trial_sent(&mut self, start: SeqNumber, bytes: u32) {
        self.try_at = None;
        self.watched = Some(Watched { start, end: start + bytes, bytes, is_trial: true });
    }

    /// `start` to `end` leaves again: whether it passed at first is not known any more. Says whether it
    /// was to try a larger size, which is not to be had then.
    pub(crate) fn sent_again(&mut self, start: SeqNumber, end: SeqNumber, now: Instant) -> bool {
        let overlaps =
            |watched: &mut Watched| watched.start.is_before(end) && start.is_before(watched.end);
        let has_failed = self.watched.take_if(overlaps).is_some_and(|watched| watched.is_trial);
        if has_failed {
            self.try_at = Some(now + TRY_AGAIN_AFTER);
        }
        has_failed
    }

    /// Whether `now_used` is less than the handshake allowed.
    pub(crate) fn is_smaller_than_full(&self, now_used: u32) -> bool {
        now_used < self.full
    }

    /// Everything before `una` has arrived; the size to be used from now on, when a trial passed.
    pub(crate) fn acknowledged(&mut self, una: SeqNumber) -> Option<u32> {
        if self.word.take_if(|word| word.seq.is_before(una)).is_some() {
            self.counts.too_big_ignored += 1;
        }
        let watched = self.watched.take_if(|watched| una.is_at_or_after(watched.end))?;
        self.passed = self.passed.max(watched.bytes);
        self.counts.raised += u32::from(watched.is_trial);
        watched.is_trial.then_some(watched.bytes)
    }

    /// Whether [`Path::acknowledged`] has anything to look at.
    pub(crate) fn is_watching(&self) -> bool {
        self.watched.is_some() || self.word.is_some()
    }

    /// The larger size to be tried now, if any.
    pub(crate) fn trial(&self, now_used: u32, now: Instant) -> Option<u32> {
        let is_due = self.try_at.is_some_and(|at| at <= now) && self.full > now_used;
        is_due.then_some(self.full)
    }

    /// The next smaller size when nobody says which; `None` when there is none. `headers` is what IP
    /// and TCP take, options included.
    pub(crate) fn next_smaller(now_used: u32, headers: u32, is_v4: bool) -> Option<u32> {
        let sizes = if is_v4 { &GUESSES_V4[..] } else { &GUESSES_V6[..] };
        let mut sizes = sizes.iter().map(|mtu| mtu - headers);
        sizes.find(|size| *size < now_used)
    }
}

/// RFC 8201, section 5.3, and RFC 1191, section 6.3: not more often than every ten minutes.
pub(crate) const TRY_AGAIN_AFTER: Duration = Duration::from_secs(600);
/// What an IPv6 link carries at least passes most tunnels; 576 bytes every IPv4 host takes.
const GUESSES_V4: [u32; 2] = [1_280, LEAST_MTU_V4];
const GUESSES_V6: [u32; 1] = [LEAST_MTU_V6];
/// Below this a router's word is no reason to cut further (RFC 5927, section 7.2, "Discussion").
pub(crate) const LEAST_MTU_V4: u32 = 576;
/// RFC 8200, section 5.
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

    /// RFC 5927, section 7.2: the initial discovery is quick, an update waits for a timeout.
    #[test]
    fn a_routers_word_is_believed_unless_larger_ones_have_passed() {
        assert_eq!(used(false).judge(AT, 1_200, 1_400), Judgement::Believed(1_200));
        let mut path = used(true);
        assert_eq!(path.judge(AT, 1_200, 1_400), Judgement::Waits);
        assert_eq!(path.timed_out(1_400), Some(1_200));
        assert_eq!(path.timed_out(1_400), None);
        assert_eq!(path.judge(AT, 1_200, 1_400), Judgement::Waits);
        path.acknowledged(AT + 1);
        assert_eq!(path.timed_out(1_400), None);
        assert_eq!(path.judge(AT, 1_400, 1_400), Judgement::Ignored);
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
