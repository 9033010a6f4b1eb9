//! The modules of the fast path besides the module for pure ACKs (Chan and Cheriton 2013, section 6).
//!
//! The filter runs first, so that the other modules do not count dropped frames. The memory of each module is
//! bounded. No module reads a clock, or parses headers: the headers are parsed once for all modules.

pub(super) mod accounting;
pub(super) mod filter;
pub(super) mod syn_flood;

use rxo_frame::{Frame, Instant};
use rxo_wire::{TcpFlags, Transport, parse, parse_ip};

use super::{Fast, FastModules};

impl Fast {
    /// Passes an IP packet in `frame` to the modules that process all frames. Returns `true` if the filter
    /// drops the frame.
    #[inline(never)]
    pub(super) fn is_filtered(&mut self, now: Instant, frame: &Frame<&[u8]>) -> bool {
        let Ok(parsed) = self.expect.link.read(frame.bytes, parse, parse_ip) else { return false };
        if self.on.has(FastModules::FILTER) && filter::drops(&self.config.filter, &parsed.key) {
            self.counters.filtered += 1;
            return true;
        }
        if let Transport::Tcp(tcp) = parsed.transport
            && self.on.has(FastModules::SYN_FLOOD)
            && let Some(half_open) = self.detector.note(parsed.key, tcp.flags, now)
        {
            self.counters.syns += 1;
            self.counters.syn_alarms += u64::from(half_open == syn_flood::ALARM);
        }
        if self.on.has(FastModules::ACCOUNTING) {
            let is_ack = matches!(parsed.transport, Transport::Tcp(t) if t.flags == TcpFlags::ACK);
            let is_ack = is_ack && parsed.payload_bytes() == 0;
            self.accounts.count(parsed.key, self.config.account_by_flow, frame.bytes.len(), is_ack);
        }
        false
    }
}
