//! BBR congestion control (version 1, draft-cardwell-iccrg-bbr-congestion-control-00): sends at the rate at
//! which data arrives at the peer.
//!
//! A model of the path, the highest recent delivery rate and the lowest recent round-trip time, determines the
//! sending rate and the amount in flight. A loss alone has no effect, so random loss does not slow BBR down.
//! BBR also does not fill the queue of the bottleneck until the queue overflows. Separate from the other
//! controls because BBR does not grow a window: it measures every ACK, also during recovery, and paces all
//! segments. Recovery decides what to retransmit; the window stays BBR's, except that a timeout reduces it to
//! one segment.
//!
//! Nothing of version 3 (draft-ietf-ccwg-bbr) is implemented: no bounds from losses and marks
//! (`inflight_hi`, `inflight_lo`, `bw_lo`), no end of startup by loss, no phases DOWN, CRUISE, REFILL and UP,
//! no headroom, no shorter and milder PROBE-RTT. The allowance for aggregated ACKs and the detection of
//! policers in Linux's version 1 are missing as well. Beside Linux's BBR on one bottleneck it got 26 to 52 %
//! of an equal share.

mod pacer;
mod samples;

use rxo_frame::{Duration, Instant};

use self::pacer::Pacer;
use self::samples::{NANOS_PER_SECOND, Sample, Samples};
use super::{MAX_WINDOW_BYTES, Window};

/// The state of BBR: its model of the path, and its current mode.
#[derive(Debug)]
pub(super) struct Bbr {
    mode: Mode,
    samples: Samples,
    pacer: Pacer,
    bandwidth: Bandwidth,
    least_rtt: Option<LeastRtt>,
    /// The number of round trips so far, counted by delivered data.
    round: u64,
    /// The number of delivered bytes that ends the current round trip. The round trip ends with the ACK of a
    /// segment that was sent after this number of bytes had been delivered.
    round_end: u64,
    full: FullPipe,
    /// The congestion window that BBR has computed, in bytes. A window that recovery sets in the meantime is
    /// ignored.
    window: u32,
    /// The congestion window, in bytes, before the mode PROBE-RTT lowered the window to drain the queue.
    window_before: u32,
    /// `true` if sending resumes with nothing in flight, after the application has limited the sending rate.
    after_idle: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Mode {
    /// Doubles the sending rate in each round trip, until the path is full.
    Startup,
    /// Empties the queue that startup has built.
    Drain,
    /// Cycles through eight phases of one round trip each: the first raises the rate, the second drains the
    /// queue, the remaining six keep the rate.
    ProbeBandwidth { phase: usize, since: Instant },
    /// Keeps little data in flight, to measure the round-trip time without a queue. `until` is the end of the
    /// measurement; `None` until the queue is empty.
    ProbeRtt { until: Option<Instant>, round: u64 },
}

#[derive(Clone, Copy, Debug)]
struct LeastRtt {
    ns: u64,
    seen_at: Instant,
}

/// Detects that the delivery rate has stopped growing, which means that BBR has found the bottleneck rate.
#[derive(Debug, Default)]
struct FullPipe {
    rate: u64,
    rounds: u8,
    is_full: bool,
}

/// The highest delivery rate in each of the last [`ROUNDS`] round trips.
#[derive(Debug, Default)]
struct Bandwidth {
    rates: [u64; ROUNDS],
    last_round: u64,
}

/// The measurements that one ACK provides.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Delivery {
    pub(crate) now: Instant,
    /// Number of bytes that were delivered for the first time, in order or not.
    pub(crate) bytes: u32,
    /// The time at which the newest delivered byte was last sent; `None` if it is not known.
    pub(crate) sent_at: Option<Instant>,
    /// The round-trip time that the ACK shows, in nanoseconds; `None` if it shows none.
    pub(crate) rtt_ns: Option<u64>,
    /// The number of bytes in flight before and after the ACK.
    pub(crate) in_flight: (u32, u32),
    /// `true` if the ACK shows that data was lost.
    pub(crate) shows_loss: bool,
    /// `true` if the ACK arrives during fast recovery.
    pub(crate) is_recovering: bool,
}

