//! Studies of generated traffic and of real captures, held against the engine driven by hand and
//! against the naive oracle, which shares no code with either.
#![allow(clippy::unwrap_used, reason = "the helpers of tests, too")]

mod acceptance;
mod by_hand;
mod captures;
mod hostile;
mod oracle;
mod report;
mod traffic;
