//! What reading headers promises: stories, properties on any bytes, and another parser's opinion.

#![allow(clippy::unwrap_used, reason = "tests, their helpers included")]

mod any_bytes;
mod flow;
mod options;
mod oracle;
mod packets;
mod parse;
mod segmentation;
mod seq;
mod tunnel;
