//! Tests of header parsing: examples, properties for arbitrary bytes, and a comparison with another parser.

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
