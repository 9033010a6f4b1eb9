//! Why a capture cannot be coalesced or expanded.

use rxo_coalesce::ConfigError;
use rxo_device::capture::{WriteError, limits};
use thiserror::Error;

use super::note::BadNote;

/// Why a capture cannot be coalesced or expanded. Packets count from 1 over the whole file.
#[derive(Debug, Error)]
pub enum RewriteError {
    /// A number of the policy is out of range.
    #[error(transparent)]
    Config(#[from] ConfigError),
    /// The output cannot be written.
    #[error(transparent)]
    Write(#[from] WriteError),
    /// It holds aggregates already.
    #[error(
        "it was written by `rxo coalesce` already; `rxo expand` gives back what it was made of"
    )]
    AlreadyCoalesced,
    /// It is another program's.
    #[error("it was not written by `rxo coalesce`, so there is nothing to give back")]
    NotCoalesced,
    /// It was written by another version of rxo.
    #[error(
        "it was written by another version of `rxo coalesce`, in another format; expand it with that \
         version"
    )]
    OtherVersion,
    /// More sections and interfaces, or longer descriptions of them, than are kept.
    #[error(
        "it describes more than {} sections and interfaces, or says more than {} bytes of them; \
         split it with editcap",
        limits::DESCRIBED,
        limits::DESCRIBED_BYTES
    )]
    DescribesTooMuch,
    /// What rides beside a packet is not what was written.
    #[error("packet {packet}: {why}; it was changed since `rxo coalesce` wrote it, coalesce anew")]
    Packet {
        /// Which.
        packet: u64,
        /// In what way.
        why: BadNote,
    },
    /// Packets are missing or were added, or one without an aggregate was changed.
    #[error("{0}; it was changed since `rxo coalesce` wrote it, coalesce anew")]
    Changed(&'static str),
    /// A pcap file cannot say what is to be written.
    #[error("a pcap file cannot hold this: {0}; write .pcapng")]
    NotForPcap(&'static str),
}
