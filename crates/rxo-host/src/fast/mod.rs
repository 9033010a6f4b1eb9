//! The fast path: frames are looked at where they lie, before the engine, and pure ACKs are consumed there
//! (TCP-PARO: Chan and Cheriton 2013).
//!
//! A consumed ACK takes no buffer, no place in the engine, and no delivery: its device gets its memory back at
//! once, and the connection gets five values of it. Everything else falls back to the ordinary way, with a counted
//! reason ([`FallbackReason`]).
//!
//! * `parse.rs`: is the frame a pure ACK for this host.
//! * `order.rs`: the flows of the batch, so that no ACK overtakes a segment of its flow.
//! * `expected.rs`: the next ACK of the connection whose ACK was gathered last, by one compare.
//! * `gather.rs`: the ACKs of a batch by connection; each gets one call for all.
//! * `find.rs`: which connection, and whether it can take ACKs; what the worker does for a batch.
//! * `verdict.rs`, `counters.rs`: the reasons and the totals.
//! * `switches.rs`, `modules/`: what else may look, and which of them is on.
//!
//! Contract: what a connection is given is what it would have been given otherwise, in the same order; the tests
//! `tests/host/fast` hold both ways against each other. While all modules are off, nothing here runs.

mod counters;
mod expected;
mod find;
mod gather;
mod modules;
mod order;
mod parse;
mod switches;
mod verdict;

use rxo_frame::LinkKind;
use rxo_wire::checksum::Summer;

pub use self::counters::FastCounters;
use self::expected::Expected;
pub(crate) use self::find::{AckState, Lookup, Seen};
use self::gather::Gathered;
pub(crate) use self::gather::Records;
pub use self::modules::{Account, AccountBy, AccountName, FilterRule, HalfOpen, RuleError};
use self::modules::{Accounts, Detector};
use self::order::Flows;
use self::parse::Expect;
pub(crate) use self::switches::Switch;
pub use self::switches::{FastModules, FastSwitches, UnknownModule};
pub use self::verdict::FallbackReason;

/// The settings of the fast path. The default is off.
#[derive(Clone, Debug, Default)]
pub struct FastPath {
    /// The modules that are on at first. [`FastSwitches`] change that while the host runs.
    pub modules: FastModules,
    /// The rules of the filter; the first that matches decides, and what matches none passes.
    pub filter: Vec<FilterRule>,
    /// What the accounts are of.
    pub account_by: AccountBy,
    /// Whether each ACK is looked up and given to its connection by itself, as in the paper. By default the ACKs of
    /// a connection in a batch are looked up once and given in one call, which costs less.
    pub one_by_one: bool,
}

/// The worker's part.
#[derive(Debug)]
pub(crate) struct Fast {
    switch: Switch,
    /// The modules that are on for this batch.
    on: FastModules,
    expect: Expect,
    config: FastPath,
    flows: Flows,
    expected: Expected,
    pub(crate) gathered: Gathered,
    accounts: Accounts,
    detector: Detector,
    pub(crate) counters: FastCounters,
}

impl Fast {
    pub(crate) fn new(config: &FastPath, link: LinkKind, mac: [u8; 6], switch: Switch) -> Self {
        Self {
            switch,
            on: FastModules::OFF,
            expect: Expect { link, mac, summer: Summer::detect() },
            config: config.clone(),
            flows: Flows::new(),
            expected: Expected::default(),
            gathered: Gathered::default(),
            accounts: Accounts::default(),
            detector: Detector::default(),
            counters: FastCounters::default(),
        }
    }

    /// Begins a batch. Returns whether any module is on.
    #[inline]
    pub(crate) fn begin(&mut self) -> bool {
        self.on = self.switch.modules();
        if self.on.is_off() {
            return false;
        }
        self.flows.begin();
        self.expected.forget();
        true
    }

    /// All totals.
    pub(crate) fn counters(&self) -> FastCounters {
        let mut counters = self.counters.clone();
        // A device that shows frames where they lie does so for all; what the filter dropped is no ACK.
        counters.unseen = counters.unseen.saturating_sub(counters.filtered);
        counters.modules = self.switch.modules();
        counters.half_open = self.detector.report();
        (counters.accounts, counters.unaccounted) = self.accounts.report();
        counters
    }
}
