//! The fast path: reads frames in the device's memory, before the engine, and consumes pure ACKs there
//! (TCP-PARO: Chan and Cheriton 2013).
//!
//! A consumed ACK needs no buffer, no slot in the engine, and no delivery: the device can reuse its memory at
//! once, and the connection receives only the fields of the ACK. All other frames take the slow path, with a
//! counted reason ([`FallbackReason`]).
//!
//! * `parse.rs`: decides whether the frame is a pure ACK for this host.
//! * `order.rs`: tracks the flows of the batch, so that no ACK overtakes a segment of its flow.
//! * `expected.rs`: predicts the next ACK of the connection whose ACK was gathered last.
//! * `gather.rs`: groups the ACKs of a batch by connection; each connection is called once for all its ACKs.
//! * `find.rs`: finds the connection, and decides if it can receive ACKs on the fast path; the steps of a
//!   batch.
//! * `verdict.rs`, `counters.rs`: the reasons and the totals.
//! * `switches.rs`, `modules/`: the other modules, and the set of those that are on.
//!
//! Contract: a connection receives the same ACKs in the same order as without the fast path; the tests
//! `tests/host/fast` compare both paths. While all modules are off, no code of the fast path runs.

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
use thiserror::Error;

pub use self::counters::FastCounters;
use self::expected::Expected;
pub(crate) use self::find::{AckState, ConnectionSnapshot, Lookup};
use self::gather::Gathered;
pub(crate) use self::gather::Records;
use self::modules::accounting::Accounts;
pub use self::modules::accounting::{Account, AccountName};
pub use self::modules::filter::FilterRule;
use self::modules::syn_flood::Detector;
use self::order::Flows;
use self::parse::Expect;
pub use self::switches::FastModules;
pub use self::verdict::FallbackReason;

/// The settings of the fast path. By default all modules are off.
#[derive(Clone, Debug, Default)]
pub struct FastPath {
    /// The modules that are initially on. [`Handle::set_fast_path`](crate::Handle::set_fast_path) changes them.
    pub modules: FastModules,
    /// The rules of the filter. The first matching rule determines if a packet is dropped; packets without a
    /// matching rule pass.
    pub filter: Vec<FilterRule>,
    /// `true` to keep an account for each flow. By default, an account is kept for each source network, with a
    /// prefix of 24 bits for IPv4 and 64 bits for IPv6.
    pub account_by_flow: bool,
    /// `true` to look up the connection of each ACK and to pass each ACK in a separate call, as in Chan and
    /// Cheriton 2013. By default, the ACKs of a connection in a batch share one look-up and one call, which
    /// costs less.
    pub one_by_one: bool,
    /// `true` to pass each ACK of a cast's member to the member's connection, as in Chan and Cheriton 2013. By default,
    /// the group processes an in-order ACK without the connection, which costs less.
    pub wakes_members: bool,
}

/// The reason for which a string is not a valid setting of the fast path.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum FastPathError {
    /// The string is not the name of a module.
    #[error("{0}: no module of the fast path; choose {choices}", choices = choices())]
    NoModule(String),
    /// The first string is not a rule of the filter; the second string is the reason.
    #[error("{0:?} is no rule: {1}; write one like `drop from 10.0.0.0/8 port 53 to 192.0.2.1`")]
    NoRule(String, String),
}

/// Returns the names of all modules as a list for an error message.
fn choices() -> String {
    let [first @ .., last] = FastModules::NAMES;
    format!("{} or {last}", first.join(", "))
}

/// The state of the fast path, owned by the worker.
#[derive(Debug)]
pub(crate) struct Fast {
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
    pub(crate) fn new(config: &FastPath, link: LinkKind, mac: [u8; 6], seed: u64) -> Self {
        Self {
            on: FastModules::OFF,
            expect: Expect { link, mac, summer: Summer::detect() },
            config: config.clone(),
            flows: Flows::new(),
            expected: Expected::default(),
            gathered: Gathered::default(),
            accounts: Accounts::default(),
            detector: Detector::new(seed),
            counters: FastCounters::default(),
        }
    }

    /// Returns `true` if ACKs of a cast's member wake its connection.
    #[inline]
    pub(crate) const fn wakes_members(&self) -> bool {
        self.config.wakes_members
    }

    /// Begins a batch with the modules `on` switched on. Returns `true` if any module is on.
    #[inline]
    pub(crate) fn begin(&mut self, on: FastModules) -> bool {
        self.on = on;
        if on == FastModules::OFF {
            return false;
        }
        self.flows.begin();
        self.expected.forget();
        true
    }

    /// Returns all totals; `modules` are the modules that are on now.
    pub(crate) fn counters(&self, modules: FastModules) -> FastCounters {
        let mut counters = self.counters.clone();
        // A device that exposes frames in its own memory does so for all of them, so every filtered frame was
        // counted as unseen too; those are not ACKs.
        counters.unseen = counters.unseen.saturating_sub(counters.filtered);
        counters.modules = modules;
        (counters.half_open, counters.worst_network) = self.detector.report();
        counters.accounts = self.accounts.report();
        counters
    }
}
