//! Two hosts and a link in memory.
#![allow(clippy::unwrap_used, reason = "tests")]

mod acks;
mod addresses;
mod asked;
mod cast;
mod casting;
#[allow(unsafe_code, reason = "counting allocations needs an allocator, and that trait is unsafe")]
#[path = "../../../rxo-coalesce/tests/no_allocation/counting.rs"]
mod counting;
mod crowd;
mod device_queue;
mod ended;
mod fast;
mod flood;
mod gate;
mod idle;
mod in_place;
mod keeping;
mod lending;
mod listening;
mod many;
mod marks;
mod memory;
mod opening;
mod paths;
#[allow(dead_code, reason = "some is for the link's own tests")]
#[path = "../link/peer.rs"]
mod peer;
mod probing;
mod reader;
mod readiness;
mod shards;
mod shares;
mod sixteen;
mod slots;
#[cfg(feature = "tokio")]
mod tasks;
mod threads;
mod time_waits;
mod transfers;
mod world;
