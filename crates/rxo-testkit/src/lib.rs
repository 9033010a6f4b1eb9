//! Packets, traffic and oracles for tests, benches and fuzzing.
//!
//! It is separate, and imported by tests alone, so that what checks the engine shares no code with
//! it: this crate writes its own headers, reads its own headers, and sums its own checksums, the
//! slow and obvious way. From the bottom up:
//!
//! * [`naive`] reads and sums one byte after the other.
//! * [`Packet`] is the packet language of the tests: `seg().seq(1).len(100).psh()`.
//! * [`cases`] is what the kernel's own self-test sends, as a table.
//! * [`script`] is a test case for the engine: frames, polls and time; from any bytes.
//! * [`oracle`] says which deliveries a script must give, from the design's table of policies.
//! * [`promise`] checks what a run of a script was seen to do.
//! * [`sender`] is a TCP sender as far as ACKs go: what it learns from them, and that it learns it.
//! * [`workload`](mod@workload) is the traffic that speed is measured with, deterministic from a seed.
//!
//! Contract: same input, same output; no clock, no input or output. Everything allocates freely,
//! and misuse by a test panics.

pub mod cases;
pub mod naive;
pub mod oracle;
mod packet;
mod payload;
pub mod promise;
mod random;
pub mod script;
pub mod sender;
pub mod workload;

pub use packet::{Packet, arp, seg, udp};
pub use payload::stream_byte;
pub use random::Random;
pub use script::{Script, Setup, Step};
pub use workload::{Traffic, Workload, workload};
