//! What the processor does better when asked by name. The only unsafe code of this crate.
//!
//! Each leaf module has a safe face: whoever calls it can ask for nothing that the processor at
//! hand cannot do, and for no byte outside the slice given.

mod prefetch;

pub use prefetch::{CACHE_LINE_BYTES, prefetch, prefetch_all};
