//! Congestion control: the number of bytes that may be in flight.
//!
//! The initial window is common to all algorithms (RFC 6928). Reno and CUBIC also share the restart after idle
//! time (RFC 5681) and slow start (`slow_start.rs`); their congestion avoidance is in `reno.rs` and `cubic.rs`.
//! Their window grows by acknowledged bytes, however many ACKs report them. BBR (`bbr.rs`) replaces these rules
//! by a model of the path.

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

/// The windows that all congestion controls share, in bytes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Window {
    pub(crate) cwnd: u32,
    pub(crate) ssthresh: u32,
    /// SMSS: the size of a full segment, in bytes.
    pub(crate) mss: u32,
    pub(crate) initial: InitialWindow,
}

impl Window {
    /// Returns the initial window, in bytes.
    fn first(&self) -> u32 {
        self.initial.bytes(self.mss)
    }

    fn grow(&mut self, bytes: u32) {
        self.cwnd = self.cwnd.saturating_add(bytes).min(MAX_WINDOW_BYTES);
    }
}

/// The values of one ACK of new data by which congestion control grows the window.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Acked {
    pub(crate) now: Instant,
    /// The number of bytes that are acknowledged for the first time.
    pub(crate) bytes: u32,
    /// The smoothed round-trip time of the connection.
    pub(crate) rtt: Duration,
    /// SEG.ACK: the ACK number.
    pub(crate) ack: SeqNumber,
    /// SND.NXT: the next sequence number to be sent for the first time.
    pub(crate) nxt: SeqNumber,
    /// The round-trip time that the ACK shows, in nanoseconds; `None` if it shows none.
    pub(crate) sample_ns: Option<u64>,
    /// `true` while data is retransmitted after a timeout.
    pub(crate) after_timeout: bool,
}

#[derive(Clone, Debug)]
enum Chosen {
    Cubic(Cubic),
    Reno(Reno),
    /// No algorithm: the owner of the connection limits new data by its own congestion window. The window of
    /// the connection limits only retransmissions after a timeout; other retransmissions follow packet
    /// conservation.
    Owners,
}

/// The state that a loss changes, saved before the loss.
#[derive(Clone, Debug)]
pub(crate) struct Before {
    window: Window,
    chosen: Chosen,
    slow_start: SlowStart,
}

/// The congestion control of one connection.
#[derive(Debug)]
pub(crate) struct Congestion {
    window: Window,
    chosen: Chosen,
    slow_start: SlowStart,
    tokens: Tokens,
    /// The state of BBR; `None` unless BBR is chosen. With BBR, the other fields only hold the window.
    bbr: Option<Box<Bbr>>,
    /// `true` if the congestion window, not the application or the peer, limited the sender when it last
    /// sent. The window grows only then (RFC 9438, section 5.8).
    pub(crate) is_limiting: bool,
    /// The last time at which the congestion window limited the sender.
    filled_at: Instant,
    /// The number of bytes in flight when sending last stopped.
    flight: u32,
}

