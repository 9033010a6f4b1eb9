//! The erasure code of a cast: Reed-Solomon over the segments of a block.
//!
//! The code is separate from the protocol in `rxo-tcp`, which determines the number of parity packets, because
//! only this module needs the crate `reed-solomon-simd`. Without the feature `parity`, hosts neither compute
//! nor use parity packets: [`IS_BUILT`] is `false`.

#[cfg(feature = "parity")]
mod code;
#[cfg(not(feature = "parity"))]
#[path = "absent.rs"]
mod code;

pub(crate) use self::code::{Decoder, Encoder, IS_BUILT};
