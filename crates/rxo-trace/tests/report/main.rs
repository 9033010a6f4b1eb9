//! What is made from a report, read back as its reader would.
#![allow(clippy::unwrap_used, reason = "the helpers of tests, too")]

#[path = "../fixture/mod.rs"]
mod fixture;
mod page;
#[cfg(feature = "parquet")]
mod parquet;
