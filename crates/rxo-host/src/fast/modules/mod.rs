//! The modules that look at frames beside the one for pure ACKs (Chan and Cheriton 2013, section 6).
//!
//! The filter comes first, so that the others do not count what it drops. Each is bounded in memory, reads no clock, and
//! parses nothing: the headers are read once for all.

mod accounting;
mod filter;
mod syn_flood;

use rxo_frame::{Frame, Instant, LinkKind};
use rxo_wire::{TcpFlags, Transport, parse, parse_ip};

pub(super) use self::accounting::Accounts;
pub use self::accounting::{Account, AccountBy, AccountName};
pub use self::filter::{FilterRule, RuleError};
use self::syn_flood::Detector;
pub use self::syn_flood::HalfOpen;
use super::FastModules;

/// The modules of one worker.
#[derive(Debug, Default)]
pub(super) struct Modules {
    pub(super) filter: Vec<FilterRule>,
    pub(super) accounts: Accounts,
    pub(super) detector: Detector,
}

impl Modules {
    /// Shows `frame` to the modules that are `on`, if it is IP. Returns `true` if it is to be dropped.
    #[cold]
    pub(super) fn see(
        &mut self,
        on: FastModules,
        link: LinkKind,
        now: Instant,
        frame: &Frame<&[u8]>,
    ) -> bool {
        let parsed = match link {
            LinkKind::Ethernet => parse(frame.bytes),
            LinkKind::RawIp => parse_ip(frame.bytes),
        };
        let Ok(parsed) = parsed else { return false };
        let flags = match parsed.transport {
            Transport::Tcp(tcp) => Some(tcp.flags),
            _ => None,
        };
        if on.has(FastModules::FILTER) && filter::drops(&self.filter, &parsed.key) {
            return true;
        }
        if on.has(FastModules::SYN_FLOOD)
            && let Some(flags) = flags
        {
            self.detector.count(parsed.key, flags, now);
        }
        if on.has(FastModules::ACCOUNTING) {
            let is_ack = flags == Some(TcpFlags::ACK) && parsed.payload_bytes() == 0;
            self.accounts.count(parsed.key, frame.bytes.len() as u64, is_ack);
        }
        false
    }
}
