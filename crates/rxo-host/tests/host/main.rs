//! Two hosts and a link in memory.
#![allow(clippy::unwrap_used, reason = "tests")]

mod acks;
mod addresses;
mod flood;
mod lending;
mod listening;
mod many;
mod opening;
mod readiness;
mod threads;
mod transfers;
mod world;
