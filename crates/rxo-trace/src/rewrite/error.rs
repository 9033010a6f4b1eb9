//! Errors of coalescing or expanding a capture.

use rxo_capture::{WriteError, limits};
use rxo_frame::ConfigError;
use thiserror::Error;

use super::note::BadNote;

/// The error of coalescing or expanding a capture. Packet numbers count from 1 over the whole file.
#[derive(Debug, Error)]
pub enum RewriteError {
    /// A number in the configuration of the engine is out of range.
    #[error(transparent)]
    Config(#[from] ConfigError),
    /// The output cannot be written.
    #[error(transparent)]
    Write(#[from] WriteError),
    /// The capture was already written by `rxo coalesce`, so it cannot be coalesced again.
    #[error(
        "it was written by `rxo coalesce` already; `rxo expand` gives back what it was made of"
    )]
    AlreadyCoalesced,
    /// The capture to expand was written by another program.
    #[error("it was not written by `rxo coalesce`, so there is nothing to give back")]
    NotCoalesced,
    /// The capture to expand was written by another version of rxo.
    #[error(
        "it was written by another version of `rxo coalesce`, in another format; expand it with that \
         version"
    )]
    OtherVersion,
    /// The capture has more sections and interfaces, or longer descriptions of them, than can be
    /// kept.
    #[error(
        "it describes more than {} sections and interfaces, or says more than {} bytes of them; \
         split it with editcap",
        limits::DESCRIBED,
        limits::DESCRIBED_BYTES
    )]
    DescribesTooMuch,
    /// The note of a packet was changed after `rxo coalesce` wrote it.
    #[error("packet {packet}: {why}; it was changed since `rxo coalesce` wrote it, coalesce anew")]
    Packet {
        /// The number of the packet, counted from 1.
        packet: u64,
        /// The fault of the note.
        why: BadNote,
    },
    /// A compressed capture is damaged. A decompressor detects damage late, so none of its output can be
    /// trusted.
    #[error(
        "it is damaged at byte {offset} of what is unpacked, and what stands before may be wrong too; \
         nothing of it is given back, get the file again"
    )]
    DamagedPacked {
        /// The position at which the damage was detected, in bytes from the start of the unpacked capture.
        offset: u64,
    },
    /// Packets are missing, were added, or were changed. The string names the difference.
    #[error("{0}; it was changed since `rxo coalesce` wrote it, coalesce anew")]
    Changed(&'static str),
    /// The pcap format cannot represent the packets. The string gives the reason.
    #[error("a pcap file cannot hold this: {0}; write .pcapng")]
    NotForPcap(&'static str),
}
