//! Offloads and other ioctls of `/dev/net/tun`.
#![allow(unsafe_code, reason = "tun ioctls take pointers or numbers")]

use std::io;
use std::os::fd::{AsRawFd as _, BorrowedFd};

use libc::{c_int, c_uint, c_ulong};
use rxo_vnet::{TUNNEL_HEADER_BYTES, VNET_HEADER_BYTES};

use super::TapKind;
use crate::sys;

/// The sets of offloads for both directions, tried in this order until the kernel accepts one: checksums and
/// TCP GSO; UDP GSO since Linux 6.2; tunnels over UDP since 6.17.
const OFFLOADS: [Offloads; 4] = {
    let header_bytes = TUNNEL_HEADER_BYTES;
    let all = Offloads { header_bytes, tcp: true, ecn: true, udp: true, tunnels: true };
    let without_tunnels = Offloads { header_bytes: VNET_HEADER_BYTES, tunnels: false, ..all };
    let without_udp = Offloads { udp: false, ..without_tunnels };
    [all, without_tunnels, without_udp, Offloads { tcp: false, ecn: false, ..without_udp }]
};

/// The offloads that the kernel accepts besides partial checksums.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Offloads {
    /// The length of the header before every packet, in bytes; 0 if there is no header, and therefore no
    /// offload.
    pub(super) header_bytes: usize,
    /// `true` if the kernel accepts TCP GSO frames.
    pub(super) tcp: bool,
    ecn: bool,
    /// `true` if the kernel accepts UDP GSO frames.
    pub(super) udp: bool,
    /// `true` if the kernel accepts GSO frames in tunnels over UDP.
    pub(super) tunnels: bool,
}

/// Flags of `linux/if_tun.h` that `libc` does not define yet.
const TUN_F_UDP_TUNNEL_GSO: c_uint = 0x80;
const TUN_F_UDP_TUNNEL_GSO_CSUM: c_uint = 0x100;

impl Offloads {
    /// Returns the offloads that can be used for writing, for packets after a header of `header_bytes` bytes.
    /// The kernel accepts such GSO frames from a writer even if the offloads were not enabled for the reader.
    pub(super) const fn written(header_bytes: usize) -> Self {
        let has = header_bytes > 0;
        Self { header_bytes, tcp: has, ecn: has, udp: has, tunnels: false }
    }

    const fn flags(self) -> c_uint {
        let tcp = if self.tcp { libc::TUN_F_TSO4 | libc::TUN_F_TSO6 } else { 0 };
        let ecn = if self.ecn { libc::TUN_F_TSO_ECN } else { 0 };
        let udp = if self.udp { libc::TUN_F_USO4 | libc::TUN_F_USO6 } else { 0 };
        let tunnels =
            if self.tunnels { TUN_F_UDP_TUNNEL_GSO | TUN_F_UDP_TUNNEL_GSO_CSUM } else { 0 };
        libc::TUN_F_CSUM | tcp | ecn | udp | tunnels
    }
}

/// The kind of queue as which a descriptor is attached to an interface.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Attachment {
    /// The only queue of the interface. The kernel refuses an interface that has a queue already.
    Single,
    /// The first of several queues.
    First {
        /// `true` if the interface existed before.
        existed: bool,
    },
    /// A further queue of an interface that already has its first queue.
    Further,
}

/// Creates the interface `name` or takes it over, with a `virtio_net_hdr` before every packet.
pub(super) fn attach(
    tun: BorrowedFd<'_>,
    kind: TapKind,
    name: &str,
    attachment: Attachment,
) -> io::Result<()> {
    let mut request =
        sys::interface_request(name).ok_or_else(|| io::Error::from_raw_os_error(libc::EINVAL))?;
    let carries = match kind {
        TapKind::Tap => libc::IFF_TAP,
        TapKind::Tun => libc::IFF_TUN,
    };
    let queues = match attachment {
        Attachment::Single => 0,
        // Another process may have made it meanwhile.
        Attachment::First { existed: false } => libc::IFF_MULTI_QUEUE | libc::IFF_TUN_EXCL,
        Attachment::First { existed: true } | Attachment::Further => libc::IFF_MULTI_QUEUE,
    };
    request.ifr_ifru.ifru_flags = (carries | libc::IFF_NO_PI | libc::IFF_VNET_HDR | queues) as _;
    // SAFETY: this request takes an `ifreq`.
    unsafe { sys::ioctl(tun, libc::TUNSETIFF as c_ulong, &mut request) }?;
    Ok(())
}

/// Sets the program that chooses the queue of each packet; `None` leaves the choice to the kernel.
pub(super) fn steer(tun: BorrowedFd<'_>, program: Option<BorrowedFd<'_>>) -> io::Result<()> {
    let mut program: c_int = program.map_or(-1, |program| program.as_raw_fd());
    // SAFETY: this request reads an `int`.
    unsafe { sys::ioctl(tun, libc::TUNSETSTEERINGEBPF as c_ulong, &mut program) }?;
    Ok(())
}