impl Bbr {
    /// Creates the model with an initial window of `cwnd` bytes and full segments of `mss` bytes.
    pub(super) fn new(cwnd: u32, mss: u32) -> Self {
        Self {
            mode: Mode::Startup,
            samples: Samples::new(),
            pacer: Pacer::new(mss),
            bandwidth: Bandwidth::default(),
            least_rtt: None,
            round: 0,
            round_end: 0,
            full: FullPipe::default(),
            window: cwnd,
            window_before: 0,
            after_idle: false,
        }
    }

    /// Returns the number of bytes that may be sent now.
    pub(super) fn burst(&self) -> u32 {
        self.pacer.burst()
    }

    /// Returns the time at which more bytes may be sent; `None` if a segment may be sent now.
    pub(super) fn release_at(&self) -> Option<Instant> {
        self.pacer.due()
    }

    /// Permits more data to be sent if the pacing timer is due at `now`.
    pub(super) fn release(&mut self, now: Instant) {
        self.pacer.refill(now);
    }

    /// Sets the size of a full segment, in bytes.
    pub(super) fn set_mss(&mut self, mss: u32) {
        self.pacer.set_mss(mss);
    }

    /// Returns the estimate of the bottleneck rate, in bytes per second: the highest delivery rate of the last
    /// round trips. 0 if none is known.
    pub(super) fn delivery_rate(&self) -> u64 {
        self.bandwidth.highest()
    }

    /// Returns the pacing rate, in bytes per second; 0 before one is known.
    pub(super) fn pacing_rate(&self) -> u64 {
        self.pacer.rate()
    }

    /// Frees the memory of the model. Call it only while nothing is in flight.
    pub(super) fn free(&mut self) {
        self.samples.free();
    }

    /// Records that `bytes` bytes are sent while `in_flight` bytes are in flight.
    pub(super) fn on_sent(&mut self, now: Instant, bytes: u32, in_flight: u32) {
        self.after_idle |= in_flight == 0 && self.samples.is_limited();
        self.samples.sent(now, in_flight);
        self.pacer.sent(now, bytes);
    }

    /// Records that the window allows more but the application has no data. Later samples count as limited by
    /// the application.
    pub(super) fn on_nothing_to_send(&mut self, in_flight: u32) {
        self.samples.limit(in_flight);
    }

    /// Returns `true` while the rate still grows in each round trip.
    pub(super) fn is_starting(&self) -> bool {
        !self.full.is_full
    }

    /// Processes an ACK and sets the window and the pacing rate.
    pub(super) fn on_delivered(&mut self, window: &mut Window, delivery: &Delivery) {
        let sample =
            self.samples.arrived(delivery.now, delivery.bytes, delivery.sent_at, self.least_ns());
        let is_new_round = sample.is_some_and(|sample| self.follow(&sample));
        self.advance_phase(window, delivery);
        if is_new_round && sample.is_some_and(|sample| !sample.is_limited) {
            self.full.observe(self.bandwidth.highest());
        }
        self.leave_startup(window, delivery);
        self.follow_least_rtt(window, delivery);
        self.after_idle &= delivery.bytes == 0;
        self.set_rate(window, delivery.now);
        self.set_window(window, delivery);
    }

    /// Adds a rate sample to the model. Returns `true` if a round trip ends with it.
    fn follow(&mut self, sample: &Sample) -> bool {
        let ends = sample.delivered_before >= self.round_end;
        if ends {
            (self.round, self.round_end) = (self.round + 1, self.samples.delivered);
        }
        // A sample that the application has limited underestimates the path, unless it sets a new maximum.
        if !sample.is_limited || sample.rate >= self.bandwidth.highest() {
            self.bandwidth.add(self.round, sample.rate);
        }
        ends
    }

    /// Moves to the next phase of the cycle. A phase lasts one round trip, but the probing phase lasts until
    /// a queue or a loss is seen, and the draining phase ends as soon as the queue is gone.
    fn advance_phase(&mut self, window: &Window, delivery: &Delivery) {
        let Mode::ProbeBandwidth { phase, since } = self.mode else { return };
        let is_over = delivery.now.nanos_since(since) > self.least_ns();
        let (before, after) = delivery.in_flight;
        let is_done = match PHASES[phase] {
            gain @ 101.. => {
                is_over && (delivery.shows_loss || before >= self.in_flight_for(gain, window))
            }
            100 => is_over,
            _ => is_over || after <= self.in_flight_for(100, window),
        };
        if is_done {
            let phase = (phase + 1) % PHASES.len();
            self.mode = Mode::ProbeBandwidth { phase, since: delivery.now };
        }
    }

