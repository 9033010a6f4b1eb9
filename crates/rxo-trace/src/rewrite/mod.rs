//! Captures coalesced, and given back.
//!
//! * [`note`] is the codec of what a merged packet cannot say.
//! * `merged` is an aggregate as one packet of a capture.

#[cfg(test)]
mod merged;
pub mod note;
