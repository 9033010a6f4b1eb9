//! The slow and obvious way: what the fast code is compared with.

mod checksum;

pub use checksum::{fold, internet_checksum, pseudo_header_sum, transport_checksum};
