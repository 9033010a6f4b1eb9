//! Capture files: read in every form that is written, refused in every form that is damaged.

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
