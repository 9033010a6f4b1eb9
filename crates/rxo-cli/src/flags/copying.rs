//! Flags of every command that has guests: how packets get into their memory.

use clap::{Args, ValueEnum};

#[derive(Args, Clone, Copy, Debug)]
pub(crate) struct CopyingFlags {
    /// How packets are copied into the memory of a guest (vhost:PATH): gather copies each piece straight
    /// there; linear copies all pieces into one region first, so each byte twice. For measurements: the
    /// packets are the same.
    #[arg(long, value_name = "HOW", value_enum, default_value_t = PathFlag::Gather)]
    pub(crate) path: PathFlag,

    /// How the frames of a packet for a guest lie before that: whole (frames), or headers and payload
    /// apart (pages), which is one piece more. For measurements: the packets are the same.
    #[arg(long, value_name = "HOW", value_enum, default_value_t = LayoutFlag::Frames)]
    pub(crate) layout: LayoutFlag,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum PathFlag {
    /// One copy.
    Gather,
    /// Two copies.
    Linear,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum LayoutFlag {
    /// As many pieces as frames.
    Frames,
    /// One piece more.
    Pages,
}
