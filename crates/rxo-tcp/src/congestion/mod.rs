//! Congestion control: how much may be in flight.
//!
//! The initial window and restarts are the same for all algorithms (RFC 5681, 6928) and are here, slow start
//! is in `slow_start.rs`; a [`Control`] is the part that differs. The window grows by the bytes that are
//! acknowledged, however many acknowledgements say so. BBR (`bbr.rs`) does all of this in its own way.

mod bbr;
mod cubic;
mod hystart;
mod initial;
mod reno;
mod slow_start;
mod tokens;

use alloc::boxed::Box;

use rxo_frame::{Duration, Instant};
use rxo_wire::SeqNumber;

use self::bbr::Bbr;
pub(crate) use self::bbr::Delivery;
use self::cubic::Cubic;
use self::initial::at_once;
use self::reno::Reno;
use self::slow_start::SlowStart;
use self::tokens::Tokens;
use crate::{Algorithm, Config, InitialWindow};

/// The part in which congestion controls differ.
trait Control {
    /// Takes an acknowledgement in congestion avoidance, while the window limits the sender.
    fn avoid(&mut self, window: &mut Window, acked: &Acked);
    /// The slow-start threshold after a loss with `in_flight` bytes in flight.
    fn threshold(&mut self, window: &Window, in_flight: u32) -> u32;
    /// Restarts congestion avoidance.
    fn restart(&mut self);
    /// Takes note that nothing was sent for `idle`.
    fn was_idle(&mut self, _idle: Duration) {}
}

/// The windows that all congestion controls share, in bytes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Window {
    pub(crate) cwnd: u32,
    pub(crate) ssthresh: u32,
    /// SMSS.
    pub(crate) mss: u32,
    pub(crate) initial: InitialWindow,
}

impl Window {
    /// The initial window, in bytes.
    fn first(&self) -> u32 {
        self.initial.bytes(self.mss)
    }

    fn grow(&mut self, bytes: u32) {
        self.cwnd = self.cwnd.saturating_add(bytes).min(MAX_WINDOW_BYTES);
    }
}

/// One acknowledgement of new data.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Acked {
    pub(crate) now: Instant,
    /// Bytes that it acknowledges for the first time.
    pub(crate) bytes: u32,
    /// The smoothed round-trip time.
    pub(crate) rtt: Duration,
    /// SEG.ACK.
    pub(crate) ack: SeqNumber,
    /// SND.NXT.
    pub(crate) nxt: SeqNumber,
    /// The round-trip time that it shows, in nanoseconds; `None` if it shows none.
    pub(crate) sample_ns: Option<u64>,
    /// Whether data is being sent again after a timeout.
    pub(crate) after_timeout: bool,
}

#[derive(Clone, Debug)]
enum Chosen {
    Cubic(Cubic),
    Reno(Reno),
}

/// What a loss changes, as it was before.
#[derive(Clone, Debug)]
pub(crate) struct Before {
    window: Window,
    chosen: Chosen,
    slow_start: SlowStart,
}

/// A connection's congestion control.
#[derive(Debug)]
pub(crate) struct Congestion {
    window: Window,
    chosen: Chosen,
    slow_start: SlowStart,
    tokens: Tokens,
    /// BBR, if it is chosen. Then the parts above only hold the window.
    bbr: Option<Box<Bbr>>,
    /// Whether the congestion window, not the application or the peer, limited the sender when it last
    /// sent. The window grows only then (RFC 9438, section 5.8).
    pub(crate) is_limiting: bool,
    /// When it last did.
    filled_at: Instant,
    /// What was in flight when nothing more could leave, in bytes.
    flight: u32,
}

impl Congestion {
    /// With the initial window.
    pub(crate) fn new(config: &Config, mss: u32) -> Self {
        let (algorithm, initial) = (config.congestion, config.initial_window);
        let chosen = match algorithm {
            Algorithm::Cubic => Chosen::Cubic(Cubic::default()),
            Algorithm::Reno | Algorithm::Bbr => Chosen::Reno(Reno::default()),
        };
        let cwnd = initial.bytes(mss);
        let bbr = (algorithm == Algorithm::Bbr).then(|| Box::new(Bbr::new(cwnd, mss)));
        // BBR sets both with each acknowledgement; a recovery before the first keeps to the initial window.
        let ssthresh = if bbr.is_some() { cwnd } else { MAX_WINDOW_BYTES };
        let window = Window { cwnd, ssthresh, mss, initial };
        let (slow_start, tokens) = (SlowStart::default(), Tokens::default());
        Self {
            window,
            chosen,
            slow_start,
            tokens,
            bbr,
            is_limiting: false,
            filled_at: Instant::ZERO,
            flight: 0,
        }
    }

    /// The congestion window, in bytes.
    pub(crate) fn cwnd(&self) -> u32 {
        self.window.cwnd
    }

