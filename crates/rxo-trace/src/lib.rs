//! What coalescing would do to captured traffic, before anybody touches a machine.
//!
//! The engine is the one that runs live, unchanged: what is reported here is what `rxo run` would
//! do with the same packets at the same times.
//!
//! * [`report`] is what a study found, as data: tables, HTML, JSON and Parquet are made from it.

pub mod report;
