//! The fast path: reads frames in the device's memory, before the engine, and consumes pure ACKs there
//! (TCP-PARO: Chan and Cheriton 2013).
//!
//! A consumed ACK takes no buffer, no slot in the engine, and no delivery: the device has its memory back at
//! once, and the connection receives only the fields of the ACK. All other frames take the slow path, with a
//! counted reason ([`FallbackReason`]).
//!
//! * `parse.rs`: decides if the frame is a pure ACK for this host.
//! * `order.rs`: the flows of the batch, so that no ACK overtakes a segment of its flow.
//! * `expected.rs`: predicts the next ACK of the connection whose ACK was gathered last.
//! * `gather.rs`: groups the ACKs of a batch by connection; each connection is called once for all its ACKs.
//! * `find.rs`: finds the connection, and decides if it can take ACKs; the steps of a batch.
//! * `verdict.rs`, `counters.rs`: the reasons and the totals.
//! * `switches.rs`, `modules/`: the other modules, and the set of those that are on.
//!
//! Contract: a connection receives the same ACKs in the same order as without the fast path; the tests
//! `tests/host/fast` compare both paths. While all modules are off, nothing here runs.

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
    /// The modules that are on at the start. [`FastSwitches`] changes them while the host runs.
    pub modules: FastModules,
    /// The rules of the filter: the first that matches decides; packets that match none pass.
    pub filter: Vec<FilterRule>,
    /// The key of an account: a network or a flow.
    pub account_by: AccountBy,
    /// Passes each ACK to its connection separately if `true`, as in the paper. By default the ACKs of a
    /// connection in a batch are looked up once and passed in one call, which costs less.
    pub one_by_one: bool,
}

/// The state of the fast path of one worker.
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

    /// Begins a batch. Returns `true` if any module is on.
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

    /// All counters, including those of the modules.
    pub(crate) fn counters(&self) -> FastCounters {
        let mut counters = self.counters.clone();
        // A device that exposes frames in its own memory does so for all of them, so every filtered frame was
        // counted as unseen too; those are not ACKs.
        counters.unseen = counters.unseen.saturating_sub(counters.filtered);
        counters.modules = self.switch.modules();
        counters.half_open = self.detector.report();
        (counters.accounts, counters.unaccounted) = self.accounts.report();
        counters
    }
}