    fn leave_startup(&mut self, window: &Window, delivery: &Delivery) {
        if self.mode == Mode::Startup && self.full.is_full {
            self.mode = Mode::Drain;
        }
        if self.mode == Mode::Drain && delivery.in_flight.1 <= self.in_flight_for(100, window) {
            self.probe_bandwidth(delivery.now);
        }
    }

    /// Enters a phase of the bandwidth-probing cycle, but not the draining phase. The time selects the phase,
    /// so that connections that start together probe at different times.
    fn probe_bandwidth(&mut self, now: Instant) {
        let any = (now.as_nanos() / 1_000) as usize % (PHASES.len() - 1);
        let phase = if any == 0 { 0 } else { any + 1 };
        self.mode = Mode::ProbeBandwidth { phase, since: now };
    }

    /// Updates the minimum round-trip time. A minimum that was not seen again for ten seconds may belong to
    /// another path, so it is measured anew.
    fn follow_least_rtt(&mut self, window: &mut Window, delivery: &Delivery) {
        let is_old =
            self.least_rtt.is_some_and(|least| delivery.now.since(least.seen_at) > RTT_LASTS);
        if let Some(ns) = delivery.rtt_ns
            && (is_old || self.least_rtt.is_none_or(|least| ns <= least.ns))
        {
            self.least_rtt = Some(LeastRtt { ns, seen_at: delivery.now });
        }
        if is_old && !self.after_idle && !self.is_measuring_rtt() {
            self.window_before = self.window.max(window.cwnd);
            self.mode = Mode::ProbeRtt { until: None, round: self.round };
        }
        if let Mode::ProbeRtt { until, round } = self.mode {
            self.probe_rtt(window, delivery, until, round);
        }
    }

    fn probe_rtt(
        &mut self,
        window: &mut Window,
        delivery: &Delivery,
        until: Option<Instant>,
        round: u64,
    ) {
        // Data sent during PROBE-RTT does not show the delivery rate.
        self.samples.limit(delivery.in_flight.1);
        match until {
            None if delivery.in_flight.1 <= LEAST_SEGMENTS * window.mss => {
                self.round_end = self.samples.delivered;
                let until = Some(delivery.now + PROBE_RTT_LASTS);
                self.mode = Mode::ProbeRtt { until, round: self.round };
            }
            Some(until) if self.round > round && delivery.now > until => {
                if let Some(least) = &mut self.least_rtt {
                    least.seen_at = delivery.now;
                }
                self.window = self.window.max(self.window_before);
                window.cwnd = window.cwnd.max(self.window);
                self.mode = Mode::Startup;
                if self.full.is_full {
                    self.probe_bandwidth(delivery.now);
                }
            }
            _ => {}
        }
    }

    /// Returns the gain of the pacing rate and the gain of the window, in percent.
    fn gains(&self) -> (u32, u32) {
        match self.mode {
            Mode::Startup => (STARTUP_GAIN, STARTUP_GAIN),
            Mode::Drain => (DRAIN_GAIN, STARTUP_GAIN),
            // After idle time the queue is empty, so no gain is needed.
            Mode::ProbeBandwidth { .. } if self.after_idle => (100, WINDOW_GAIN),
            Mode::ProbeBandwidth { phase, .. } => (PHASES[phase], WINDOW_GAIN),
            Mode::ProbeRtt { .. } => (100, 100),
        }
    }

    /// Sets the pacing rate. Until the pipe is full, the rate starts at one initial window per round trip and
    /// only rises: a small message or a delayed ACK shows less than the path can carry (draft,
    /// section 4.2.1).
    fn set_rate(&mut self, window: &Window, now: Instant) {
        let (gain, _) = self.gains();
        let of = |rate: u64| rate.saturating_mul(gain.into()) / 100;
        let mut rate = of(self.bandwidth.highest());
        if !self.full.is_full {
            let bytes = u128::from(window.first()) * NANOS_PER_SECOND;
            let first = self.least_rtt.map(|least| bytes / u128::from(least.ns.max(LEAST_RTT_NS)));
            let first = u64::try_from(first.unwrap_or(0)).unwrap_or(u64::MAX);
            rate = rate.max(of(first)).max(self.pacer.rate());
        }
        if rate > 0 {
            self.pacer.set_rate(rate, now);
        }
    }

