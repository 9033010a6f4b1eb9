//! The fuzz targets.
//!
//! They are separate from the binary, so that a plain workspace build compiles them without C++, and an
//! ordinary test replays the kept corpus. Contract: a target returns if every promise held for the bytes, and
//! panics otherwise.

pub mod acks;
mod captures;
pub mod cast;
pub mod checksum;
pub mod corpus;
pub mod engine;
pub mod expand;
#[path = "../../../crates/rxo-coalesce/tests/harness/mod.rs"]
mod harness;
pub mod host;
pub mod http;
mod operations;
pub mod oracle;
pub mod packed;
pub mod parse;
pub mod part;
pub mod pcap;
pub mod pcapng;
pub mod resegment;
pub mod rings;
pub mod split;
#[path = "../../../crates/rxo-ack/tests/harness/mod.rs"]
mod split_harness;
pub mod switch;
pub mod tcp;
pub mod template;
pub mod vhost;
pub mod vhost_live;
pub mod vnet;

/// A target: its name, and the function that runs it on an input.
pub type Target = (&'static str, fn(&[u8]));

/// Every target.
pub const TARGETS: &[Target] = &[
    ("parse", parse::run),
    ("checksum", checksum::run),
    ("engine", engine::run),
    ("oracle", oracle::run),
    ("acks", acks::run),
    ("resegment", resegment::run),
    ("part", part::run),
    ("pcap", pcap::run),
    ("pcapng", pcapng::run),
    ("packed", packed::run),
    ("expand", expand::run),
    ("template", template::run),
    ("split", split::run),
    ("tcp-segments", tcp::segments),
    ("tcp-pair", tcp::pair),
    ("cast", cast::run),
    ("host-link", host::link),
    ("host-fast-path", host::fast_path),
    ("http", http::run),
    ("vhost", vhost::run),
    ("vhost-live", vhost_live::run),
    ("switch", switch::run),
    ("vnet", vnet::run),
    ("ring-device", rings::device),
    ("ring-driver", rings::driver),
];

/// Returns the function of the target `name`.
///
/// # Errors
/// If no target has that name; one line lists all names.
pub fn target(name: &str) -> Result<fn(&[u8]), String> {
    let found = TARGETS.iter().find(|(known, _)| *known == name);
    found.map(|&(_, run)| run).ok_or_else(|| {
        let names: Vec<&str> = TARGETS.iter().map(|&(known, _)| known).collect();
        format!("no target {name:?}; there are: {}", names.join(", "))
    })
}