    /// What may leave now beside `in_flight` bytes, in bytes.
    #[inline]
    pub(crate) fn allowed(&self, in_flight: u32) -> u32 {
        let usable = self.window.cwnd.saturating_sub(self.tokens.held_bytes());
        let allowed = usable.saturating_sub(in_flight);
        match &self.bbr {
            None => allowed,
            Some(bbr) => allowed.min(bbr.burst()),
        }
    }

    /// When [`Congestion::release`] lets more leave; `None` if the window is all that limits it.
    #[inline]
    pub(crate) fn release_at(&self) -> Option<Instant> {
        self.bbr.as_ref().and_then(|bbr| bbr.release_at()).or_else(|| self.tokens.due())
    }

    /// Lets leave what is due at `now`.
    pub(crate) fn release(&mut self, now: Instant) {
        self.tokens.release(now);
        if let Some(bbr) = &mut self.bbr {
            bbr.release(now);
        }
    }

    /// Takes note that `bytes` leave, while `in_flight` are in flight.
    #[inline]
    pub(crate) fn on_sent(&mut self, now: Instant, bytes: u32, in_flight: u32) {
        if let Some(bbr) = &mut self.bbr {
            bbr.on_sent(now, bytes, in_flight);
        }
    }

    /// Takes note that nothing more leaves now, with `in_flight` bytes in flight, because the window is full if
    /// `by_window`, and else because there is nothing to send.
    #[inline]
    pub(crate) fn on_held(&mut self, now: Instant, by_window: bool, in_flight: u32) {
        self.flight = in_flight;
        self.is_limiting = by_window && !self.tokens.follow_idle();
        if self.is_limiting {
            self.filled_at = now;
        } else if !self.tokens.follow_idle() {
            self.lower_unused(now);
        }
        if let Some(bbr) = self.bbr.as_mut().filter(|_| !by_window && in_flight < self.window.cwnd)
        {
            bbr.on_nothing_to_send(in_flight);
        }
    }

    /// Takes what an acknowledgement says of the path, whether or not something is being recovered.
    #[inline]
    pub(crate) fn on_delivered(&mut self, delivery: impl FnOnce() -> Delivery) {
        if let Some(bbr) = &mut self.bbr {
            bbr.on_delivered(&mut self.window, &delivery());
        }
    }

    /// What was in flight when nothing more could leave, in bytes. Acknowledgements that come together, or one that
    /// acknowledges most of a flight, leave little of it before anything can take its place.
    pub(crate) fn flight(&self) -> u32 {
        self.flight
    }

    /// Whether the window grows by so much each round trip that the send buffer must be ahead of it.
    pub(crate) fn is_starting(&self) -> bool {
        self.bbr.as_ref().map_or(self.window.cwnd < self.window.ssthresh, |bbr| bbr.is_starting())
    }

    /// The highest rate at which data arrived lately, in bytes a second; `None` if it is not known.
    pub(crate) fn delivery_rate(&self) -> Option<u64> {
        self.bbr.as_ref().map(|bbr| bbr.delivery_rate()).filter(|rate| *rate > 0)
    }

    /// The rate of pacing, in bytes a second; `None` if the windows alone decide.
    pub(crate) fn pacing_rate(&self) -> Option<u64> {
        self.bbr.as_ref().map(|bbr| bbr.pacing_rate()).filter(|rate| *rate > 0)
    }

    /// The slow-start threshold, in bytes.
    pub(crate) fn ssthresh(&self) -> u32 {
        self.window.ssthresh
    }

    /// Whether each acknowledgement of new data is to be told: the window may grow, or BBR measures.
    #[inline]
    pub(crate) fn asks_for_each(&self) -> bool {
        self.is_limiting || self.bbr.is_some()
    }

    /// Takes an acknowledgement of new data outside recovery.
    #[inline]
    pub(crate) fn on_ack(&mut self, acked: &Acked) {
        if self.is_limiting && self.bbr.is_none() {
            self.grow(acked);
        }
    }

    fn grow(&mut self, acked: &Acked) {
        if self.window.cwnd < self.window.ssthresh {
            let growth = self.slow_start.grow(&mut self.window, acked);
            self.tokens.hold(growth, &self.window, acked);
            return;
        }
        match &mut self.chosen {
            Chosen::Cubic(cubic) => cubic.avoid(&mut self.window, acked),
            Chosen::Reno(reno) => reno.avoid(&mut self.window, acked),
        }
    }

    /// Lowers the threshold after a loss or an ECN mark. The caller sets the window: recovery lowers it in
    /// its own way.
    pub(crate) fn on_loss(&mut self, in_flight: u32) {
        if self.bbr.is_some() {
            return;
        }
        self.window.ssthresh = match &mut self.chosen {
            Chosen::Cubic(cubic) => cubic.threshold(&self.window, in_flight),
            Chosen::Reno(reno) => reno.threshold(&self.window, in_flight),
        };
    }

