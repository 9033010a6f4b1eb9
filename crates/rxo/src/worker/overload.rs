//! Overload: decides which frames to drop when more arrive than can be processed (RFC 8289, CoDel).
//!
//! The computation has no side effects: times go in, a verdict comes out. The criterion is how long a frame
//! has waited in the ring, not how many wait with it. A burst may fill the ring for a moment, but a queue
//! that does not become shorter than [`Overload::target`] within an [`Overload::interval`] only adds delay.
//! Then single frames are dropped, oldest first and increasingly often, until the senders slow down.
//!
//! RFC 8289 does not say what to do about senders that do not slow down, or that are too many: its interval
//! between drops shrinks with a square root, which is too slow for hundreds of connections. If the queue
//! persists for another interval, all frames that have waited longer than the target are dropped, which bounds
//! the delay whatever arrives.
//!
//! Only the part of a frame's waiting time in which the worker ran counts ([`WorkClock`]), and none of it if
//! the worker ran for less than half of the time. Otherwise a worker that is late because other processes use
//! its core would drop frames that fit into the ring, for a delay that it does not cause. A worker that is
//! overloaded runs all the time.
//!
//! Flows send different amounts: if all flows lost frames alike, a flow that sends ten times what the worker
//! can process would cost every other flow nine tenths of its frames. So the queue determines the number of
//! drops, but only flows with more than their share of the batch lose frames ([`Weights`]): if a drop would hit
//! a frame of another flow, that frame is spared, and a frame of a heavy flow is dropped instead. If many flows
//! send equal amounts, all are heavy. A frame is spared only up to [`MOST_TARGETS`] times the target, which
//! still bounds the delay whatever arrives.
//!
//! While the host's device is blocked, nothing is read, and that time does not count, because the worker does
//! not cause the queue. Frames that accumulated are old when reading continues, and are dropped only if the
//! queue persists for an interval.

use std::time::Duration;

use rxo_frame::{Frame, Instant, LinkKind};

use super::weights::Weights;
use super::work_clock::WorkClock;

/// The limits beyond which a queue before the worker counts as a standing queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Overload {
    /// The delay in the queue that is acceptable: a standing queue may add no more than this.
    pub target: Duration,
    /// The time for which the delay may exceed the target: the time that senders need to react, a long round
    /// trip.
    pub interval: Duration,
}

impl Default for Overload {
    /// Returns the values of RFC 8289, sections 4.2 and 4.3: 5 ms and 100 ms.
    fn default() -> Self {
        Self { target: Duration::from_millis(5), interval: Duration::from_millis(100) }
    }
}

/// CoDel for the queue before the worker: heavy flows lose frames first.
#[derive(Clone, Debug)]
pub(super) struct FairCoDel {
    codel: CoDel,
    weights: Weights,
}

/// A multiple of [`Overload::target`]: a frame of a flow that is not heavy is spared only until it has waited
/// for this multiple of the target.
const MOST_TARGETS: u32 = 4;

impl FairCoDel {
    /// Creates the state for frames that begin with the header `link`.
    pub(super) fn new(config: Overload, link: LinkKind) -> Self {
        Self { codel: CoDel::new(config), weights: Weights::new(link) }
    }

    /// Removes the frames from `batch` that must be dropped, and returns their number. The batch was received at `now`
    /// and is in order of arrival. `is_all` means that no frame was left in the ring: then there is no queue, however
    /// late the worker is (RFC 8289, section 5.3). `work` measures for how much of the time the worker ran. Costs one
    /// comparison while the oldest frame has not waited long.
    pub(super) fn drop_from<B: AsRef<[u8]>>(
        &mut self,
        batch: &mut Vec<Frame<B>>,
        is_all: bool,
        now: Instant,
        work: &WorkClock,
    ) -> u64 {
        let target = self.codel.config.target;
        let is_short = |at: Instant| now.since(at) < target || work.wait_by_work(at, now) < target;
        if is_all || batch.first().is_none_or(|oldest| is_short(oldest.arrived_at)) {
            // The other frames are younger, so this verdict applies to all of them.
            let _passes = self.codel.drops(now, Duration::ZERO);
            return 0;
        }
        self.drop_fairly(batch, now, work)
    }

