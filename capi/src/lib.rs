//! `librxo`: the receive engine, the segmenter and the virtio-net header for programs in C. With the feature
//! `trace` it is `librxo-trace`, which also has the study of captures. `include/rxo.h` and
//! `include/rxo-trace.h` are generated from this crate.
//!
//! * `border`: error codes and checks that all functions share.
//! * `engine`: frames in, deliveries out. `engine::hand` stores deliveries until they are released.
//! * `segmenter`: splits a GSO frame into frames for a network.
//! * `vnet`: reads and writes `virtio_net_hdr`.
//! * `study`: computes the effect of coalescing on captures.
//!
//! # Contract
//! No panic unwinds into C: it becomes `RXO_BROKEN`, and the object returns only errors afterwards. Null
//! pointers, lengths and buffer sizes are checked; other pointers are trusted, as a system call trusts them.
//! Buffers are never copied and never kept beyond `rxo_release`. After `rxo_new` the engine does not
//! allocate.

#![allow(unsafe_code, reason = "the border to programs in C")]

pub mod border;
pub mod engine;
pub mod segmenter;
#[cfg(feature = "trace")]
pub mod study;
pub mod vnet;
