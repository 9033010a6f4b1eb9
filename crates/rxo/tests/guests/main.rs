//! A nic, a switch and several guests on links in memory and on virtual time.
#![allow(clippy::unwrap_used, reason = "tests, of which the lint does not see the helpers")]

mod attacks;
mod ipv6;
mod oracle;
mod stories;
mod tags;
mod threads;
mod world;
