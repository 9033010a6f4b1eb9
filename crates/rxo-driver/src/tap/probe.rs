//! Finds what the kernel offers to a TAP, by one that nobody else sees.

use std::io;
use std::os::fd::AsFd;
use std::thread;

use rxo_device::DeviceError;

use super::device::open_tun;
use super::{TapKind, offload};
use crate::{fault, sys};

/// Offloads that the kernel accepts beside partial checksums.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Offered {
    /// GSO frames of TCP.
    pub(crate) tcp: bool,
    /// GSO frames of UDP, from Linux 6.2 on.
    pub(crate) udp: bool,
    /// GSO frames in tunnels over UDP, from Linux 6.17 on.
    pub(crate) tunnels: bool,
    /// The length of the header before each packet, in bytes.
    pub(crate) header_bytes: usize,
}

/// Makes a TAP, asks the kernel, and removes the TAP. All this happens in a network namespace that ends with it, or, without
/// the privilege for that, in this one.
///
/// # Errors
/// If `/dev/net/tun` or privilege is missing.
pub(crate) fn probe() -> Result<Offered, DeviceError> {
    thread::scope(|scope| {
        let probe = || {
            // Programs that follow interfaces then see none come and go.
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
    // The kernel puts a number for `%d`.
    offload::attach(file.as_fd(), TapKind::Tap, "rxo-probe%d").map_err(refused)?;
    let offloads = offload::enable(file.as_fd(), TapKind::Tap).map_err(refused)?;
    Ok(Offered {
        tcp: offloads.tcp,
        udp: offloads.udp,
        tunnels: offloads.tunnels,
        header_bytes: offloads.header_bytes(),
    })
}

fn refused(error: io::Error) -> DeviceError {
    fault::opening("a TAP", error)
}
