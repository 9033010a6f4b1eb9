//! The modules that process frames besides the one for pure ACKs (Chan and Cheriton 2013, section 6).
//!
//! The filter runs first, so that the other modules do not count dropped frames. Each module is bounded in
//! memory, reads no clock, and parses nothing: the headers are parsed once for all of them.

mod accounting;
mod filter;
mod syn_flood;

use rxo_frame::{Frame, Instant, LinkKind};
use rxo_wire::{TcpFlags, Transport, parse, parse_ip};

pub(super) use self::accounting::Accounts;
pub use self::accounting::{Account, AccountBy, AccountName};
pub use self::filter::{FilterRule, RuleError};
pub(super) use self::syn_flood::Detector;
pub use self::syn_flood::HalfOpen;
use super::{Fast, FastModules};

impl Fast {
    /// Passes `frame` to the modules that see all frames, if it is IP. Returns `true` if the filter drops it.
    #[inline(never)]
    pub(super) fn is_filtered(&mut self, now: Instant, frame: &Frame<&[u8]>) -> bool {
        let parsed = match self.expect.link {
            LinkKind::Ethernet => parse(frame.bytes),
            LinkKind::RawIp => parse_ip(frame.bytes),
        };
        let Ok(parsed) = parsed else { return false };
        if self.on.has(FastModules::FILTER) && filter::drops(&self.config.filter, &parsed.key) {
            self.counters.filtered += 1;
            return true;
        }
        let flags = match parsed.transport {
            Transport::Tcp(tcp) => Some(tcp.flags),
            _ => None,
        };
        if let Some(flags) = flags.filter(|_| self.on.has(FastModules::SYN_FLOOD)) {
            self.detector.count(parsed.key, flags, now);
        }
        if self.on.has(FastModules::ACCOUNTING) {
            let is_ack = flags == Some(TcpFlags::ACK) && parsed.payload_bytes() == 0;
            let bytes = frame.bytes.len() as u64;
            self.accounts.count(self.config.account_by, parsed.key, bytes, is_ack);
        }
        false
    }
}
