//! Converts a filled slot to a frame: its bytes, and the metadata from the kernel.
//!
//! Contract: afterwards the slot is lent with the frame, or returned to the kernel; a consumed frame is never
//! lent. Exceptions: if no buffer is free, or the socket has an error, the slot stays unchanged, and the caller
//! can retry.

use core::num::NonZeroU16;
use std::io;
use std::os::fd::BorrowedFd;

use rxo_device::Verdict;
use rxo_frame::{Frame, LinkKind, Pool, VlanTag};
use rxo_vnet::VNET_HEADER_BYTES;

use super::ring::Slot;
use crate::buffer::{DeviceBuf, GIANT_BUFFER_BYTES, LARGE_BUFFER_BYTES};
use crate::clock::StampScale;
use crate::gate;
use crate::sys;

/// The protocol of a VLAN tag to assume if the kernel reports none: 802.1Q.
const DOT1Q: NonZeroU16 = NonZeroU16::new(0x8100).expect("not zero");

/// The outcome of processing one slot.
pub(super) enum SlotOutcome {
    /// A frame, which is passed to the caller.
    Frame(Frame<DeviceBuf>),
    /// A frame of this many bytes was consumed in its slot.
    Consumed(usize),
    /// A frame that this host itself had sent was discarded.
    Own,
    /// A frame that the kernel truncated was discarded.
    CutShort,
    /// A frame that contradicts the kernel's description of it was discarded.
    Invalid,
    /// No buffer is free for a large frame; the slot is unchanged.
    NoBuffer,
    /// The socket returned an error; the slot is unchanged.
    Failed(io::Error),
}

/// The pools of buffers for frames that are too large for a slot.
#[derive(Debug)]
pub(super) struct Pools {
    large: Pool,
    giant: Pool,
}

impl Pools {
    /// Allocates `large` buffers of 64 KiB, and a few larger ones, for rare packets above 64 KiB.
    pub(super) fn new(large: usize) -> Self {
        Self {
            large: Pool::new(large, LARGE_BUFFER_BYTES),
            giant: Pool::new(GIANT_BUFFERS, GIANT_BUFFER_BYTES),
        }
    }

    fn for_bytes(&self, bytes: usize) -> &Pool {
        if bytes <= LARGE_BUFFER_BYTES { &self.large } else { &self.giant }
    }
}

const GIANT_BUFFERS: usize = 4;

