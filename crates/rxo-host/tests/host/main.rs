//! Two hosts and a link in memory.
#![allow(clippy::unwrap_used, reason = "tests")]

mod opening;
mod threads;
mod transfers;
mod world;
