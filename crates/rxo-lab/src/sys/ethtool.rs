//! Reads and sets an interface's offloads with the ethtool ioctl.

use std::io;
use std::os::fd::AsRawFd;

use super::check;

/// The argument of the ioctl for all on-off settings (`struct ethtool_value`).
#[repr(C)]
struct EthtoolValue {
    command: u32,
    data: u32,
}

/// Runs the command `set` (ETHTOOL_S...) with 1 or 0 on the interface `name`, in the network
/// namespace that `socket` belongs to.
pub(crate) fn set_offload(socket: &impl AsRawFd, name: &str, set: u32, on: bool) -> io::Result<()> {
    call(socket, name, EthtoolValue { command: set, data: u32::from(on) }).map(|_| ())
}

/// Runs the command `get` (ETHTOOL_G...) and says whether the setting is on.
pub(crate) fn get_offload(socket: &impl AsRawFd, name: &str, get: u32) -> io::Result<bool> {
    call(socket, name, EthtoolValue { command: get, data: 0 }).map(|value| value.data != 0)
}

fn call(socket: &impl AsRawFd, name: &str, mut value: EthtoolValue) -> io::Result<EthtoolValue> {
    // SAFETY: ifreq consists of bytes and integers, for which all zeros is valid.
    let mut request: libc::ifreq = unsafe { std::mem::zeroed() };
    if name.len() >= request.ifr_name.len() {
        return Err(io::ErrorKind::InvalidInput.into());
    }
    for (to, from) in request.ifr_name.iter_mut().zip(name.bytes()) {
        *to = from.cast_signed() as libc::c_char;
    }
    request.ifr_ifru.ifru_data = (&raw mut value).cast();
    // SAFETY: the request is complete and names `value`, the two words that on-off commands read
    // and write; both live through the call.
    check(unsafe { libc::ioctl(socket.as_raw_fd(), SIOCETHTOOL, &raw mut request) })?;
    Ok(value)
}

const SIOCETHTOOL: libc::Ioctl = 0x8946;
