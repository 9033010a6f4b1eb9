//! Pure ACKs: the rules that decide which may be aggregated, and the state that these rules need.
//!
//! Separate from the rules for data, because a pure ACK carries no payload. The receiver must get the latest ACK,
//! and each duplicate of it: a second ACK with the same contents signals loss (RFC 5681 section 2) and is never
//! dropped. So if only the last ACK is delivered, the engine keeps each flow's last ACK beyond the poll
//! ([`memory`]).
//!
//! * `rules`: candidate and verdict, as for data.
//! * `follows`: the same verdict for ordinary ACKs, in a few compares.
//! * `sack`: SACK blocks, and the test that one list of blocks covers another.
//! * `recent`: guesses the index at which the flow of an ACK is held.
//! * `memory`: the last ACK of each flow; `invalidations`: the pairs of hosts whose recorded ACKs may be
//!   outdated.
//! * `delivery`: aggregated ACKs as their receiver sees them.

mod delivery;
mod follows;
mod invalidations;
mod memory;
mod recent;
mod rules;
mod sack;

pub use delivery::Acks;
pub(crate) use follows::{Following, follow, follows};
pub(crate) use memory::{FlowRecord, Memory};
pub(crate) use recent::Recent;
pub(crate) use rules::{ack_candidate, ack_verdict, is_pure};
