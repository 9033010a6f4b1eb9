//! Scenarios of the link: hand-made frames, hand-read answers, virtual time.

mod closed;
mod errors;
mod groups;
mod harness;
mod neighbours;
mod peer;
mod ping;
mod probes;
mod robustness;
