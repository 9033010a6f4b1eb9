//! Compares the splitter with a naive receiver that coalesces nothing.

#[path = "../harness/mod.rs"]
mod harness;
mod model;
mod promises;
mod stories;
mod windows;
mod world;