    #[cold]
    fn drop_fairly<B: AsRef<[u8]>>(
        &mut self,
        batch: &mut Vec<Frame<B>>,
        now: Instant,
        work: &WorkClock,
    ) -> u64 {
        let Self { codel, weights } = self;
        weights.record_batch(batch);
        let most = codel.config.target * MOST_TARGETS;
        let (before, mut spared) = (batch.len(), 0_u32);
        batch.retain(|frame| {
            let waited = work.wait_by_work(frame.arrived_at, now);
            let is_due = codel.drops(now, waited);
            let is_heavy = weights.is_heavy(frame);
            if is_due && !is_heavy && waited < most {
                spared += 1;
                return true;
            }
            let pays = !is_due && is_heavy && spared > 0;
            spared -= u32::from(pays);
            !(is_due || pays)
        });
        (before - batch.len()) as u64
    }
}

/// The state of CoDel (RFC 8289) for the queue before the worker.
#[derive(Clone, Copy, Debug)]
struct CoDel {
    config: Overload,
    /// The instant at which the delay will have been at least the target for an interval (`first_above_time` in
    /// RFC 8289); `None` while the delay is less.
    standing_at: Option<Instant>,
    dropping: Option<Dropping>,
    /// The value of `count` at the end of the last phase of dropping single frames; 0 before the first.
    last_count: u32,
    /// The instant at which the next drop would have been due when the last phase ended.
    last_drop_at: Instant,
    /// The instant until which all frames older than the target are dropped; `None` if that was never necessary.
    cut_until: Option<Instant>,
}

/// The state of a phase in which single frames are dropped.
#[derive(Clone, Copy, Debug)]
struct Dropping {
    /// The instant one interval after the start of this phase, by which its drops should have had an effect.
    evaluated_at: Instant,
    /// The instant at which the next drop of this phase is due (`drop_next` in RFC 8289).
    next_at: Instant,
    /// The number of drops in this phase, which determines the time to the next one. If the last phase ended
    /// recently, the count begins near the last count of that phase.
    count: u32,
    /// The value of `count` at the start of this phase.
    first_count: u32,
}

/// The number of intervals for which a phase of dropping is remembered. Within that time, a new phase of single
/// drops continues at the pace of the last phase (RFC 8289, section 5.4). After a frame was dropped because it
/// was older than the target, further such frames are dropped for the same number of intervals.
const MEMORY_INTERVALS: u32 = 16;

impl CoDel {
    const fn new(config: Overload) -> Self {
        Self {
            config,
            standing_at: None,
            dropping: None,
            last_count: 0,
            last_drop_at: Instant::ZERO,
            cut_until: None,
        }
    }

    /// Returns `true` if the frame that leaves the queue at `now` after waiting for `sojourn` must be
    /// dropped.
    fn drops(&mut self, now: Instant, sojourn: Duration) -> bool {
        let is_standing = self.is_standing(now, sojourn);
        if self.cut_until.is_some_and(|until| now < until) {
            return self.cuts(now, sojourn);
        }
        let Some(mut dropping) = self.dropping else {
            self.dropping = is_standing.then(|| self.begin(now));
            return is_standing;
        };
        if !is_standing {
            self.end(dropping);
            return false;
        }
        if now >= dropping.evaluated_at && dropping.count > dropping.first_count {
            self.end(dropping);
            return self.cuts(now, sojourn);
        }
        let is_due = now >= dropping.next_at;
        if is_due {
            dropping.count = dropping.count.saturating_add(1);
            dropping.next_at = dropping.next_at + self.gap(dropping.count);
            self.dropping = Some(dropping);
        }
        is_due
    }