/// Converts the slot to a frame, unless `look` consumes the frame in the slot. A frame too large for a slot
/// is first read from the socket's queue into a buffer of `pools`.
#[inline]
pub(super) fn take(
    slot: Slot<'_>,
    (socket, pools): (BorrowedFd<'_>, &Pools),
    scale: StampScale,
    look: &mut impl FnMut(Frame<&[u8]>) -> Verdict,
) -> SlotOutcome {
    if slot.packet_type() == libc::PACKET_OUTGOING {
        discard(slot, socket);
        return SlotOutcome::Own;
    }
    if !slot.is_whole() {
        return match take_large(slot, socket, pools, scale) {
            SlotOutcome::Frame(frame) if look(frame.borrowed()) == Verdict::Consumed => {
                SlotOutcome::Consumed(frame.bytes().len())
            }
            taken => taken,
        };
    }
    let Some(metadata) = FrameMetadata::of(&slot, scale).compared(slot.bytes()) else {
        slot.release();
        return SlotOutcome::Invalid;
    };
    if look(metadata.frame(slot.bytes())) == Verdict::Consumed {
        let bytes = slot.bytes().len();
        slot.release();
        return SlotOutcome::Consumed(bytes);
    }
    SlotOutcome::Frame(metadata.frame(DeviceBuf::slot(slot.into_buffer())))
}

/// The metadata of a frame, as the kernel describes it, without the frame's bytes.
struct FrameMetadata(Frame<()>);

impl FrameMetadata {
    #[inline]
    fn of(slot: &Slot<'_>, scale: StampScale) -> Self {
        let vnet = slot.vnet();
        Self(Frame {
            bytes: (),
            arrived_at: scale.arrival(slot.stamp_ns()),
            // `TP_STATUS_CSUM_VALID` is ignored: before b85f628aa158 the kernel set it also on frames
            // with unverified checksums.
            checksum: vnet.checksum(),
            gso: vnet.gso(),
            vlan: vlan(slot),
        })
    }

    /// Returns the description, corrected by the frame `bytes`; `None` if the frame contradicts it.
    #[inline]
    fn compared(self, bytes: &[u8]) -> Option<Self> {
        let (checksum, gso) =
            gate::compared(LinkKind::Ethernet, bytes, (self.0.checksum, self.0.gso))?;
        Some(Self(Frame { checksum, gso, ..self.0 }))
    }

    #[inline]
    fn frame<B>(&self, bytes: B) -> Frame<B> {
        self.0.with_bytes(bytes)
    }
}

#[inline]
fn vlan(slot: &Slot<'_>) -> Option<VlanTag> {
    if !slot.has_flag(libc::TP_STATUS_VLAN_VALID) {
        return None;
    }
    let (tpid, tci) = slot.vlan();
    Some(VlanTag { tpid: NonZeroU16::new(tpid).unwrap_or(DOT1Q), tci })
}

/// Reads a frame that is larger than a slot from the socket's queue. The kernel fills queue and ring under
/// one lock, so both have the same order.
#[cold]
fn take_large(
    slot: Slot<'_>,
    socket: BorrowedFd<'_>,
    pools: &Pools,
    scale: StampScale,
) -> SlotOutcome {
    if !slot.has_flag(libc::TP_STATUS_COPY) {
        discard(slot, socket);
        return SlotOutcome::CutShort;
    }
    let expected = slot.frame_bytes() as usize + VNET_HEADER_BYTES;
    let Some(mut buffer) = pools.for_bytes(expected).take() else { return SlotOutcome::NoBuffer };
    let metadata = FrameMetadata::of(&slot, scale);
    let read = match sys::receive(socket, &mut buffer) {
        Ok(read) => read,
        Err(error) if error.kind() == io::ErrorKind::WouldBlock => 0,
        Err(error) => return SlotOutcome::Failed(error),
    };
    slot.release();
    if read != expected || read > buffer.len() {
        return SlotOutcome::CutShort;
    }
    buffer.truncate(read);
    let bytes = DeviceBuf::pooled(buffer);
    metadata
        .compared(bytes.as_ref())
        .map_or(SlotOutcome::Invalid, |metadata| SlotOutcome::Frame(metadata.frame(bytes)))
}

/// Returns a slot to the kernel unused, and discards the queued copy of its frame, if there is one.
#[cold]
pub(super) fn discard(slot: Slot<'_>, socket: BorrowedFd<'_>) {
    if slot.has_flag(libc::TP_STATUS_COPY) {
        // Reading fewer bytes than the frame has discards the rest.
        let _forgotten = sys::receive(socket, &mut [0; VNET_HEADER_BYTES]);
    }
    slot.release();
}

#[cfg(test)]
mod tests {
    use std::os::fd::AsFd;
    use std::os::unix::net::UnixStream;

    use rxo_frame::{ChecksumStatus, Instant, Offload};
    use rxo_vnet::VnetHeader;

    use super::super::ring::RingMap;
    use super::*;

    /// Fills a slot with `status` and `checksum`, and converts it to a frame.
    fn taken(status: u32, checksum: ChecksumStatus) -> Frame<DeviceBuf> {
        let map = RingMap::anonymous(64, 1_600);
        let offload = Offload { checksum, ..Offload::default() };
        map.fill(0, status, VnetHeader::for_packet(offload, 0), &[0x5a; 100]);
        let (socket, _peer) = UnixStream::pair().unwrap();
        let pools = Pools::new(1);
        let slot = map.filled(0).unwrap();
        let scale = StampScale::take(Instant::ZERO);
        match take(slot, (socket.as_fd(), &pools), scale, &mut |_| Verdict::Fallback) {
            SlotOutcome::Frame(frame) => frame,
            _ => panic!("a whole frame is in the slot"),
        }
    }

    #[test]
    fn only_the_header_vouches_for_a_checksum() {
        let partial = ChecksumStatus::Partial { start: 34, offset: 16 };
        for metadata in [ChecksumStatus::Unknown, ChecksumStatus::Verified, partial] {
            for status in [0, libc::TP_STATUS_CSUM_VALID, libc::TP_STATUS_CSUMNOTREADY] {
                assert_eq!(taken(status, metadata).checksum, metadata, "status {status:#x}");
            }
        }
    }

    #[test]
    fn a_frame_that_is_detached_gives_its_slot_back_and_keeps_its_bytes() {
        let mut frame = taken(0, ChecksumStatus::Verified);
        for (capacity, detached) in [(109, false), (110, true)] {
            let pool = Pool::new(1, capacity);
            frame.bytes.detach_into(pool.take().unwrap());
            assert_eq!(frame.bytes(), [0x5a; 100]);
            assert_eq!(pool.available() == 0, detached, "{capacity} bytes");
        }
    }
}
