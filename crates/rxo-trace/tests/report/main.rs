//! Pages and tables made from a report, read back in the way of their readers.
#![allow(clippy::unwrap_used, reason = "the helpers of tests, too")]

#[path = "../fixture/mod.rs"]
mod fixture;
mod page;
#[cfg(feature = "parquet")]
mod parquet;
