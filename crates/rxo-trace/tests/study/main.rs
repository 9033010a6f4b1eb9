//! Studies of generated traffic and real captures, compared with an engine driven by hand, and with
//! the naive oracle, which shares no code with either.
#![allow(clippy::unwrap_used, reason = "the helpers of tests, too")]

mod acceptance;
mod awkward;
mod by_hand;
mod captures;
mod hostile;
mod oracle;
mod parts;
mod report;
mod traffic;
