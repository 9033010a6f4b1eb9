//! TAP and TUN: an interface whose other side is this process.
//!
//! * [`Tap`] makes the interface or takes over a persistent one, and puts it back at the end.
//! * [`TapSource`] reads what the host's stack sends; GSO frames stay whole.
//! * [`Tap::sink`] makes a sink that gives the host's stack aggregates, gathered from their pieces
//!   without a copy.
//!
//! All three share one descriptor; the interface lives until the last of them is dropped.

mod device;
mod kind;
mod offload;
mod probe;
mod sink;
mod source;

use std::fmt;
use std::io;
use std::os::fd::BorrowedFd;

use rxo_frame::LinkKind;

pub use device::Tap;
pub(crate) use kind::{TAP, TUN};
pub(crate) use probe::{Offered, probe};
pub use sink::SubmitMode;
pub use source::TapSource;

/// Shows the host that a TAP has carrier, or has none. `tap` is the descriptor that keeps it.
///
/// # Errors
/// On kernels before Linux 5.0.
pub(crate) fn set_carrier(tap: BorrowedFd<'_>, is_on: bool) -> io::Result<()> {
    offload::set_carrier(tap, is_on)
}

/// What the interface carries.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum TapKind {
    /// Ethernet frames.
    Tap,
    /// IP packets.
    Tun,
}

impl TapKind {
    /// What a frame begins with.
    #[must_use]
    pub const fn link(self) -> LinkKind {
        match self {
            Self::Tap => LinkKind::Ethernet,
            Self::Tun => LinkKind::RawIp,
        }
    }
}

impl fmt::Display for TapKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Tap => "tap",
            Self::Tun => "tun",
        })
    }
}
