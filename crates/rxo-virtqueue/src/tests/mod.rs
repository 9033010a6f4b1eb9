//! Tests of both sides of a queue with each other, and of each with a hostile peer.

mod hostile_device;
mod hostile_driver;
mod inflight;
mod laps;
mod logged;
mod pair;
mod promises;
mod recycled;
mod stories;
mod threads;
