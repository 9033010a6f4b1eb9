//! `librxo`: the receive engine, the segmenter, the virtio-net header and the study of captures for
//! programs in C. `include/rxo.h` is generated from this crate.
//!
//! * `border`: what every function has in common: panics, errors, texts.
//! * `engine`: frames in, deliveries out. `engine::hand` keeps what the caller has not released.
//! * `segmenter`: from a GSO frame to the frames that a network carries.
//! * `vnet`: `virtio_net_hdr` to and from what it says.
//! * `study`: what coalescing would do to captures.
//!
//! # Contract
//! No panic crosses into C: it becomes `RXO_BROKEN`, and the object refuses everything afterwards. Null,
//! lengths and room are checked; pointers are otherwise trusted, as a system call trusts them. Buffers
//! are never copied and never kept beyond `rxo_release`. After `rxo_new` the engine does not allocate.

#![allow(unsafe_code, reason = "the border to programs in C")]

pub mod border;
pub mod engine;
pub mod segmenter;
pub mod study;
pub mod vnet;
