//! The crate's behaviour as stories: one file per topic, virtual time, a hand-made peer.
//!
//! Numbers are relative, as in a capture: 0 is a SYN, 1 the first byte. The doc of a test names each RFC MUST
//! that it checks.

mod abandoned;
mod acks;
mod aggregates;
mod bbr;
mod bottleneck;
mod buffers;
mod close;
mod dsl;
mod duplicates;
mod ecn;
mod group;
mod growth;
mod handshake;
#[path = "../harness/mod.rs"]
mod harness;
mod header;
mod initial_window;
mod injection;
mod karn;
mod link;
mod network;
mod owed;
mod path;
mod pieces;
mod quiet;
mod receiver;
mod recovery;
mod recovery_without_sack;
mod resets;
mod robustness;
mod sacks;
mod sequence;
mod stretch;
mod text;
mod time_wait;
mod timers;
mod windows;
mod wire;
