//! Splitting: inserts the ACKs that a host without coalescing would have sent.
//!
//! A host that receives an aggregate answers with one ACK for all its segments (a *stretch ACK*). A peer that
//! counts bytes is not affected, but one that counts ACKs grows its window too slowly. The splitter records
//! the segment boundaries of the data that the host received. Before a stretch ACK it inserts the ACKs that
//! were due: one for every second full-sized segment (RFC 9293, section 3.8.6.3; RFC 5681, section 4.2), or
//! every Nth.
//!
//! * `delivered` is the report about data delivered to the host; `runs` stores the segment boundaries of a
//!   flow.
//! * `flow` is the state of one connection: its runs, the host's newest ACK, and its window.
//! * `due` computes which ACKs are missing, `window` the windows in them. Both are pure.
//! * `table` maps a flow key to its flow, and evicts the least recently used.
//! * `reason` and `counters` count the results, and the reasons for which nothing was inserted.
//!
//! # Contract
//! The splitter never changes, holds or reorders the host's frames; it only returns ACKs to insert before one.
//! An inserted ACK acknowledges more than the ACK before it and less than the ACK after it. Its number is the
//! end of a delivered segment, and its window promises no more than that of the host's own ACK. If a segment
//! boundary is unknown, nothing is inserted. The splitter does not allocate after [`Splitter::new`], and no
//! input makes it panic.

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
pub use splitter::{SplitConfig, Splitter};
