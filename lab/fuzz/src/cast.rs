//! Target `cast`: a sender with a group of receivers, some of which violate the protocol.
//!
//! It runs the test harness of the endpoint, which its property test runs too.

#[path = "../../../crates/rxo-tcp/tests/multicast/links.rs"]
#[expect(dead_code, reason = "the stories use all of it")]
mod links;
#[path = "../../../crates/rxo-tcp/tests/multicast/receivers.rs"]
mod receivers;
#[path = "../../../crates/rxo-tcp/tests/multicast/room.rs"]
#[expect(dead_code, reason = "the stories use all of it")]
mod room;
#[path = "../../../crates/rxo-tcp/tests/multicast/script.rs"]
mod script;
#[path = "../../../crates/rxo-tcp/tests/multicast/settings.rs"]
#[expect(dead_code, reason = "the stories use all of it")]
mod settings;

use crate::tcp::harness::wire;

/// Runs a cast. The first bytes select settings; the others encode the actions of receivers, losses and time.
/// Bytes beyond 400 are ignored, because they would only take time.
///
/// # Panics
/// If a receiver reads wrong bytes, the cast does not end, or a correct receiver does not get the whole
/// stream.
pub fn run(data: &[u8]) {
    script::run(&data[..data.len().min(MOST_BYTES)]);
}

const MOST_BYTES: usize = 400;
