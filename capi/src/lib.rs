//! `librxo`: the receive engine, the segmenter, the virtio-net header and the study of captures for
//! programs in C. `include/rxo.h` is generated from this crate.
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
pub mod study;
pub mod vnet;
