//! Congestion control: how much may be in flight.
//!
//! The initial window and restarts are the same for all algorithms (RFC 5681, 6928) and are here, slow start
//! is in `slow_start.rs`; a [`Control`] is the part that differs. The window grows by the bytes that are
//! acknowledged, however many acknowledgements say so.

mod cubic;
mod hystart;
mod reno;
mod slow_start;
mod tokens;

use rxo_frame::{Duration, Instant};
use rxo_wire::SeqNumber;

use self::cubic::Cubic;
use self::reno::Reno;
use self::slow_start::SlowStart;
use self::tokens::Tokens;
use crate::Algorithm;

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
}

impl Window {
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

/// A connection's congestion control.
#[derive(Clone, Debug)]
pub(crate) struct Congestion {
    window: Window,
    chosen: Chosen,
    slow_start: SlowStart,
    tokens: Tokens,
    /// Whether the congestion window, not the application or the peer, limited the sender when it last
    /// sent. The window grows only then (RFC 9438, section 5.8).
    pub(crate) is_limiting: bool,
}

impl Congestion {
    /// With the initial window of RFC 6928, section 2.
    pub(crate) fn new(algorithm: Algorithm, mss: u32) -> Self {
        let chosen = match algorithm {
            Algorithm::Cubic => Chosen::Cubic(Cubic::default()),
            Algorithm::Reno => Chosen::Reno(Reno::default()),
        };
        let window = Window { cwnd: initial_window(mss), ssthresh: MAX_WINDOW_BYTES, mss };
        let (slow_start, tokens) = (SlowStart::default(), Tokens::default());
        Self { window, chosen, slow_start, tokens, is_limiting: false }
    }

    /// The congestion window, in bytes.
    pub(crate) fn cwnd(&self) -> u32 {
        self.window.cwnd
    }

    /// The part of the congestion window that may be in flight now, in bytes.
    #[inline]
    pub(crate) fn usable(&self) -> u32 {
        self.window.cwnd.saturating_sub(self.tokens.held_bytes())
    }

    /// When [`Congestion::release`] makes more of the window usable; `None` if all of it is.
    #[inline]
    pub(crate) fn release_at(&self) -> Option<Instant> {
        self.tokens.due()
    }

    /// Makes that part of the window usable that is due at `now`.
    pub(crate) fn release(&mut self, now: Instant) {
        self.tokens.release(now);
    }

    /// The slow-start threshold, in bytes.
    pub(crate) fn ssthresh(&self) -> u32 {
        self.window.ssthresh
    }

    /// Takes an acknowledgement of new data outside recovery.
    #[inline]
    pub(crate) fn on_ack(&mut self, acked: &Acked) {
        if self.is_limiting {
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

    /// Restores the state `before` a loss that turned out to be none.
    pub(crate) fn restore(&mut self, before: Self) {
        let cwnd = self.window.cwnd.max(before.window.cwnd);
        *self = Self { is_limiting: self.is_limiting, ..before };
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
    }

    /// Restarts the window before the first segment after `idle` time without sending. A window older than
    /// a timeout says nothing about the network (RFC 5681, section 4.1).
    pub(crate) fn on_idle(&mut self, idle: Duration, rto: Duration) {
        match &mut self.chosen {
            Chosen::Cubic(cubic) => cubic.was_idle(idle),
            Chosen::Reno(reno) => reno.was_idle(idle),
        }
        if idle > rto {
            self.set_cwnd(self.window.cwnd.min(initial_window(self.window.mss)));
        }
    }

    /// Starts with one segment after a retransmitted SYN or SYN-ACK (RFC 5681, section 3.1).
    pub(crate) fn on_slow_handshake(&mut self) {
        self.window.cwnd = self.window.mss;
    }
}

/// RFC 6928, section 2: ten segments, at most 14600 bytes or two segments.
fn initial_window(mss: u32) -> u32 {
    (10 * mss).min((2 * mss).max(14_600))
}

/// The largest window that a peer can offer (RFC 7323, section 2.3).
const MAX_WINDOW_BYTES: u32 = 1 << 30;

#[cfg(test)]
mod tests;
