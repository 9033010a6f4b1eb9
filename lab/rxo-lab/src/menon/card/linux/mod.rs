//! Measures Linux's own stack in place of the paper's Xen guest (sections 2.4 and 5.1, figure 10): an
//! emulated Linux guest, with rxo's worker between the card and the guest's ring as driver domain.
//!
//! The [`domain`] is a process under callgrind; the guest's instructions are counted by function
//! ([`kernel`]). [`guest`] measures one [`Feed`], and [`figure`] stacks the costs of guest and domain.

pub(crate) mod domain;
mod figure;
mod guest;
mod kernel;
mod part;

use serde::Serialize;

pub(super) use self::figure::{aims, figure_10};
#[cfg(test)]
pub(super) use self::guest::tests;
pub(super) use self::guest::{Cost, cost};
use crate::menon::receive::stack::Stack;

/// The form in which the driver domain delivers packets to the guest.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum Feed {
    /// Each frame separately.
    Plain,
    /// Aggregates. The guest acknowledges each aggregate once, so the sender receives fewer ACKs.
    Aggregates,
    /// Aggregates; the domain inserts the ACKs that the sender expects. This is ACK offload for a stack
    /// without templates.
    Split,
    /// Each frame separately, to a guest with its own GRO enabled.
    OwnGro,
}

impl Feed {
    pub(super) const ALL: [Self; 4] = [Self::Plain, Self::Aggregates, Self::Split, Self::OwnGro];
    /// The feeds that the paper's figure 10 shows.
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

    /// Returns the number of full segments per ACK on the wire; `None` leaves ACKs unchanged.
    const fn ack_split(self) -> Option<u16> {
        match self {
            Self::Split => Some(2),
            _ => None,
        }
    }
}
