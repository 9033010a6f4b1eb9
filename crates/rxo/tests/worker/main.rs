//! The worker on links in memory and on virtual time: no clock, no system, the same every time.
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
mod soak;
mod splitting;
mod waiting;
mod world;
