//! What `expand` writes, beside frames built and checksummed one by one.

mod alike;
mod refused;
mod world;
