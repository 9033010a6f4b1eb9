//! Compares the frames that `expand` writes with frames that are built and checksummed one by one.

mod alike;
mod packed;
mod refused;
mod world;
