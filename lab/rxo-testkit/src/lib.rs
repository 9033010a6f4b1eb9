//! Packets, traffic and oracles for tests, benches and fuzzing.
//!
//! Separate, and imported by tests only, so that the checks share no code with the engine: this crate writes
//! and reads its own headers and computes its own checksums, in the slow and obvious way. From the bottom up:
//!
//! * [`naive`] parses and sums byte by byte.
//! * [`Packet`] is the packet language of the tests: `seg().seq(1).len(100).psh()`.
//! * [`adversary`] makes traffic that is as expensive as possible for a receiver, some of it with knowledge
//!   of the seed.
//! * [`cases`] is the kernel's own self-test of receive offload, as a table.
//! * [`script`] is a test case for the engine: frames, polls and time. Any bytes make one.
//! * [`oracle`] computes the deliveries that a script must give, from the design's table of policies.
//! * [`promise`] checks the engine's promises on the observations of a run.
//! * [`sender`] models the state that a TCP sender derives from ACKs, and checks that aggregation preserves
//!   it.
//! * [`workload`](mod@workload) makes the traffic of the speed benchmarks, deterministic from a seed.
//!
//! Contract: the same input gives the same output; no clock, no input or output. Functions allocate freely
//! and panic if a test misuses them.

pub mod adversary;
pub mod cases;
pub mod naive;
pub mod oracle;
mod packet;
mod payload;
pub mod promise;
mod random;
mod rules;
pub mod script;
pub mod sender;
pub mod workload;

pub use packet::{Outer, Packet, arp, geneve, seg, udp, vxlan};
pub use payload::stream_byte;
pub use random::Random;
pub use script::{Script, Setup, Step};
pub use workload::{Traffic, Workload, workload};
