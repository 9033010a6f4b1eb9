//! Probe: finds out which offloads the kernel offers, with a TAP that other programs do not see.

use std::io;
use std::os::fd::AsFd;
use std::thread;

use rxo_device::DeviceError;

use super::device::open_tun;
use super::offload::Attachment;
use super::{TapKind, offload};
use crate::{fault, sys};

/// The offloads that the kernel accepts besides partial checksums.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Offered {
    /// `true` if the kernel accepts TCP GSO frames.
    pub(crate) tcp: bool,
    /// `true` if the kernel accepts UDP GSO frames (since Linux 6.2).
    pub(crate) udp: bool,
    /// `true` if the kernel accepts GSO frames in tunnels over UDP (since Linux 6.17).
    pub(crate) tunnels: bool,
    /// The length of the header before each packet, in bytes.
    pub(crate) header_bytes: usize,
}

/// Creates a TAP, tests its offloads, and removes it. This happens in a temporary network namespace or,
/// without the privilege for one, in the current namespace.
///
/// # Errors
/// If `/dev/net/tun` or privilege is missing.
pub(crate) fn probe() -> Result<Offered, DeviceError> {
    thread::scope(|scope| {
        let probe = || {
            // In a namespace of its own, the TAP does not appear to programs that watch interfaces.
            _ = sys::own_network();
            probe_here()
        };
        let probed = thread::Builder::new().spawn_scoped(scope, probe);
        let probed = probed.map(|thread| {
            thread.join().unwrap_or_else(|_| Err(refused(io::ErrorKind::Other.into())))
        });
        probed.unwrap_or_else(|error| Err(refused(error)))
    })
}

fn probe_here() -> Result<Offered, DeviceError> {
    let file = open_tun("a TAP")?;
    // The kernel replaces `%d` by a number.
    offload::attach(file.as_fd(), TapKind::Tap, "rxo-probe%d", Attachment::Single)
        .map_err(refused)?;
    let offloads = offload::enable(file.as_fd(), TapKind::Tap).map_err(refused)?;
    Ok(Offered {
        tcp: offloads.tcp,
        udp: offloads.udp,
        tunnels: offloads.tunnels,
        header_bytes: offloads.header_bytes,
    })
}

fn refused(error: io::Error) -> DeviceError {
    fault::opening("a TAP", error)
}
