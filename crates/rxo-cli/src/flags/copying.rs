//! Flags of every command that has guests, for measurements of copies. The help does not show them, because a
//! guest gets the same packets with any of them. The benchmark of the Xen paper uses them
//! (docs/repro/xen.md).

use clap::{Args, ValueEnum};

#[derive(Args, Clone, Copy, Debug)]
pub(crate) struct CopyingFlags {
    /// Copies into the memory of a guest (vhost:PATH): gather copies each piece straight there; linear copies all
    /// pieces into one region first, so each byte twice. For measurements: the packets are the same.
    #[arg(long, hide = true, value_name = "HOW", value_enum, default_value_t = PathFlag::Gather)]
    pub(crate) path: PathFlag,

    /// Layout of the frames of a packet before the copy: whole (frames), or headers and payload apart (pages), which is
    /// one piece more. For measurements: the packets are the same.
    #[arg(long, hide = true, value_name = "HOW", value_enum, default_value_t = LayoutFlag::Frames)]
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
