//! Pure ACKs: what may be aggregated, and what must be remembered for it.
//!
//! Apart from the rules for data, because a pure ACK carries no bytes that must come through, only
//! news: what must come through is that news, and how often it came. A second ACK with the same news
//! means loss (RFC 5681 section 2) and is never swallowed. That is why, where only the last ACK is
//! shown, the engine remembers beyond a poll what each flow said last ([`memory`]).
//!
//! * `point`: what a pure ACK says, and whether the next says more, the same or less.
//! * `rules`: candidate and verdict, as for data.
//! * `follows`: the same verdict for plain ACKs, in a few compares.
//! * `sack`: when a list of SACK blocks covers another.
//! * `recent`: where the flow of an ACK is probably held.
//! * `memory`: what flows said last; `doubts`: the flows for which it is in doubt.
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
pub(crate) use follows::follows;
pub(crate) use memory::{Known, Memory};
pub(crate) use point::{AckPoint, News};
pub(crate) use recent::Recent;
pub(crate) use rules::{ack_candidate, ack_verdict, is_pure};
