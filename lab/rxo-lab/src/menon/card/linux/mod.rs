//! Linux's own stack, as the paper's Xen guest (sections 2.4 and 5.1, figure 10): a real Linux in emulation, whose
//! driver domain is rxo's worker between the card and the guest's ring.
//!
//! The [`domain`] is a process under callgrind, the guest counts its own instructions by function ([`kernel`]). A
//! [`guest`] is measured with one of the feeds of [`Feed`], and [`figure`] puts both halves on top of each other.

pub(crate) mod domain;
mod figure;
mod guest;
mod kernel;
mod part;

use serde::Serialize;

pub(super) use self::figure::{FIGURE_10, OF_A_GUEST, aims, figure_10, table};
#[cfg(test)]
pub(super) use self::guest::tests;
pub(super) use self::guest::{Cost, cost};
use crate::menon::receive::stack::Stack;

/// What the driver domain gives the guest.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum Feed {
    /// Each frame alone.
    Plain,
    /// Aggregates. Each is acknowledged once, and its sender sees that.
    Aggregates,
    /// Aggregates, and the domain adds the ACKs that the sender expects: ACK offload for a stack that knows nothing of
    /// templates.
    Split,
    /// Each frame alone, to a guest whose own GRO is on.
    OwnGro,
}

impl Feed {
    pub(super) const ALL: [Self; 4] = [Self::Plain, Self::Aggregates, Self::Split, Self::OwnGro];
    /// What figure 10 shows.
    const PAPERS: [Self; 3] = [Self::Plain, Self::Aggregates, Self::Split];

    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::Plain => "Original",
            Self::Aggregates => "+ Receive Aggregation",
            Self::Split => "+ ACKs split",
            Self::OwnGro => "Original, GRO on",
        }
    }

    const fn stack(self) -> Stack {
        match self {
            Self::Plain | Self::OwnGro => Stack::ORIGINAL,
            Self::Aggregates | Self::Split => Stack::AGGREGATION,
        }
    }

    /// Full segments for an ACK on the wire.
    const fn ack_split(self) -> Option<u16> {
        match self {
            Self::Split => Some(2),
            _ => None,
        }
    }
}
