//! The C interface to `virtio_net_hdr`: reads and writes the header.

use std::ffi::c_int;
use std::num::NonZeroU16;

use rxo_frame::{ChecksumStatus, Gso, GsoKind, Offload};
use rxo_vnet::{VIRTIO_HEADER_BYTES, VNET_HEADER_BYTES, VnetHeader};
use rxo_wire::checksum::{Summer, complete};

use crate::border::{Failure, RXO_OK, bytes, guarded, object};
use crate::engine::{RXO_CHECKSUM_PARTIAL, RXO_CHECKSUM_UNKNOWN, RXO_CHECKSUM_VERIFIED};

/// The packet is not a GSO frame.
pub const RXO_GSO_NONE: u8 = 0;
/// The packet is a TCP GSO frame over IPv4.
pub const RXO_GSO_TCP4: u8 = 1;
/// The packet is a TCP GSO frame over IPv6.
pub const RXO_GSO_TCP6: u8 = 4;
/// The packet is a GSO frame of UDP datagrams of equal size.
pub const RXO_GSO_UDP: u8 = 5;

/// The content of a virtio header.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
pub struct RxoVnet {
    /// One of the RXO_CHECKSUM constants.
    pub checksum: u8,
    /// One of the RXO_GSO constants.
    pub gso: u8,
    /// The start of the bytes that a partial checksum covers, as an offset in the packet.
    pub checksum_start: u16,
    /// The offset at which the checksum is written, from `checksum_start`.
    pub checksum_offset: u16,
    /// The payload length of each segment in bytes; 0 if the packet is not a GSO frame.
    pub gso_size: u16,
    /// Length of all headers in bytes; 0 if unknown. Used only by `rxo_vnet_write`; never trusted on input.
    pub header_bytes: u16,
}

/// Reads a virtio header of `len` bytes, 10 or more. RXO_INVALID if it is shorter, or describes a GSO frame
/// of an unknown kind or without a segment size.
///
/// # Safety
/// `len` bytes can be read at `header`; `to` can be written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rxo_vnet_read(header: *const u8, len: usize, to: *mut RxoVnet) -> c_int {
    let read = guarded(|| {
        // SAFETY: the caller's promises.
        let (header, to) = unsafe { (bytes(header, len)?, object(to)?) };
        *to = read(header)?;
        Ok(())
    });
    read.err().unwrap_or(RXO_OK)
}

/// Writes the virtio header for `vnet`, with 10 bytes (TUN, TAP) or 12 (vhost, one buffer).
///
/// # Safety
/// `vnet` can be read; `len` bytes can be written at `header`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rxo_vnet_write(
    vnet: *const RxoVnet,
    header: *mut u8,
    len: usize,
) -> c_int {
    let written = guarded(|| {
        // SAFETY: the caller's promise.
        let vnet = unsafe { object(vnet.cast_mut()) }?;
        if header.is_null() || !matches!(len, VNET_HEADER_BYTES | VIRTIO_HEADER_BYTES) {
            return Err(Failure::invalid(format!("a virtio header of {len} bytes: 10 or 12")));
        }
        let bytes = VnetHeader::for_packet(offload(vnet)?, 0).to_virtio_bytes(1);
        // SAFETY: `len` bytes can be written there, and so many are there to be read.
        unsafe { std::ptr::copy_nonoverlapping(bytes.as_ptr(), header, len) };
        Ok(())
    });
    written.err().unwrap_or(RXO_OK)
}

/// Completes a partial checksum in place; does nothing if it is not partial. `len` excludes padding.
///
/// # Safety
/// `vnet` can be read; `len` bytes can be read and written at `packet`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rxo_vnet_complete(
    vnet: *const RxoVnet,
    packet: *mut u8,
    len: usize,
) -> c_int {
    let completed = guarded(|| {
        // SAFETY: the caller's promises.
        let (vnet, packet) = unsafe { (object(vnet.cast_mut())?, bytes(packet, len)?) };
        finished(checksum(vnet)?, packet)
    });
    match completed {
        Ok(Some((at, sum))) => {
            // SAFETY: `finished` returns an offset inside the packet.
            unsafe { packet.add(at).cast::<[u8; 2]>().write(sum.to_be_bytes()) };
            RXO_OK
        }
        Ok(None) => RXO_OK,
        Err(code) => code,
    }
}