    /// Returns the minimum round-trip time in nanoseconds; 0 if none is known.
    fn least_ns(&self) -> u64 {
        self.least_rtt.map_or(0, |least| least.ns)
    }

    /// Returns the number of bytes in flight at `gain` percent of the bandwidth-delay product, plus three
    /// pacing quanta.
    fn in_flight_for(&self, gain: u32, window: &Window) -> u32 {
        let highest = self.bandwidth.highest();
        let Some(LeastRtt { ns, .. }) = self.least_rtt.filter(|_| highest > 0) else {
            return window.first().saturating_mul(gain) / 100;
        };
        let product = u128::from(highest) * u128::from(ns) / NANOS_PER_SECOND;
        let bytes = product * u128::from(gain) / 100;
        // Three quanta more, for delays by timers and by batched ACKs.
        let bytes = u32::try_from(bytes).unwrap_or(u32::MAX);
        bytes.saturating_add(self.pacer.quantum().saturating_mul(3)).min(MAX_WINDOW_BYTES)
    }

    fn set_window(&mut self, window: &mut Window, delivery: &Delivery) {
        let (least, initial) = (LEAST_SEGMENTS * window.mss, window.first());
        let target = self.in_flight_for(self.gains().1, window).max(least);
        let cwnd = if delivery.is_recovering { self.window } else { window.cwnd };
        let more = cwnd.saturating_add(delivery.bytes);
        let may_grow = cwnd < target || self.samples.delivered < initial.into();
        let grown = match self.full.is_full {
            true => more.min(target),
            false if may_grow => more,
            false => cwnd,
        };
        let most = if self.is_measuring_rtt() { least } else { MAX_WINDOW_BYTES };
        self.window = grown.clamp(least, most);
        (window.cwnd, window.ssthresh) = (self.window, self.window);
    }

    fn is_measuring_rtt(&self) -> bool {
        matches!(self.mode, Mode::ProbeRtt { .. })
    }
}

impl FullPipe {
    /// Records the highest rate of a round trip. The path counts as full when the rate has not grown by a
    /// quarter in three round trips.
    fn observe(&mut self, rate: u64) {
        if self.is_full {
            return;
        }
        if rate >= self.rate.saturating_add(self.rate / 4) {
            (self.rate, self.rounds) = (rate, 0);
            return;
        }
        self.rounds += 1;
        self.is_full = self.rounds >= 3;
    }
}

impl Bandwidth {
    fn add(&mut self, round: u64, rate: u64) {
        let passed = (round - self.last_round).min(ROUNDS as u64);
        for round in round + 1 - passed..=round {
            self.rates[(round % ROUNDS as u64) as usize] = 0;
        }
        self.last_round = round;
        let now = &mut self.rates[(round % ROUNDS as u64) as usize];
        *now = rate.max(*now);
    }

    /// Returns the highest rate of the last round trips, in bytes per second; 0 if none is known.
    fn highest(&self) -> u64 {
        self.rates.iter().copied().max().unwrap_or(0)
    }
}

/// The gain of startup, 2 / ln 2 in percent: the smallest gain with which the rate can double in each round trip.
const STARTUP_GAIN: u32 = 289;
const DRAIN_GAIN: u32 = 35;
const WINDOW_GAIN: u32 = 200;
/// The gain of the pacing rate in percent, for each phase of the bandwidth-probing cycle.
const PHASES: [u32; 8] = [125, 75, 100, 100, 100, 100, 100, 100];
/// The number of round trips whose highest rate is remembered.
const ROUNDS: usize = 10;
/// The smallest window in segments, enough to keep ACKs coming.
const LEAST_SEGMENTS: u32 = 4;
const RTT_LASTS: Duration = Duration::from_secs(10);
const PROBE_RTT_LASTS: Duration = Duration::from_millis(200);
const LEAST_RTT_NS: u64 = 1_000_000;

#[cfg(test)]
mod tests;
