//! Capture files: every valid form is read, and every damaged form is refused.

mod damaged;
#[path = "../files/mod.rs"]
mod files;
mod links;
mod memory;
mod packed;
mod parsers;
mod pcap;
mod pcapng;
mod read;
mod round_trip;
mod written;