/// Returns the virtio header at the start of `bytes`; an error if there are fewer than 10 bytes.
pub(crate) fn header(bytes: &[u8]) -> Result<VnetHeader, Failure> {
    VnetHeader::read(bytes).ok_or_else(|| Failure::invalid("a virtio header has at least 10 bytes"))
}

/// Returns a virtio header in the form for C; an error if it describes an unsupported GSO frame.
fn read(header: &[u8]) -> Result<RxoVnet, Failure> {
    let header = self::header(header)?;
    let mut vnet = RxoVnet::default();
    match header.checksum() {
        ChecksumStatus::Unknown => {}
        ChecksumStatus::Verified => vnet.checksum = RXO_CHECKSUM_VERIFIED,
        ChecksumStatus::Partial { start, offset } => {
            vnet.checksum = RXO_CHECKSUM_PARTIAL;
            (vnet.checksum_start, vnet.checksum_offset) = (start, offset);
        }
    }
    if let Some(gso) = header.gso() {
        vnet.gso_size = gso.size.get();
        vnet.gso = match gso.kind {
            GsoKind::TcpV4 => RXO_GSO_TCP4,
            GsoKind::TcpV6 => RXO_GSO_TCP6,
            GsoKind::Udp => RXO_GSO_UDP,
            GsoKind::UdpFragment | GsoKind::AckTemplate => {
                return Err(Failure::invalid("this kind of GSO is not for programs in C"));
            }
        };
    } else if header.has_gso() {
        return Err(Failure::invalid("the kind of GSO is unknown, or its segment size is 0"));
    }
    Ok(vnet)
}

/// Returns the offset and the completed value of a partial checksum; `None` if the checksum is not partial.
pub(crate) fn finished(
    checksum: ChecksumStatus,
    packet: &[u8],
) -> Result<Option<(usize, u16)>, Failure> {
    let ChecksumStatus::Partial { start, offset } = checksum else { return Ok(None) };
    let (start, offset) = (start.into(), offset.into());
    let sum = complete(packet, start, offset, Summer::detect());
    let sum = sum.ok_or_else(|| Failure::invalid("the checksum is not inside the packet"))?;
    Ok(Some((start + offset, sum)))
}

fn checksum(vnet: &RxoVnet) -> Result<ChecksumStatus, Failure> {
    let (start, offset) = (vnet.checksum_start, vnet.checksum_offset);
    Ok(match vnet.checksum {
        RXO_CHECKSUM_UNKNOWN => ChecksumStatus::Unknown,
        RXO_CHECKSUM_VERIFIED => ChecksumStatus::Verified,
        RXO_CHECKSUM_PARTIAL => ChecksumStatus::Partial { start, offset },
        other => return Err(Failure::invalid(format!("there is no checksum status {other}"))),
    })
}

fn offload(vnet: &RxoVnet) -> Result<Offload, Failure> {
    let checksum = checksum(vnet)?;
    let kind = match vnet.gso {
        RXO_GSO_NONE => None,
        RXO_GSO_TCP4 => Some(GsoKind::TcpV4),
        RXO_GSO_TCP6 => Some(GsoKind::TcpV6),
        RXO_GSO_UDP => Some(GsoKind::Udp),
        other => return Err(Failure::invalid(format!("there is no kind of GSO {other}"))),
    };
    let gso = kind
        .map(|kind| {
            let size = NonZeroU16::new(vnet.gso_size);
            let size = size.ok_or_else(|| Failure::invalid("gso_size is 0"))?;
            Ok(Gso::new(kind, size))
        })
        .transpose()?;
    Ok(Offload { checksum, gso, header_bytes: vnet.header_bytes })
}
