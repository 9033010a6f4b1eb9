//! Tests of both sides of a queue with each other, and of each with a hostile peer.

mod hostile_device;
mod hostile_driver;
mod laps;
mod pair;
mod promises;
mod stories;
mod threads;
