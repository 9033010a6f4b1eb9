//! Opens `/dev/net/tun` and attaches the file descriptor to a TAP or a TUN.

use std::fs::{File, OpenOptions};
use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::fs::OpenOptionsExt;

use super::check;

/// Creates the TAP `name` in the calling thread's network namespace. A `virtio_net_hdr` of ten bytes precedes
/// each frame. Reads do not wait. If `is_polled` is `true`, the kernel receives written frames by polls (NAPI),
/// so that it coalesces them.
pub(crate) fn open_tap(name: &str, is_polled: bool) -> io::Result<File> {
    attach(name, libc::IFF_TAP | if is_polled { libc::IFF_NAPI } else { 0 })
}

/// Creates the TUN `name` in the calling thread's network namespace. A `virtio_net_hdr` of ten bytes precedes
/// each packet. Reads do not wait. The reader must complete checksums. If `sends_large` is `true`, the reader
/// must also segment TCP.
pub fn open_tun(name: &str, sends_large: bool) -> io::Result<File> {
    let file = attach(name, libc::IFF_TUN)?;
    let large = if sends_large { libc::TUN_F_TSO4 | libc::TUN_F_TSO6 } else { 0 };
    let offloads = libc::TUN_F_CSUM | large;
    // SAFETY: this request takes its argument as a number.
    check(unsafe {
        libc::ioctl(
            file.as_raw_fd(),
            libc::TUNSETOFFLOAD as libc::Ioctl,
            libc::c_ulong::from(offloads),
        )
    })?;
    Ok(file)
}

fn attach(name: &str, flags: libc::c_int) -> io::Result<File> {
    let mut options = OpenOptions::new();
    options.read(true).write(true).custom_flags(libc::O_NONBLOCK);
    let file = options.open("/dev/net/tun")?;
    // SAFETY: ifreq consists of bytes and integers, for which all zeros is valid.
    let mut request: libc::ifreq = unsafe { std::mem::zeroed() };
    if name.len() >= request.ifr_name.len() {
        return Err(io::ErrorKind::InvalidInput.into());
    }
    for (to, from) in request.ifr_name.iter_mut().zip(name.bytes()) {
        *to = from.cast_signed() as libc::c_char;
    }
    let flags = flags | libc::IFF_NO_PI | libc::IFF_VNET_HDR;
    request.ifr_ifru.ifru_flags = flags as libc::c_short;
    // SAFETY: this request reads and writes one ifreq, which lives through the call.
    check(unsafe {
        libc::ioctl(file.as_raw_fd(), libc::TUNSETIFF as libc::Ioctl, &raw mut request)
    })?;
    Ok(file)
}
