//! The modules that look at frames beside the one for pure ACKs.
//!
//! The paper's section 6 names them. They run in a fixed order: the filter first, so that the others do not count
//! what it drops. Each is bounded in memory, reads no clock, and parses nothing by itself: the registry reads the
//! headers once for all.

mod accounting;
mod filter;
mod prefix;
mod syn_flood;

use rxo_frame::{Frame, Instant, LinkKind};
use rxo_wire::{FlowKey, TcpFlags, Transport, parse, parse_ip};

use self::accounting::Accounts;
pub use self::accounting::{Account, AccountBy, AccountName};
pub use self::filter::{FilterRule, RuleError};
use self::syn_flood::Detector;
pub use self::syn_flood::HalfOpen;
use super::{FastCounters, FastModule, FastModules, FastPath};

/// The modules of one worker.
#[derive(Debug)]
pub(super) struct Modules {
    filter: Vec<FilterRule>,
    detector: Detector,
    accounts: Accounts,
}

/// What modules see of a packet.
#[derive(Clone, Copy, Debug)]
struct Seen {
    key: FlowKey,
    /// The flags, if it is TCP.
    flags: Option<TcpFlags>,
    /// The length of the frame.
    bytes: u64,
    is_ack: bool,
    now: Instant,
}

impl Modules {
    pub(super) fn new(config: &FastPath) -> Self {
        Self {
            filter: config.filter.clone(),
            detector: Detector::default(),
            accounts: Accounts::new(config.account_by),
        }
    }

    /// Shows `frame` to the modules that are `on`. Returns whether it is to be dropped. What is not IP is shown to
    /// none.
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
        let is_ack = flags == Some(TcpFlags::ACK) && parsed.payload_bytes() == 0;
        let bytes = frame.bytes.len() as u64;
        let seen = Seen { key: parsed.key, flags, bytes, is_ack, now };
        if on.has(FastModule::Filter) && filter::drops(&self.filter, &seen.key) {
            return true;
        }
        if on.has(FastModule::SynFlood) {
            self.detector.see(&seen);
        }
        if on.has(FastModule::Accounting) {
            self.accounts.see(&seen);
        }
        false
    }

    /// Adds what the modules have found.
    pub(super) fn report(&self, counters: &mut FastCounters) {
        counters.half_open = self.detector.report();
        (counters.accounts, counters.unaccounted) = self.accounts.report();
    }
}
