//! Target `cast`: a sender with a group of receivers. Some of them break every rule.
//!
//! It runs the room of the endpoint's own stories, which its property test runs too.

#[path = "../../../crates/rxo-tcp/tests/multicast/links.rs"]
#[expect(dead_code, reason = "the stories use all of it")]
mod links;
#[path = "../../../crates/rxo-tcp/tests/multicast/room.rs"]
#[expect(dead_code, reason = "the stories use all of it")]
mod room;
#[path = "../../../crates/rxo-tcp/tests/multicast/script.rs"]
mod script;
#[path = "../../../crates/rxo-tcp/tests/multicast/settings.rs"]
#[expect(dead_code, reason = "the stories use all of it")]
mod settings;

use crate::tcp::harness::wire;

/// The first bytes select settings; the others are who comes, stops, and says what, losses and time. More than
/// 400 are left out: they would only take time.
///
/// # Panics
/// If a receiver reads anything but the stream, the cast does not end, or one that keeps to the rules does not get all.
pub fn run(data: &[u8]) {
    script::run(&data[..data.len().min(MOST_BYTES)]);
}

const MOST_BYTES: usize = 400;