impl Congestion {
    /// Creates the congestion control that `config` names, with the initial window for segments of `mss`
    /// bytes.
    pub(crate) fn new(config: &Config, mss: u32) -> Self {
        let (algorithm, initial) = (config.congestion, config.initial_window);
        let chosen = match algorithm {
            Algorithm::Cubic => Chosen::Cubic(Cubic::default()),
            Algorithm::Reno | Algorithm::Bbr => Chosen::Reno(Reno::default()),
        };
        let cwnd = initial.bytes(mss);
        let bbr = (algorithm == Algorithm::Bbr).then(|| Box::new(Bbr::new(cwnd, mss)));
        // BBR sets both fields at each ACK; a recovery before the first one keeps the initial
        // window.
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

    /// Returns SMSS: the size of a full segment, in bytes.
    pub(crate) fn mss(&self) -> u32 {
        self.window.mss
    }

    /// Returns the congestion window, in bytes.
    pub(crate) fn cwnd(&self) -> u32 {
        self.window.cwnd
    }

    /// Turns congestion control for new data off: the owner of the connection limits new data.
    pub(crate) fn leave_to_owner(&mut self) {
        (self.chosen, self.bbr) = (Chosen::Owners, None);
        self.window.ssthresh = MAX_WINDOW_BYTES;
        self.set_cwnd(MAX_WINDOW_BYTES);
    }

    /// Returns `true` if the owner of the connection controls new data.
    #[inline]
    pub(crate) fn is_owners(&self) -> bool {
        matches!(self.chosen, Chosen::Owners)
    }

    /// Returns the number of bytes that may be sent now, in addition to `in_flight` bytes.
    #[inline]
    pub(crate) fn allowed(&self, in_flight: u32) -> u32 {
        let usable = self.window.cwnd.saturating_sub(self.tokens.held_bytes());
        let allowed = usable.saturating_sub(in_flight);
        match &self.bbr {
            None => allowed,
            Some(bbr) => allowed.min(bbr.burst()),
        }
    }

    /// Returns the time at which [`Congestion::release`] permits more to be sent; `None` if only the window
    /// limits the sender.
    #[inline]
    pub(crate) fn release_at(&self) -> Option<Instant> {
        self.bbr.as_ref().and_then(|bbr| bbr.release_at()).or_else(|| self.tokens.due())
    }

    /// Releases the paced data that is due at `now`.
    pub(crate) fn release(&mut self, now: Instant) {
        self.tokens.release(now);
        if let Some(bbr) = &mut self.bbr {
            bbr.release(now);
        }
    }

    /// Records that `bytes` bytes are sent while `in_flight` bytes are in flight.
    #[inline]
    pub(crate) fn on_sent(&mut self, now: Instant, bytes: u32, in_flight: u32) {
        if let Some(bbr) = &mut self.bbr {
            bbr.on_sent(now, bytes, in_flight);
        }
    }

    /// Records that sending stops now, with `in_flight` bytes in flight. `by_window` is `true` if the window is
    /// full, and `false` if there is nothing to send.
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

    /// Passes the measurements of an ACK to BBR, also during recovery. Does nothing for other algorithms.
    #[inline]
    pub(crate) fn on_delivered(&mut self, delivery: impl FnOnce() -> Delivery) {
        if let Some(bbr) = &mut self.bbr {
            bbr.on_delivered(&mut self.window, &delivery());
        }
    }

    /// Returns the number of bytes in flight when sending last stopped. The current number would be too low:
    /// ACKs that arrive together leave little in flight before new data is sent.
    pub(crate) fn flight(&self) -> u32 {
        self.flight
    }

    /// Returns `true` while slow start (or the startup of BBR) doubles the window in each round trip: then
    /// the send buffer must be larger than the window.
    pub(crate) fn is_starting(&self) -> bool {
        self.bbr.as_ref().map_or(self.window.cwnd < self.window.ssthresh, |bbr| bbr.is_starting())
    }

    /// Returns the highest recent delivery rate, in bytes per second; `None` if it is not known.
    pub(crate) fn delivery_rate(&self) -> Option<u64> {
        self.bbr.as_ref().map(|bbr| bbr.delivery_rate()).filter(|rate| *rate > 0)
    }

    /// Returns the pacing rate, in bytes per second; `None` if only the windows limit the sender.
    pub(crate) fn pacing_rate(&self) -> Option<u64> {
        self.bbr.as_ref().map(|bbr| bbr.pacing_rate()).filter(|rate| *rate > 0)
    }

    /// Returns the slow-start threshold, in bytes.
    pub(crate) fn ssthresh(&self) -> u32 {
        self.window.ssthresh
    }

    /// Returns `true` if each ACK of new data must be passed to congestion control, because the
    /// window may grow or BBR takes a measurement.
    #[inline]
    pub(crate) fn asks_for_each(&self) -> bool {
        self.is_limiting || self.bbr.is_some()
    }

    /// Processes an ACK of new data outside recovery.
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
            Chosen::Owners => {}
        }
    }

    /// Lowers the threshold after a loss or an ECN mark. The caller sets the window, because recovery lowers
    /// it gradually.
    pub(crate) fn on_loss(&mut self, in_flight: u32) {
        if self.bbr.is_some() {
            return;
        }
        self.window.ssthresh = match &mut self.chosen {
            Chosen::Cubic(cubic) => cubic.threshold(&self.window, in_flight),
            Chosen::Reno(reno) => reno.threshold(&self.window, in_flight),
            Chosen::Owners => MAX_WINDOW_BYTES,
        };
    }

    /// Sets the window to `bytes`, but at least to one segment, and releases all paced data.
    pub(crate) fn set_cwnd(&mut self, bytes: u32) {
        self.window.cwnd = bytes.clamp(self.window.mss, MAX_WINDOW_BYTES);
        self.tokens = Tokens::default();
    }

    /// Returns the state to restore if a loss proves spurious.
    pub(crate) fn before_loss(&self) -> Before {
        let Self { window, chosen, slow_start, .. } = self;
        Before { window: *window, chosen: chosen.clone(), slow_start: slow_start.clone() }
    }

    /// Restores the state `before`, saved before a loss that proved spurious. The congestion window does not shrink.
    pub(crate) fn restore(&mut self, before: Before) {
        let cwnd = self.window.cwnd.max(before.window.cwnd);
        (self.window, self.chosen) = (before.window, before.chosen);
        self.slow_start = before.slow_start;
        self.set_cwnd(cwnd);
    }

    /// Restarts slow start from one segment; the threshold becomes at least the current window.
    pub(crate) fn begin_again(&mut self) {
        self.window.ssthresh = self.window.ssthresh.max(self.window.cwnd);
        self.set_cwnd(self.window.mss);
    }

    /// Sets the size of a full segment to `mss` bytes. The window in bytes does not change.
    pub(crate) fn set_mss(&mut self, mss: u32) {
        self.window.mss = mss;
        self.set_cwnd(self.window.cwnd);
        if let Some(bbr) = &mut self.bbr {
            bbr.set_mss(mss);
        }
    }

    /// Frees the memory of BBR, if it is used. Call it only while nothing is in flight.
    pub(crate) fn free(&mut self) {
        if let Some(bbr) = &mut self.bbr {
            bbr.free();
        }
    }

    /// Records that nothing was sent for the duration `idle`.
    pub(crate) fn was_idle(&mut self, idle: Duration) {
        if let Chosen::Cubic(cubic) = &mut self.chosen {
            cubic.was_idle(idle);
        }
    }

    /// Prepares the first flight of segments, which the initial window allows. The part above the limit of RFC
    /// 6928 is paced over half a `round_trip`. Slow start continues at this rate, and Linux paces at the same
    /// rate (`tcp_pacing_ss_ratio`).
    pub(crate) fn begin(&mut self, now: Instant, round_trip: Option<Duration>) {
        let at_once = at_once(self.window.mss);
        if let Some(time) = long_enough(round_trip).filter(|_| self.window.cwnd > at_once) {
            self.tokens = Tokens::spread(now, &self.window, at_once, time / 2);
        }
    }

    /// Prepares the first segment after an idle time longer than a timeout. If `restarts`, or if `round_trip`
    /// is too short for pacing, the window falls back to the initial one (RFC 5681, section 4.1). Otherwise
    /// the window stays, and the part above the burst limit is paced over a round trip (RFC 7661, section
    /// 4.4.2).
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

    /// Halves the window if it has not limited the sender in the last five minutes (RFC 7661, section 4.4.3).
    /// Halves it again at the earliest five minutes later.
    fn lower_unused(&mut self, now: Instant) {
        if now.nanos_since(self.filled_at) <= UNUSED_LASTS_NS || self.is_owners() {
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

    /// Starts with a window of one segment after a retransmitted SYN or SYN-ACK (RFC 5681, section 3.1).
    pub(crate) fn on_slow_handshake(&mut self) {
        self.window.cwnd = self.window.mss;
    }
}

/// Returns the round trip if timers can pace within it, otherwise `None`.
fn long_enough(round_trip: Option<Duration>) -> Option<Duration> {
    round_trip.filter(|time| *time >= SHORTEST_PACED)
}

/// The time for which an unused window is kept, in nanoseconds (RFC 7661, section 4.4.3).
const UNUSED_LASTS_NS: u64 = 300_000_000_000;
/// The shortest round trip over which segments are paced: timers are exact to a millisecond, and slow start on
/// a shorter path takes little time.
const SHORTEST_PACED: Duration = Duration::from_millis(4);

/// The largest window that a peer can offer, in bytes (RFC 7323, section 2.3).
const MAX_WINDOW_BYTES: u32 = 1 << 30;

#[cfg(test)]
mod tests;
