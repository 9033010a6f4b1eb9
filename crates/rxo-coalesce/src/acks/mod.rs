//! Pure ACKs: what may be aggregated, and what must be remembered for it.
//!
//! Separate from the rules for data, because a pure ACK carries no payload. What must arrive is the latest
//! acknowledgement, and every repetition of it: a second ACK with the same contents signals loss (RFC 5681
//! section 2) and is never dropped. So if only the last ACK is delivered, the engine keeps each flow's last ACK
//! beyond the poll ([`memory`]).
//!
//! * `point`: the contents of a pure ACK, and whether the next has more, the same or less.
//! * `rules`: candidate and verdict, as for data.
//! * `follows`: the same verdict for plain ACKs, in a few compares.
//! * `sack`: when a list of SACK blocks covers another.
//! * `recent`: guesses the place that holds the flow of an ACK.
//! * `memory`: the last ACK of each flow; `doubts`: the flows whose last ACK is in doubt.
//! * `delivery`: ACKs as their receiver sees them.

mod delivery;
mod doubts;
mod follows;
mod memory;
mod point;
mod recent;
mod rules;
mod sack;

pub use delivery::Acks;
pub(crate) use follows::{Following, follow, follows};
pub(crate) use memory::{Known, Memory};
pub(crate) use point::{AckPoint, News};
pub(crate) use recent::Recent;
pub(crate) use rules::{ack_candidate, ack_verdict, is_pure};
