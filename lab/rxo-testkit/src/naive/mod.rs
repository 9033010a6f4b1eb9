//! The slow and obvious implementations that the fast code is compared with.

mod ack;
mod checksum;
mod merge;
mod read;

pub use ack::{NaiveAck, another_ack};
pub use checksum::{fold, internet_checksum, pseudo_header_sum, transport_checksum};
pub use merge::{ChecksumField, checksum_at, merge, resegment};
pub use read::{Ends, Fault, Reading, Segment, read};
