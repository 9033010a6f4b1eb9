//! Splitting: inserts the ACKs that a host without coalescing would have sent.
//!
//! A host that receives an aggregate answers with one ACK, however many segments it covers (a
//! *stretch ACK*). A peer that counts bytes does not mind, but one that counts ACKs grows its
//! window too slowly. The splitter knows the segment boundaries of the data that the host received. Before a
//! stretch ACK it inserts the ACKs that were due: one for every second full-sized segment (RFC
//! 9293, section 3.8.6.3; RFC 5681, section 4.2), or every Nth.
//!
//! * `delivered` is the report of the receive side; `runs` keeps its segment boundaries by flow.
//! * `flow` is one connection: its runs, the host's newest ACK, and its window.
//! * `due` decides which ACKs are missing; `window` decides which windows they promise. Both are
//!   pure.
//! * `table` finds a flow by its key, and evicts the least recently used.
//! * `reason` and `counters` count the results, and the reasons why nothing was inserted.
//!
//! # Contract
//! The splitter never changes, holds or reorders the host's frames; it only returns what to insert
//! before one. An inserted ACK acknowledges more than the ACK before it and less than the ACK after
//! it, ends where a delivered segment ended, and promises no more window than the host's own ACK.
//! If the splitter does not know all boundaries, it inserts nothing. It does not allocate after
//! [`Splitter::new`], and no input makes it panic.

mod counters;
mod delivered;
mod due;
mod flow;
mod reason;
mod runs;
mod splitter;
mod table;
mod window;

pub use counters::SplitCounters;
pub use delivered::Delivered;
pub use due::MAX_ACKS_PER_STRETCH;
pub use reason::PassReason;
pub use splitter::{SplitConfig, SplitConfigError, Splitter};
