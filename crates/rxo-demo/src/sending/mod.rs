//! The sender's side: a bulk sender in a host whose acknowledgements come in by one of three
//! [`Way`]s, [`measure()`]d; several [`Sample`]s of a way make a [`Row`].
//!
//! Separate from the commands because `rxo demo --reverse` and `rxo-lab gallatin` measure the
//! same. One host a core: the peer's receiver and everything that its kernel receives stand on one,
//! the sender, rxo and what the sender's kernel receives on the other, so that what acknowledgements
//! cost the sender is not hidden behind the receiver.

mod measure;
mod row;
mod sample;
mod way;

use std::time::Duration;

use rxo_coalesce::Hold;
use rxo_testbed::AckRate;

pub use measure::measure;
pub use row::Row;
#[cfg(test)]
pub(crate) use row::tests::sample as sample_for_tests;
pub use sample::{HostCpu, Sample};
pub use way::Way;

use crate::machine::Cores;

/// What is sent, to whom.
#[derive(Clone, Copy, Debug)]
pub struct Setup {
    /// Connections that send at the same time.
    pub connections: usize,
    /// How long it is measured.
    pub bulk: Duration,
    /// How long it runs before that.
    pub warm_up: Duration,
    /// The peer's receiver on the first, the sending host on the second.
    pub cores: Cores,
    /// How often the peer acknowledges.
    pub acks: AckRate,
    /// How long rxo holds what it aggregates, on both ways through it.
    pub hold: Hold,
    /// How long arriving ACKs wait for others on both ways through rxo, as behind a card that
    /// moderates its interrupts; zero for not at all.
    pub moderation: Duration,
}