    /// Sets the window to `bytes`, at least a segment.
    pub(crate) fn set_cwnd(&mut self, bytes: u32) {
        self.window.cwnd = bytes.clamp(self.window.mss, MAX_WINDOW_BYTES);
        self.tokens = Tokens::default();
    }

    /// The state before a loss.
    pub(crate) fn before_loss(&self) -> Before {
        let Self { window, chosen, slow_start, .. } = self;
        Before { window: *window, chosen: chosen.clone(), slow_start: slow_start.clone() }
    }

    /// Restores the state `before` a loss that turned out to be none.
    pub(crate) fn restore(&mut self, before: Before) {
        let cwnd = self.window.cwnd.max(before.window.cwnd);
        (self.window, self.chosen) = (before.window, before.chosen);
        self.slow_start = before.slow_start;
        self.set_cwnd(cwnd);
    }

    /// Restarts slow start from one segment, with the present window as the threshold.
    pub(crate) fn begin_again(&mut self) {
        self.window.ssthresh = self.window.ssthresh.max(self.window.cwnd);
        self.set_cwnd(self.window.mss);
    }

    /// Sets the size of a full segment to `mss` bytes. The window in bytes stays.
    pub(crate) fn set_mss(&mut self, mss: u32) {
        self.window.mss = mss;
        self.set_cwnd(self.window.cwnd);
        if let Some(bbr) = &mut self.bbr {
            bbr.set_mss(mss);
        }
    }

    /// Frees the memory. Nothing is in flight.
    pub(crate) fn free(&mut self) {
        if let Some(bbr) = &mut self.bbr {
            bbr.free();
        }
    }

    /// Takes note that nothing was sent for `idle`.
    pub(crate) fn was_idle(&mut self, idle: Duration) {
        match &mut self.chosen {
            Chosen::Cubic(cubic) => cubic.was_idle(idle),
            Chosen::Reno(reno) => reno.was_idle(idle),
        }
    }

    /// Prepares for the first flight, which the first window allows. What is more than RFC 6928 lets leave at once is paced
    /// over half a `round_trip`: as fast as slow start goes on, and as Linux paces it where it does (`tcp_pacing_ss_ratio`).
    pub(crate) fn begin(&mut self, now: Instant, round_trip: Option<Duration>) {
        let at_once = at_once(self.window.mss);
        if let Some(time) = long_enough(round_trip).filter(|_| self.window.cwnd > at_once) {
            self.tokens = Tokens::spread(now, &self.window, at_once, time / 2);
        }
    }

    /// Prepares for the first segment after idle time that was longer than a timeout. The window is the first one
    /// again if it `restarts` (RFC 5681, section 4.1). With a `round_trip` that is long enough for pacing it stays
    /// otherwise, and what is more than may leave at once is paced over a round trip (RFC 7661, section 4.4.2).
    pub(crate) fn resume(&mut self, now: Instant, round_trip: Option<Duration>, restarts: bool) {
        if self.bbr.is_some() {
            return;
        }
        self.lower_unused(now);
        let first = self.window.first();
        match long_enough(round_trip) {
            Some(time) if !restarts && self.window.cwnd > first => {
                let at_once = at_once(self.window.mss);
                self.tokens = Tokens::after_idle(now, &self.window, at_once, time);
            }
            _ => {
                self.set_cwnd(self.window.cwnd.min(first));
                self.begin(now, round_trip);
            }
        }
    }

    /// RFC 7661, section 4.4.3: a window that was not filled for five minutes is halved, each time anew.
    fn lower_unused(&mut self, now: Instant) {
        if now.nanos_since(self.filled_at) <= UNUSED_LASTS_NS {
            return;
        }
        let first = self.window.first();
        if self.filled_at != Instant::ZERO && self.window.cwnd > first && self.bbr.is_none() {
            let Window { cwnd, ssthresh, .. } = self.window;
            self.window.ssthresh = ssthresh.max(cwnd / 4 * 3);
            self.window.cwnd = (cwnd / 2).max(first);
        }
        self.filled_at = now;
    }

    /// Starts with one segment after a retransmitted SYN or SYN-ACK (RFC 5681, section 3.1).
    pub(crate) fn on_slow_handshake(&mut self) {
        self.window.cwnd = self.window.mss;
    }
}

/// The round trip, if timers can pace what leaves in it.
fn long_enough(round_trip: Option<Duration>) -> Option<Duration> {
    round_trip.filter(|time| *time >= SHORTEST_PACED)
}

/// RFC 7661, section 4.4.3: how long a window stays that is not used.
const UNUSED_LASTS_NS: u64 = 300_000_000_000;
/// Timers are exact to a millisecond, and slow start on a shorter path takes little time.
const SHORTEST_PACED: Duration = Duration::from_millis(4);

/// The largest window that a peer can offer (RFC 7323, section 2.3).
const MAX_WINDOW_BYTES: u32 = 1 << 30;

#[cfg(test)]
mod tests;
