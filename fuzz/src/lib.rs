//! What each fuzz target does with its bytes.
//!
//! The bodies stand here, apart from the targets in `targets/`, so that a plain workspace build
//! compiles them without C++ and the kept corpus is replayed as an ordinary test. Contract: a
//! body returns when every promise held for the bytes and panics when one did not.

pub mod parse;
