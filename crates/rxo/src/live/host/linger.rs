//! Linger: keeps a host running while a peer may need the host's last ACK again.
//!
//! Connections in TIME-WAIT (RFC 9293, section 3.6.1) vanish when their host ends. A peer that has missed the
//! ACK of its FIN would then repeat the FIN in vain.

use std::time::{Duration, Instant};

use rxo_driver::wait;
use rxo_host::HostCounters;

use super::HostAsker;

/// The reasons for which a host must continue to run although its work is done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Lingering {
    /// The number of connections that no application uses any more and that are not yet closed.
    pub closing: usize,
    /// The remaining time during which a peer may repeat its FIN; zero if no peer may.
    pub last_acks_left: Duration,
}

impl Lingering {
    /// Returns the reasons to wait that the host's `counters` show; `None` if the host may end.
    fn of(counters: &HostCounters) -> Option<Self> {
        let HostCounters { orphans: closing, last_acks_left, .. } = *counters;
        let is_needed = closing > 0 || !last_acks_left.is_zero();
        is_needed.then_some(Self { closing, last_acks_left })
    }
}

/// Waits while connections without an application are closing, and while a peer may still repeat its FIN:
/// usually 400 ms after the last ACK of a FIN, and at most three seconds in total. Returns at once if this side
/// was never the first to close a connection. Returns early once `is_over` returns `true`; `is_over` is called
/// at least every 20 ms. Calls `still` once if waiting takes more than half a second.
pub fn linger(host: &HostAsker, is_over: impl Fn() -> bool, still: impl FnOnce(Lingering)) {
    let begun = Instant::now();
    let mut still = Some(still);
    // The turn that answers may have begun before the last connection was dropped; the counters of the next
    // turn include it.
    _ = host.counters();
    while begun.elapsed() < LONGEST && !is_over() {
        let Some(why) = host.counters().as_ref().and_then(Lingering::of) else { return };
        if let Some(still) = still.take_if(|_| begun.elapsed() >= QUIET) {
            still(why);
        }
        wait::pause(if why.closing > 0 { SHORT } else { why.last_acks_left.min(CHECK_INTERVAL) });
    }
}

/// Maximum time to wait: long enough for three or four retransmissions of a peer, and much shorter than the
/// minute of TIME-WAIT.
const LONGEST: Duration = Duration::from_secs(3);
const QUIET: Duration = Duration::from_millis(500);
const CHECK_INTERVAL: Duration = Duration::from_millis(20);
const SHORT: Duration = Duration::from_millis(2);
