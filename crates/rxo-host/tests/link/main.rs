//! The link as stories: frames by hand, answers read by hand, virtual time.

mod closed;
mod errors;
mod groups;
mod harness;
mod neighbours;
mod peer;
mod ping;
mod probes;
mod robustness;
