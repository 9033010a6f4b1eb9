//! Splitting: the ACKs that a host without coalescing would have sent.
//!
//! A host that is handed aggregates answers one with one ACK, however many segments it covers (a
//! *stretch ACK*). A peer that counts bytes does not mind; one that counts ACKs grows its window too
//! slowly. The splitter knows where the segments began that the host was given, and puts before a
//! stretch ACK those that were due meanwhile: one for every second full-sized segment (RFC 9293,
//! section 3.8.6.3; RFC 5681, section 4.2), or every Nth.
//!
//! * `delivered` is what the receive side tells; `runs` keeps it, per flow, as boundaries.
//! * `flow` is one connection: its runs, what the host acknowledged last, and its window.
//! * `due` decides which ACKs are missing; `window` what they may promise. Both are pure.
//! * `table` finds the flow, and lets the least recently used go.
//! * `reason` and `counters` say what was done, and why not more.
//!
//! # Contract
//! The host's frames are never changed, held or reordered: the splitter only says what shall go
//! before one. What it inserts acknowledges more than the ACK before it, less than the ACK after it,
//! and ends where a delivered segment ended; it promises no window that the host's own ACK does not.
//! Where it does not know all boundaries it inserts nothing. Nothing allocates after
//! [`Splitter::new`]; nothing panics, whatever the bytes and whatever it is told.

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
