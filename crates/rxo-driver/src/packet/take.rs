//! From a filled slot to a frame: which frames are ours, what the kernel said of them, and where
//! the bytes are.
//!
//! Contract: whatever comes of a slot, it is afterwards either lent with the frame or given back,
//! except when there was no buffer: then it stays as it is and is asked for again.

use core::num::NonZeroU16;
use std::io;
use std::os::fd::BorrowedFd;

use rxo_frame::{ChecksumStatus, Frame, Pool, VlanTag};

use super::buffer::PacketBuf;
use super::ring::Slot;
use crate::clock::StampScale;
use crate::sys;
use crate::vnet::{VNET_HEADER_BYTES, VnetHeader};

/// The tag protocol of a tag whose protocol the kernel did not say.
const DOT1Q: NonZeroU16 = NonZeroU16::new(0x8100).expect("not zero");

/// What came of a slot.
pub(super) enum Taken {
    /// A frame.
    Frame(Frame<PacketBuf>),
    /// A frame that this host sent: not for us.
    Own,
    /// A frame that the kernel could not keep whole.
    CutShort,
    /// A large frame, and no buffer to read it into.
    NoBuffer,
    /// The socket failed.
    Lost(io::Error),
}

/// Takes the frame out of a slot; one too large for it, out of the socket's queue into a buffer
/// of `pool`.
#[inline]
pub(super) fn take(
    slot: Slot<'_>,
    socket: BorrowedFd<'_>,
    pool: &Pool,
    scale: StampScale,
) -> Taken {
    if slot.packet_type() == libc::PACKET_OUTGOING {
        return discard(slot, socket, Taken::Own);
    }
    if !slot.is_whole() {
        return take_large(slot, socket, pool, scale);
    }
    let said = Said::of(&slot, scale);
    Taken::Frame(said.frame(PacketBuf::slot(slot.lend())))
}

/// Everything the kernel said of a frame but its bytes.
struct Said(Frame<()>);

impl Said {
    #[inline]
    fn of(slot: &Slot<'_>, scale: StampScale) -> Self {
        let vnet = slot.vnet();
        Self(Frame {
            bytes: (),
            arrived_at: scale.arrival(slot.stamp_ns()),
            checksum: checksum(slot, vnet),
            gso: vnet.gso(),
            vlan: vlan(slot),
        })
    }

    #[inline]
    fn frame(self, bytes: PacketBuf) -> Frame<PacketBuf> {
        let Frame { arrived_at, checksum, gso, vlan, .. } = self.0;
        Frame { bytes, arrived_at, checksum, gso, vlan }
    }
}

/// The header says most; a device's verdict on a frame off the wire stands only in the status.
#[inline]
fn checksum(slot: &Slot<'_>, vnet: VnetHeader) -> ChecksumStatus {
    match vnet.checksum() {
        ChecksumStatus::Unknown if slot.says(libc::TP_STATUS_CSUM_VALID) => {
            ChecksumStatus::Verified
        }
        said => said,
    }
}

#[inline]
fn vlan(slot: &Slot<'_>) -> Option<VlanTag> {
    if !slot.says(libc::TP_STATUS_VLAN_VALID) {
        return None;
    }
    let (tpid, tci) = slot.vlan();
    Some(VlanTag { tpid: NonZeroU16::new(tpid).unwrap_or(DOT1Q), tci })
}

/// Reads a frame that is larger than a slot from the socket's queue, where the kernel has put it
/// under the same lock as the slot, so that both are in the same order.
#[cold]
fn take_large(slot: Slot<'_>, socket: BorrowedFd<'_>, pool: &Pool, scale: StampScale) -> Taken {
    if !slot.says(libc::TP_STATUS_COPY) {
        return discard(slot, socket, Taken::CutShort);
    }
    let Some(mut buffer) = pool.take() else { return Taken::NoBuffer };
    let expected = slot.frame_bytes() as usize + VNET_HEADER_BYTES;
    let said = Said::of(&slot, scale);
    let read = sys::receive(socket, &mut buffer);
    slot.give_back();
    match read {
        Ok(read) if read == expected && read <= buffer.len() => {
            buffer.truncate(read);
            Taken::Frame(said.frame(PacketBuf::copied(buffer)))
        }
        Ok(_) => Taken::CutShort,
        Err(error) if error.kind() == io::ErrorKind::WouldBlock => Taken::CutShort,
        Err(error) => Taken::Lost(error),
    }
}

/// Gives a slot back unused, and with it the frame queued for it, if one was.
#[cold]
fn discard(slot: Slot<'_>, socket: BorrowedFd<'_>, why: Taken) -> Taken {
    if slot.says(libc::TP_STATUS_COPY) {
        // The rest of it is cut off and forgotten.
        let _forgotten = sys::receive(socket, &mut [0; VNET_HEADER_BYTES]);
    }
    slot.give_back();
    why
}
