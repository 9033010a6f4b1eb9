//! Tests of the worker on links in memory and in virtual time: they use neither clock nor system, and run the
//! same way each time.
#![allow(clippy::unwrap_used, reason = "tests, of which the lint does not see the helpers")]

mod auto;
mod balance;
mod blocking;
mod coalescing;
mod failing;
mod fitting;
mod middleware;
mod passing;
mod pausing;
mod queues;
mod soak;
mod splitting;
mod waiting;
mod world;