/// Returns the length of the header before every packet, in bytes.
pub(super) fn header_bytes(tun: BorrowedFd<'_>) -> io::Result<c_int> {
    let mut bytes: c_int = 0;
    // SAFETY: this request writes an `int`.
    unsafe { sys::ioctl(tun, libc::TUNGETVNETHDRSZ as c_ulong, &mut bytes) }?;
    Ok(bytes)
}

/// Sets the length of the header before every packet, in bytes.
pub(super) fn set_header_bytes(tun: BorrowedFd<'_>, mut bytes: c_int) -> io::Result<()> {
    // SAFETY: this request reads an `int`.
    unsafe { sys::ioctl(tun, libc::TUNSETVNETHDRSZ as c_ulong, &mut bytes) }?;
    Ok(())
}

/// Sets the interface's carrier. While it is off, the host sends nothing to the interface.
pub(super) fn set_carrier(tun: BorrowedFd<'_>, is_on: bool) -> io::Result<()> {
    let mut is_on = c_int::from(is_on);
    // SAFETY: this request reads an `int`.
    unsafe { sys::ioctl(tun, libc::TUNSETCARRIER as c_ulong, &mut is_on) }?;
    Ok(())
}

/// Enables as many offloads as the kernel supports, sets the header length that they need, and returns them.
/// A TUN gets no tunnel offload, because the kernel checks tunnel offsets as if there were an Ethernet
/// header.
pub(super) fn enable(tun: BorrowedFd<'_>, kind: TapKind) -> io::Result<Offloads> {
    let mut result = Ok(Offloads::default());
    for offloads in OFFLOADS.into_iter().filter(|it| !it.tunnels || kind == TapKind::Tap) {
        set_header_bytes(tun, offloads.header_bytes as c_int)?;
        result = set_offloads(tun, offloads.flags()).map(|()| offloads);
        if result.is_ok() {
            break;
        }
    }
    result
}

/// Returns the offloads that another process has enabled. The offloads and the length of the header stay as
/// that process has set them.
pub(super) fn accepted(tun: BorrowedFd<'_>, kind: TapKind) -> io::Result<Offloads> {
    let bytes = header_bytes(tun)?;
    let fits =
        |it: &Offloads| it.header_bytes as c_int == bytes && (!it.tunnels || kind == TapKind::Tap);
    // The kernel does not report the enabled offloads. It refuses a set that it does not support, and then
    // changes nothing.
    let mut sets = OFFLOADS.into_iter().filter(fits);
    sets.find(|it| set_offloads(tun, it.flags()).is_ok())
        .ok_or_else(|| io::ErrorKind::Unsupported.into())
}

/// The settings with which a descriptor was attached to an interface.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Attached {
    pub(super) name: String,
    pub(super) kind: TapKind,
    /// `true` if a `virtio_net_hdr` precedes every packet (`IFF_VNET_HDR`).
    pub(super) has_header: bool,
}

/// Returns the settings with which `tun` was attached.
///
/// # Errors
/// If `tun` is no TAP or TUN (`ENOTTY`, or another error), or not attached yet (`EBADFD`).
pub(super) fn attached(tun: BorrowedFd<'_>) -> io::Result<Attached> {
    let mut request = <libc::ifreq as sys::Plain>::zeroed();
    // SAFETY: this request writes an `ifreq`.
    unsafe { sys::ioctl(tun, libc::TUNGETIFF as c_ulong, &mut request) }?;
    let bytes = request.ifr_name.iter().take_while(|&&c| c != 0).map(|&c| c as u8);
    let name = String::from_utf8(bytes.collect()).map_err(io::Error::other)?;
    // SAFETY: the kernel has filled in this member.
    let flags = c_int::from(unsafe { request.ifr_ifru.ifru_flags });
    let kind = if flags & libc::IFF_TAP == 0 { TapKind::Tun } else { TapKind::Tap };
    Ok(Attached { name, kind, has_header: flags & libc::IFF_VNET_HDR != 0 })
}

/// Enables as many offloads as the kernel supports with the header that the descriptor has, and returns them.
pub(super) fn enable_behind(
    tun: BorrowedFd<'_>,
    kind: TapKind,
    header_bytes: usize,
) -> io::Result<Offloads> {
    let fits = |it: &Offloads| {
        !it.tunnels || (kind == TapKind::Tap && header_bytes >= TUNNEL_HEADER_BYTES)
    };
    let mut result = Ok(Offloads::default());
    for offloads in OFFLOADS.into_iter().filter(fits) {
        result =
            set_offloads(tun, offloads.flags()).map(|()| Offloads { header_bytes, ..offloads });
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
