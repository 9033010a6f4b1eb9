//! The slow and obvious implementations that the fast code is compared with.

mod ack;
mod checksum;
mod inside;
mod merge;
mod read;

pub use ack::{NaiveAck, another_ack};
pub use checksum::{fold, internet_checksum, pseudo_header_sum, transport_checksum};
pub use inside::{Outer, read_inside};
pub use merge::{ChecksumField, FixedIds, checksum_at, merge, resegment, resegment_with};
pub use read::{Content, Ends, Fault, Reading, Segment, read};
