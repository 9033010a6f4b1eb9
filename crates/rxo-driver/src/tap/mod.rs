//! TAP and TUN: an interface whose other side is this process.
//!
//! * [`Tap`] creates the interface, or takes over a persistent one and restores its settings when the last
//!   user is dropped. [`Tap::from_fd`] takes over a descriptor that other code has opened.
//! * [`TapSource`] reads the packets that the host's stack sends; GSO frames stay whole.
//! * [`Tap::sink`] creates a sink that writes aggregates to the host's stack by scatter/gather, without first
//!   copying the payload.
//!
//! The source and the sink of one queue share a descriptor; the interface exists until the last of them and
//! of [`Tap`] is dropped.

mod adopted;
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

/// Sets the carrier of a TAP, which the host sees. `tap` is an open descriptor of the TAP.
///
/// # Errors
/// On kernels before Linux 5.0.
pub(crate) fn set_carrier(tap: BorrowedFd<'_>, is_on: bool) -> io::Result<()> {
    offload::set_carrier(tap, is_on)
}

/// The kind of packets that the interface carries.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum TapKind {
    /// The interface carries Ethernet frames.
    Tap,
    /// The interface carries IP packets.
    Tun,
}

impl TapKind {
    /// Returns the link layer of the interface's frames.
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