    /// Returns `true` if the sojourn time has been at or above the target for a whole interval, so that this is a
    /// standing queue (RFC 8289, section 5.3). `sojourn` is the time that the newest dequeued frame has waited.
    fn is_standing(&mut self, now: Instant, sojourn: Duration) -> bool {
        if sojourn < self.config.target {
            self.standing_at = None;
            return false;
        }
        let standing_at = *self.standing_at.get_or_insert(now + self.config.interval);
        now >= standing_at
    }

    /// Returns a new phase of dropping, whose first drop is at `now`. If the last phase ended recently, the new
    /// phase continues at the pace of the last one.
    fn begin(&self, now: Instant) -> Dropping {
        let is_recent = now < self.last_drop_at + self.config.interval * MEMORY_INTERVALS;
        let count = if is_recent && self.last_count > 2 { self.last_count - 2 } else { 1 };
        Dropping {
            evaluated_at: now + self.config.interval,
            next_at: now + self.gap(count),
            count,
            first_count: count,
        }
    }

    fn end(&mut self, dropping: Dropping) {
        self.last_count = dropping.count;
        self.last_drop_at = dropping.next_at;
        self.dropping = None;
    }

    /// Returns `true` if a frame that has waited for `sojourn` must be dropped because it has waited longer
    /// than the target. Each such frame extends the time in which frames are dropped for this reason, because
    /// senders that did not react would fill the queue again at once.
    fn cuts(&mut self, now: Instant, sojourn: Duration) -> bool {
        let is_too_old = sojourn >= self.config.target;
        if is_too_old {
            self.cut_until = Some(now + self.config.interval * MEMORY_INTERVALS);
        }
        is_too_old
    }

