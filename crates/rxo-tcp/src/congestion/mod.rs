//! Congestion control: how much may be in flight.
//!
//! Slow start, the initial window and restarts are the same for all (RFC 5681, 6928) and stand
//! here; what differs is a [`Control`]. It is told of every acknowledgement by itself, also when
//! many come in one aggregate, because their number is what makes the window grow
//! (Menon 2008, section 3.4).

mod cubic;
mod reno;

use rxo_frame::{Duration, Instant};

use self::cubic::Cubic;
use self::reno::Reno;
use crate::Algorithm;

/// The part in which congestion controls differ.
trait Control {
    /// An acknowledgement in congestion avoidance, while the window was in use.
    fn avoid(&mut self, window: &mut Window, acked: &Acked);
    /// The slow-start threshold after a loss with `in_flight` bytes in flight.
    fn threshold(&mut self, window: &Window, in_flight: u32) -> u32;
    /// Congestion avoidance begins anew.
    fn restart(&mut self);
    /// Nothing was sent for `idle`.
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
    /// Bytes it acknowledges that none before did.
    pub(crate) bytes: u32,
    /// The smoothed round-trip time.
    pub(crate) rtt: Duration,
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
    /// Whether the window, and not the application or the peer, was what held data back when
    /// something was last to be sent: only then does it grow (RFC 9438, section 5.8).
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
        Self { window, chosen, is_limiting: false }
    }

    /// The window.
    pub(crate) fn cwnd(&self) -> u32 {
        self.window.cwnd
    }

    /// The slow-start threshold.
    pub(crate) fn ssthresh(&self) -> u32 {
        self.window.ssthresh
    }

    /// New data is acknowledged, and nothing is being recovered.
    pub(crate) fn on_ack(&mut self, acked: &Acked) {
        if !self.is_limiting {
            return;
        }
        if self.window.cwnd < self.window.ssthresh {
            // RFC 5681, section 3.1, with the limit of RFC 3465, section 2.3.
            self.window.grow(acked.bytes.min(SLOW_START_SEGMENTS * self.window.mss));
            return;
        }
        match &mut self.chosen {
            Chosen::Cubic(cubic) => cubic.avoid(&mut self.window, acked),
            Chosen::Reno(reno) => reno.avoid(&mut self.window, acked),
        }
    }

    /// A segment is lost, or a router says that one nearly was: the threshold falls. The window
    /// itself is the caller's: recovery brings it down in its own way.
    pub(crate) fn on_loss(&mut self, in_flight: u32) {
        self.window.ssthresh = match &mut self.chosen {
            Chosen::Cubic(cubic) => cubic.threshold(&self.window, in_flight),
            Chosen::Reno(reno) => reno.threshold(&self.window, in_flight),
        };
    }

    /// The window is to be `bytes`, at least a segment.
    pub(crate) fn set_cwnd(&mut self, bytes: u32) {
        self.window.cwnd = bytes.clamp(self.window.mss, MAX_WINDOW_BYTES);
    }

    /// Everything is to be as it was: what looked like a loss was none.
    pub(crate) fn restore(&mut self, before: Self) {
        let cwnd = self.window.cwnd.max(before.window.cwnd);
        *self = Self { is_limiting: self.is_limiting, ..before };
        self.window.cwnd = cwnd;
    }

    /// Slow start from one segment up to the window that there is now.
    pub(crate) fn begin_again(&mut self) {
        self.window.ssthresh = self.window.ssthresh.max(self.window.cwnd);
        self.window.cwnd = self.window.mss;
    }

    /// Full segments have `mss` bytes from now on; the window stays, in bytes.
    pub(crate) fn set_mss(&mut self, mss: u32) {
        self.window.mss = mss;
        self.set_cwnd(self.window.cwnd);
    }

    /// The first segment after the connection was idle: a window that is older than a timeout says
    /// nothing of the network (RFC 5681, section 4.1).
    pub(crate) fn on_idle(&mut self, idle: Duration, rto: Duration) {
        match &mut self.chosen {
            Chosen::Cubic(cubic) => cubic.was_idle(idle),
            Chosen::Reno(reno) => reno.was_idle(idle),
        }
        if idle > rto {
            self.window.cwnd = self.window.cwnd.min(initial_window(self.window.mss));
        }
    }

    /// The handshake had to be repeated (RFC 5681, section 3.1): one segment to begin with.
    pub(crate) fn on_slow_handshake(&mut self) {
        self.window.cwnd = self.window.mss;
    }
}

/// RFC 6928, section 2: ten segments, at most 14600 bytes or two segments.
fn initial_window(mss: u32) -> u32 {
    (10 * mss).min((2 * mss).max(14_600))
}

/// RFC 3465, section 2.3: L, what one acknowledgement counts for at most.
const SLOW_START_SEGMENTS: u32 = 2;
/// No peer can offer more (RFC 7323, section 2.3).
const MAX_WINDOW_BYTES: u32 = 1 << 30;

#[cfg(test)]
mod tests;
