//! From a filled slot to a frame: which frames are ours, what the kernel said of them, and where
//! the bytes are.
//!
//! Contract: whatever comes of a slot, it is afterwards either lent with the frame or given back,
//! except when there was no buffer: then it stays as it is and is asked for again.
#![allow(unsafe_code, reason = "hands over memory shared with the kernel")]

use core::num::NonZeroU16;
use std::io;
use std::os::fd::{AsRawFd, BorrowedFd};
use std::rc::Rc;

use rxo_frame::{ChecksumStatus, Frame, VlanTag};

use super::buffer::{Home, PacketBuf};
use super::ring::Slot;
use crate::arena::BUFFER_BYTES;
use crate::clock::StampScale;
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

/// Takes the frame out of a slot.
#[inline]
pub(super) fn take(
    home: &Rc<Home>,
    socket: BorrowedFd<'_>,
    slot: Slot<'_>,
    scale: StampScale,
) -> Taken {
    if slot.packet_type() == libc::PACKET_OUTGOING {
        return discard(home, socket, &slot, Taken::Own);
    }
    if !slot.is_whole() {
        return take_large(home, socket, &slot, scale);
    }
    let number = slot.number();
    home.ring.lend(number);
    // SAFETY: the frame lies whole in its slot (`is_whole`), which has just been marked.
    let bytes =
        unsafe { PacketBuf::slot(Rc::clone(home), number, slot.bytes(), slot.frame_bytes()) };
    Taken::Frame(describe(&slot, scale, bytes))
}

/// Everything the kernel said of the frame, with its bytes.
#[inline]
fn describe(slot: &Slot<'_>, scale: StampScale, bytes: PacketBuf) -> Frame<PacketBuf> {
    let vnet = slot.vnet();
    Frame {
        bytes,
        arrived_at: scale.arrival(slot.stamp_ns()),
        checksum: checksum(slot, vnet),
        gso: vnet.gso(),
        vlan: vlan(slot),
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
fn take_large(
    home: &Rc<Home>,
    socket: BorrowedFd<'_>,
    slot: &Slot<'_>,
    scale: StampScale,
) -> Taken {
    if !slot.says(libc::TP_STATUS_COPY) {
        return discard(home, socket, slot, Taken::CutShort);
    }
    let Some(buffer) = home.arena.take() else { return Taken::NoBuffer };
    let start = home.arena.start(buffer);
    // SAFETY: a buffer of the arena has this many bytes, and it is ours.
    let read = unsafe { read_queued(socket, start.as_ptr(), BUFFER_BYTES) };
    let expected = slot.frame_bytes() as usize + VNET_HEADER_BYTES;
    let taken = match read {
        Ok(read) if read == expected && read <= BUFFER_BYTES => {
            // SAFETY: the frame follows the header in the buffer just filled.
            let bytes = unsafe {
                let bytes = start.add(VNET_HEADER_BYTES);
                PacketBuf::copied(Rc::clone(home), buffer, bytes, slot.frame_bytes())
            };
            Taken::Frame(describe(slot, scale, bytes))
        }
        Ok(_) => Taken::CutShort,
        Err(error) if error.kind() == io::ErrorKind::WouldBlock => Taken::CutShort,
        Err(error) => Taken::Lost(error),
    };
    if !matches!(taken, Taken::Frame(_)) {
        home.arena.give_back(buffer);
    }
    home.ring.give_back(slot.number());
    taken
}

/// Gives a slot back unused, and with it the frame queued for it, if one was.
#[cold]
fn discard(home: &Rc<Home>, socket: BorrowedFd<'_>, slot: &Slot<'_>, why: Taken) -> Taken {
    if slot.says(libc::TP_STATUS_COPY) {
        let mut header = [0; VNET_HEADER_BYTES];
        // SAFETY: the room is as said. The rest of the frame is cut off and forgotten.
        let _forgotten = unsafe { read_queued(socket, header.as_mut_ptr(), header.len()) };
    }
    home.ring.give_back(slot.number());
    why
}

/// Reads one frame, its header first; returns the length it would have had with room enough.
///
/// # Safety
/// `bytes` bytes from `target` must be writable.
unsafe fn read_queued(socket: BorrowedFd<'_>, target: *mut u8, bytes: usize) -> io::Result<usize> {
    let flags = libc::MSG_DONTWAIT | libc::MSG_TRUNC;
    // SAFETY: the caller promises the room.
    let read = unsafe { libc::recv(socket.as_raw_fd(), target.cast(), bytes, flags) };
    usize::try_from(read).map_err(|_| io::Error::last_os_error())
}
