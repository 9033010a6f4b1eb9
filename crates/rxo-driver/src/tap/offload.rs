//! The ioctls of `/dev/net/tun`.
#![allow(unsafe_code, reason = "tun ioctls take pointers or numbers")]

use std::io;
use std::os::fd::BorrowedFd;

use libc::{c_int, c_uint, c_ulong};
use rxo_vnet::VNET_HEADER_BYTES;

use super::TapKind;
use crate::sys;

/// The offloads that the stack may use towards us: checksums, TCP GSO, and UDP GSO if the kernel knows
/// it. The sets are tried in order until the kernel accepts one.
const OFFLOADS: [c_uint; 3] = {
    let tcp = libc::TUN_F_CSUM | libc::TUN_F_TSO4 | libc::TUN_F_TSO6;
    [
        tcp | libc::TUN_F_TSO_ECN | libc::TUN_F_USO4 | libc::TUN_F_USO6,
        tcp | libc::TUN_F_TSO_ECN,
        libc::TUN_F_CSUM,
    ]
};

/// Makes the interface `name` or takes it over, with a `virtio_net_hdr` before every packet.
pub(super) fn attach(tun: BorrowedFd<'_>, kind: TapKind, name: &str) -> io::Result<()> {
    let mut request =
        sys::interface_request(name).ok_or_else(|| io::Error::from_raw_os_error(libc::EINVAL))?;
    let carries = match kind {
        TapKind::Tap => libc::IFF_TAP,
        TapKind::Tun => libc::IFF_TUN,
    };
    request.ifr_ifru.ifru_flags = (carries | libc::IFF_NO_PI | libc::IFF_VNET_HDR) as _;
    // SAFETY: this request takes an `ifreq`.
    unsafe { sys::ioctl(tun, libc::TUNSETIFF as c_ulong, &mut request) }?;
    Ok(())
}

/// The length of the header before every packet, in bytes.
pub(super) fn header_bytes(tun: BorrowedFd<'_>) -> io::Result<c_int> {
    let mut bytes: c_int = 0;
    // SAFETY: this request writes an `int`.
    unsafe { sys::ioctl(tun, libc::TUNGETVNETHDRSZ as c_ulong, &mut bytes) }?;
    Ok(bytes)
}

/// Sets that length.
pub(super) fn set_header_bytes(tun: BorrowedFd<'_>, mut bytes: c_int) -> io::Result<()> {
    // SAFETY: this request reads an `int`.
    unsafe { sys::ioctl(tun, libc::TUNSETVNETHDRSZ as c_ulong, &mut bytes) }?;
    Ok(())
}

/// Sets the length of the header, and enables as many offloads as the kernel knows. Returns whether UDP GSO is
/// among them: a kernel that knows it accepts such frames from us as well (Linux 6.2 and later).
pub(super) fn enable(tun: BorrowedFd<'_>) -> io::Result<bool> {
    set_header_bytes(tun, VNET_HEADER_BYTES as c_int)?;
    let mut result = Ok(false);
    for offloads in OFFLOADS {
        result = set_offloads(tun, offloads).map(|()| offloads & libc::TUN_F_USO4 != 0);
        if result.is_ok() {
            break;
        }
    }
    result
}

/// Disables all offloads, as on a new interface.
pub(super) fn disable(tun: BorrowedFd<'_>) -> io::Result<()> {
    set_offloads(tun, 0)
}

fn set_offloads(tun: BorrowedFd<'_>, offloads: c_uint) -> io::Result<()> {
    // SAFETY: this request takes its argument as a number.
    unsafe { sys::ioctl_number(tun, libc::TUNSETOFFLOAD as c_ulong, c_ulong::from(offloads)) }?;
    Ok(())
}
