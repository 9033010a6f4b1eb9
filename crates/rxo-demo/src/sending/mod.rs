//! Measures the sender's side: a bulk sender whose ACKs arrive by one of three [`Way`]s. [`measure()`]
//! returns a [`Sample`]; the samples of a way make a [`Row`].
//!
//! The module is separate from the commands because `rxo demo --reverse` and `rxo-lab gallatin` make the same
//! measurements. Each host has its own core: one core runs the peer's receiver and the receive work of the
//! peer's kernel; another core runs the sender, rxo and the receive work of the sending host's kernel. So the
//! cost of ACKs to the sender is not hidden behind the receiver.

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

/// The settings of one transfer from the host to the peer.
#[derive(Clone, Copy, Debug)]
pub struct Setup {
    /// Number of connections that send at the same time.
    pub connections: usize,
    /// Time for which the transfer is measured, after the warm-up.
    pub bulk: Duration,
    /// Time for which the transfer runs before it is measured.
    pub warm_up: Duration,
    /// The cores of the measurement: the peer's receiver on one, the sending host on the other.
    pub cores: Cores,
    /// The rate at which the peer acknowledges segments.
    pub acks: AckRate,
    /// The rule that decides how long rxo holds ACKs, on both ways that go through rxo.
    pub hold: Hold,
    /// Time for which arriving ACKs are gathered, on both ways that go through rxo, like a card's interrupt moderation;
    /// zero for none.
    pub moderation: Duration,
}