    /// Returns the time until the next drop: an interval divided by the square root of `count`, the number of drops
    /// (RFC 8289, section 4.4).
    fn gap(&self, count: u32) -> Duration {
        self.config.interval.div_f64(f64::from(count.max(1)).sqrt())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const CONFIG: Overload =
        Overload { target: Duration::from_millis(5), interval: Duration::from_millis(100) };

    fn at_ms(ms: u64) -> Instant {
        Instant::from_micros(ms * 1_000)
    }

    fn fair() -> FairCoDel {
        FairCoDel::new(CONFIG, LinkKind::Ethernet)
    }

    fn ms(ms: u64) -> Duration {
        Duration::from_millis(ms)
    }

    /// Returns the work clock of a worker that runs all the time.
    fn always() -> WorkClock {
        WorkClock::new()
    }

    /// Calls `drops` once per millisecond from `from_ms` to `to_ms`. Returns the times at which it dropped.
    fn drops(codel: &mut CoDel, (from_ms, to_ms): (u64, u64), sojourn: Duration) -> Vec<u64> {
        (from_ms..to_ms).filter(|&now| codel.drops(at_ms(now), sojourn)).collect()
    }

    #[test]
    fn below_the_target_nothing_is_dropped() {
        let mut codel = CoDel::new(CONFIG);
        assert!(drops(&mut codel, (0, 10_000), Duration::from_micros(4_999)).is_empty());
    }

    #[test]
    fn a_burst_that_passes_within_an_interval_is_left_alone() {
        let mut codel = CoDel::new(CONFIG);
        for burst in 0..50 {
            let begins = burst * 200;
            assert!(drops(&mut codel, (begins, begins + 99), ms(80)).is_empty());
            assert!(drops(&mut codel, (begins + 99, begins + 101), ms(4)).is_empty());
        }
    }

    #[test]
    fn the_first_drop_comes_after_an_interval_and_the_next_after_another() {
        let mut codel = CoDel::new(CONFIG);
        assert_eq!(drops(&mut codel, (0, 200), ms(6)), [100], "and not again before 200");
        // The queue has become short; a later queue again gets a full interval.
        assert!(drops(&mut codel, (200, 202), ms(3)).is_empty());
        assert_eq!(drops(&mut codel, (202, 303), ms(6)), [302]);
    }

    #[test]
    fn drops_come_closer_by_the_square_root() {
        let mut codel = CoDel::new(CONFIG);
        for (count, gap_us) in [(1, 100_000), (2, 70_710), (4, 50_000), (100, 10_000)] {
            assert_eq!(codel.gap(count).as_micros(), gap_us, "{count}");
        }
        let mut dropping = codel.begin(at_ms(100));
        // The interval is long, so that only the pace matters.
        dropping.evaluated_at = at_ms(1_000_000);
        (codel.dropping, codel.standing_at) = (Some(dropping), Some(at_ms(100)));
        let seen = drops(&mut codel, (100, 500), ms(6));
        // 200, + 100/√2, + 100/√3, + 100/√4, ...
        assert_eq!(seen, [200, 271, 329, 379, 424, 464]);
    }

    #[test]
    fn a_phase_soon_after_another_goes_on_at_its_pace() {
        let mut codel = CoDel::new(CONFIG);
        let dropping = Dropping { count: 50, ..codel.begin(at_ms(100)) };
        codel.end(dropping);
        assert_eq!(codel.begin(at_ms(300)).count, 48);
        assert_eq!(codel.begin(at_ms(100 + 16 * 100 + 101)).count, 1, "long after, from the start");
    }

    #[test]
    fn a_queue_that_does_not_get_shorter_is_cut_to_the_target() {
        let mut codel = CoDel::new(CONFIG);
        let seen = drops(&mut codel, (0, 1_000), ms(20));
        assert_eq!(seen[..2], [100, 200], "two single drops");
        assert_eq!(seen[2..], (201..1_000).collect::<Vec<_>>(), "and then all that is too old");
        // Younger frames pass, and an old frame soon after is dropped at once.
        assert!(drops(&mut codel, (1_000, 1_500), ms(4)).is_empty());
        assert_eq!(drops(&mut codel, (1_500, 1_510), ms(6)).len(), 10);
        // After a long time without a queue, it starts from the beginning.
        assert!(drops(&mut codel, (1_510, 4_000), ms(1)).is_empty());
        assert_eq!(drops(&mut codel, (4_000, 4_101), ms(6)), [4_100]);
    }

    #[test]
    fn a_batch_loses_its_oldest_and_keeps_its_order() {
        let mut codel = fair();
        codel.codel.cut_until = Some(at_ms(1_000));
        let arrivals = [80_u8, 90, 94, 95, 96, 100];
        let mut batch: Vec<_> = arrivals.map(|ms| Frame::new([ms], at_ms(ms.into()))).into();
        assert_eq!(
            codel.drop_from(&mut batch, false, at_ms(100), &always()),
            4,
            "5 ms are the target"
        );
        assert_eq!(batch.iter().map(|frame| frame.bytes[0]).collect::<Vec<_>>(), [96, 100]);
        assert_eq!(codel.drop_from(&mut batch, false, at_ms(100), &always()), 0);
    }

    /// A worker that is late because other threads use its core has no queue as long as it receives all
    /// frames.
    #[test]
    fn late_frames_with_nothing_behind_them_are_not_dropped() {
        let mut codel = fair();
        for index in 0..100 {
            let mut batch = vec![Frame::new([0], at_ms(index * 100))];
            assert_eq!(codel.drop_from(&mut batch, true, at_ms(index * 100 + 50), &always()), 0);
        }
    }

    /// A worker has its core for 1 ms in every 20. Each time it receives one batch and leaves more behind, so
    /// that all frames are older than the target, for much longer than an interval.
    #[test]
    fn frames_that_are_late_because_the_worker_did_not_run_are_not_dropped() {
        let (mut codel, mut work) = (fair(), WorkClock::new());
        let mut without = fair();
        let mut dropped_without = 0;
        for turn in 0..500 {
            let now = at_ms(turn * 20 + 40);
            work.note(now, || ms(turn));
            let batch =
                || -> Vec<_> { (0..20).map(|ms| Frame::new([0], at_ms(turn * 20 + ms))).collect() };
            assert_eq!(codel.drop_from(&mut batch(), false, now, &work), 0, "turn {turn}");
            dropped_without += without.drop_from(&mut batch(), false, now, &always());
        }
        assert!(dropped_without > 1_000, "by the time alone: {dropped_without}");
    }

    /// A worker that has most of a core, and gets more frames than it can process on that, is overloaded.
    #[test]
    fn overload_on_most_of_a_core_is_dropped() {
        let (mut codel, mut work) = (fair(), WorkClock::new());
        let mut dropped = 0;
        for turn in 0..1_000 {
            let now = at_ms(turn * 4 + 40);
            work.note(now, || ms(turn * 3));
            let mut batch = vec![Frame::new([0], at_ms(turn * 4))];
            dropped += codel.drop_from(&mut batch, false, now, &work);
        }
        assert!(dropped > 800, "{dropped}");
    }

    /// The kernel stamps frames by the wall clock. If that is set forward, frames in the ring look an hour
    /// old; if it is set back, they look new. Neither is a standing queue.
    #[test]
    fn a_wall_clock_that_jumps_drops_nothing_where_no_queue_stands() {
        let mut codel = fair();
        let hour_ms = 3_600_000;
        for ms in 0..10_000 {
            let now = at_ms(2 * hour_ms + ms);
            // A full ring of batches after each jump; one jump per second, forward and back.
            let age_ms = match ms % 1_000 {
                0..32 => hour_ms,
                500..532 => 0,
                _ => 1,
            };
            let arrived_at = Instant::from_nanos(now.as_nanos() - age_ms * 1_000_000);
            let mut batch = vec![Frame::new([0], arrived_at)];
            assert_eq!(codel.drop_from(&mut batch, false, now, &always()), 0, "at {ms} ms");
        }
    }

    /// Simulates a queue of at most `slots` frames, received in batches of 256. A frame arrives every `in_us`
    /// microseconds, and takes `out_us` to process. Returns the waiting times of the delivered frames, and
    /// their number.
    fn simulated(in_us: u64, out_us: u64, slots: usize, seconds: u64) -> (Vec<Duration>, u64) {
        let mut codel = fair();
        let mut queue = std::collections::VecDeque::new();
        let (mut now, mut next, end) = (0, 0, seconds * 1_000_000);
        let (mut waits, mut delivered) = (Vec::new(), 0);
        while now < end {
            while next <= now {
                if queue.len() < slots {
                    queue.push_back(Frame::new([], Instant::from_micros(next)));
                }
                next += in_us;
            }
            let mut batch: Vec<_> = queue.drain(..queue.len().min(256)).collect();
            codel.drop_from(&mut batch, queue.is_empty(), Instant::from_micros(now), &always());
            waits.extend(batch.iter().map(|f| Instant::from_micros(now).since(f.arrived_at)));
            delivered += batch.len() as u64;
            now += (batch.len() as u64 * out_us).max(1);
        }
        (waits, delivered)
    }

    #[test]
    fn whoever_does_not_slow_down_gets_the_rate_but_no_queue() {
        // Twice as many frames as can be processed, with a ring for 32 ms of them.
        let (waits, delivered) = simulated(2, 4, 8_192, 5);
        assert!(delivered >= 5_000_000 / 4 * 99 / 100, "the worker is never idle: {delivered}");
        let late = waits.len() / 5;
        let longest = waits[late..].iter().max().unwrap();
        assert!(*longest <= CONFIG.target, "after the first second: {longest:?}");
    }

    #[test]
    fn without_overload_nothing_is_dropped() {
        let (waits, delivered) = simulated(4, 3, 8_192, 2);
        assert!(delivered >= 2_000_000 / 4 - 256, "{delivered}");
        assert!(waits.iter().max() < Some(&CONFIG.target));
    }
}
