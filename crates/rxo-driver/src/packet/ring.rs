//! Ring: memory shared with the kernel (`TPACKET_V2`). The kernel fills its slots, and this process lends
//! them to the owners of frames.
//!
//! A slot belongs to the kernel, to this process, or to the owner of its buffer. The kernel writes only into
//! slots whose status is zero, in ring order. A lent slot has a status that only rxo uses ([`LENT`]). So the
//! kernel does not treat the slot as free, and the source does not treat it as new in the next lap. Slots may be
//! returned in any order.
//!
//! Contract: a [`Slot`] contains the data that the kernel wrote before it set the status (acquire). A slot is
//! returned after the last read (release). The mapping lives until the last buffer is dropped.
#![allow(unsafe_code, reason = "memory shared with the kernel")]

use std::io;
use std::mem::{offset_of, size_of};
use std::os::fd::{AsRawFd, BorrowedFd};
use std::ptr::NonNull;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use libc::{sockaddr_ll, tpacket_req, tpacket2_hdr};
use rxo_vnet::{VNET_HEADER_BYTES, VnetHeader};

use crate::sys;

/// The status of a lent slot: not zero, which would return it to the kernel, and without the bit for a new
/// frame.
const LENT: u32 = libc::TP_STATUS_COPY;

/// The distance of prefetches from the slot that is read, in slots; much less than the number of slots in the
/// smallest ring.
const PREFETCH_DISTANCE: u32 = 6;

/// The space in a slot before the IP header, with two VLAN tags, in bytes.
const SLOT_OVERHEAD_BYTES: u32 = 96;

/// The mapped memory of a ring. It is unmapped when the last owner drops it.
#[derive(Debug)]
pub(crate) struct RingMap {
    memory: NonNull<u8>,
    slots: u32,
    slot_bytes: u32,
}

impl RingMap {
    /// Gives `socket` a ring of at least `slots` slots, each large enough for a packet of `mtu` bytes, and
    /// maps it.
    pub(crate) fn new(socket: BorrowedFd<'_>, slots: u32, mtu: u32) -> io::Result<Self> {
        let request = request(slots, slot_bytes(mtu), sys::page_bytes());
        sys::set_option(socket, libc::SOL_PACKET, libc::PACKET_RX_RING, &request)?;
        Self::of(socket, request.tp_frame_nr, request.tp_frame_size)
    }

    /// Maps the existing ring of `socket`.
    ///
    /// # Errors
    /// If the size of the ring is not `slots` slots of `slot_bytes` bytes.
    pub(crate) fn of(socket: BorrowedFd<'_>, slots: u32, slot_bytes: u32) -> io::Result<Self> {
        let bytes = slots as usize * slot_bytes as usize;
        let access = libc::PROT_READ | libc::PROT_WRITE;
        // SAFETY: the call creates a mapping at an address that the kernel chooses; existing mappings stay.
        let memory = unsafe {
            let fd = socket.as_raw_fd();
            libc::mmap(std::ptr::null_mut(), bytes, access, libc::MAP_SHARED, fd, 0)
        };
        if memory == libc::MAP_FAILED {
            return Err(io::Error::last_os_error());
        }
        let memory = NonNull::new(memory.cast()).ok_or_else(io::Error::last_os_error)?;
        Ok(Self { memory, slots, slot_bytes })
    }

    /// Returns the number of slots of the ring.
    pub(crate) const fn slots(&self) -> u32 {
        self.slots
    }

    /// Returns the size of a slot, in bytes.
    pub(crate) const fn slot_bytes(&self) -> u32 {
        self.slot_bytes
    }

    /// Returns `true` if the slot before `next` is lent. If the slot `next` is empty, the slot before it is the
    /// newest. While the newest slot is lent, the kernel reports the ring as readable.
    #[inline]
    pub(crate) fn is_newest_lent(&self, next: u32) -> bool {
        let newest = next.checked_sub(1).unwrap_or(self.slots - 1);
        self.status(newest).load(Ordering::Acquire) == LENT
    }

    /// Returns the frame in `slot`; `None` if the kernel has not filled the slot.
    #[inline]
    pub(crate) fn filled(self: &Arc<Self>, slot: u32) -> Option<Slot<'_>> {
        let status = self.status(slot).load(Ordering::Acquire);
        if status & libc::TP_STATUS_USER == 0 {
            return None;
        }
        // SAFETY: the slot begins with this structure, and since its status shows that it belongs to this
        // process the kernel does not write to it.
        let header = unsafe { self.start(slot).cast::<tpacket2_hdr>().read() };
        Some(Slot { map: self, slot, status, header })
    }

    /// Prefetches the first two cache lines of the slot [`PREFETCH_DISTANCE`] ahead of `slot`. If the reader
    /// is behind, so that the kernel's writes have left the cache, this saves about a quarter of the cost of
    /// a frame.
    #[inline]
    pub(crate) fn prefetch_ahead_of(&self, slot: u32) {
        let ahead = slot + PREFETCH_DISTANCE;
        let ahead = if ahead < self.slots { ahead } else { ahead - self.slots };
        // A ring may have fewer slots than the distance.
        if ahead < self.slots {
            prefetch_two_lines(self.start(ahead).as_ptr());
        }
    }

    /// Returns a slot to the kernel.
    #[inline]
    fn release(&self, slot: u32) {
        self.status(slot).store(libc::TP_STATUS_KERNEL, Ordering::Release);
    }

    #[inline]
    fn status(&self, slot: u32) -> &AtomicU32 {
        // SAFETY: every slot begins with its status, aligned to a cache line; both sides access
        // it as one 32-bit word.
        unsafe { self.start(slot).cast::<AtomicU32>().as_ref() }
    }

    #[inline]
    fn start(&self, slot: u32) -> NonNull<u8> {
        assert!(slot < self.slots, "a ring of {} slots has no slot {slot}", self.slots);
        // SAFETY: the slot is below `slots`, so this is within the mapping.
        unsafe { self.memory.add(slot as usize * self.slot_bytes as usize) }
    }
}

// SAFETY: the mapping belongs to no thread. Statuses are atomic; everything else in a slot is reached
// through the one `Slot` or `SlotBuf` that has it, whichever thread that is on.
unsafe impl Send for RingMap {}
// SAFETY: as above. Only the source calls `filled`, through `&mut`, so no slot is lent twice.
unsafe impl Sync for RingMap {}

impl Drop for RingMap {
    fn drop(&mut self) {
        let bytes = self.slots as usize * self.slot_bytes as usize;
        // SAFETY: this value owns the mapping, which has this length. Every buffer that points into it holds
        // the map, so none is left.
        unsafe { libc::munmap(self.memory.as_ptr().cast(), bytes) };
    }
}

/// A filled slot, which belongs to this process until it is lent or returned.
pub(crate) struct Slot<'a> {
    map: &'a Arc<RingMap>,
    slot: u32,
    status: u32,
    header: tpacket2_hdr,
}

impl Slot<'_> {
    /// Lends the frame as a buffer in its slot. Panics if the slot does not contain the whole frame.
    #[inline]
    pub(crate) fn into_buffer(self) -> SlotBuf {
        assert!(self.is_whole(), "only what is in the slot can be lent");
        self.map.status(self.slot).store(LENT, Ordering::Relaxed);
        let (bytes, len) = (self.at(usize::from(self.header.tp_mac)), self.header.tp_snaplen);
        SlotBuf { bytes, len, slot: self.slot, map: Arc::clone(self.map) }
    }

    /// Returns the frame's bytes in the slot; empty if the slot does not contain the whole frame.
    #[inline]
    pub(crate) fn bytes(&self) -> &[u8] {
        if !self.is_whole() {
            return &[];
        }
        let (bytes, len) = (self.at(usize::from(self.header.tp_mac)), self.header.tp_snaplen);
        // SAFETY: the bytes of a whole frame lie in the slot, which this process may access until it is lent
        // or given back; both operations consume this value.
        unsafe { std::slice::from_raw_parts(bytes.as_ptr(), len as usize) }
    }

    /// Returns the slot to the kernel unused.
    pub(crate) fn release(self) {
        self.map.release(self.slot);
    }

    /// Returns `true` if the kernel has set `flag` in the slot's status.
    #[inline]
    pub(crate) const fn has_flag(&self, flag: u32) -> bool {
        self.status & flag != 0
    }

    /// Returns the original length of the frame, in bytes; the slot may contain less.
    #[inline]
    pub(crate) const fn frame_bytes(&self) -> u32 {
        self.header.tp_len
    }

    /// Returns `true` if the slot contains the whole frame.
    #[inline]
    pub(crate) fn is_whole(&self) -> bool {
        let end = u32::from(self.header.tp_mac).saturating_add(self.header.tp_snaplen);
        self.header.tp_snaplen == self.header.tp_len && end <= self.map.slot_bytes
    }

    /// Returns the kernel's description of the frame: checksum status and segmentation.
    #[inline]
    pub(crate) fn vnet(&self) -> VnetHeader {
        let at = usize::from(self.header.tp_mac).saturating_sub(VNET_HEADER_BYTES);
        // SAFETY: the ten bytes before the frame lie in the slot; see `at`.
        let bytes = unsafe { self.at(at).cast::<[u8; VNET_HEADER_BYTES]>().read() };
        VnetHeader::read(&bytes).unwrap_or_default()
    }

    /// Returns the outer VLAN tag that the kernel removed from the frame: its protocol (zero if not given)
    /// and its control field.
    #[inline]
    pub(crate) const fn vlan(&self) -> (u16, u16) {
        (self.header.tp_vlan_tpid, self.header.tp_vlan_tci)
    }

    /// Returns the time at which the kernel received the frame, in nanoseconds on the wall clock.
    #[inline]
    pub(crate) fn stamp_ns(&self) -> u64 {
        u64::from(self.header.tp_sec) * 1_000_000_000 + u64::from(self.header.tp_nsec)
    }

    /// Returns the kernel's packet type (`PACKET_OUTGOING` and so on).
    #[inline]
    pub(crate) fn packet_type(&self) -> u8 {
        let at = size_of::<tpacket2_hdr>() + offset_of!(sockaddr_ll, sll_pkttype);
        // SAFETY: the address is within the slot: a byte of the link-layer address that follows the slot's
        // header.
        unsafe { self.at(at).read() }
    }

    #[inline]
    fn at(&self, offset: usize) -> NonNull<u8> {
        let offset = offset.min(self.map.slot_bytes as usize - VNET_HEADER_BYTES);
        // SAFETY: the address is kept within the slot by the line above, with ten bytes to read.
        unsafe { self.map.start(self.slot).add(offset) }
    }
}

/// The bytes of a frame in a lent slot. Dropping the buffer returns the slot to the kernel.
#[derive(Debug)]
pub(crate) struct SlotBuf {
    bytes: NonNull<u8>,
    len: u32,
    slot: u32,
    map: Arc<RingMap>,
}

// SAFETY: the slot belongs to this buffer alone until it is given back, by an atomic store (release) that any
// thread may do.
unsafe impl Send for SlotBuf {}
// SAFETY: through a shared reference, the buffer is only read.
unsafe impl Sync for SlotBuf {}

impl SlotBuf {
    #[inline]
    pub(crate) fn bytes(&self) -> &[u8] {
        // SAFETY: `into_buffer` took these bytes from a whole frame in the slot, the map is held, and
        // neither the kernel nor the source writes to a slot that is lent.
        unsafe { std::slice::from_raw_parts(self.bytes.as_ptr(), self.len as usize) }
    }
}

impl Drop for SlotBuf {
    #[inline]
    fn drop(&mut self) {
        self.map.release(self.slot);
    }
}

/// Prefetches the two cache lines from `start` on. In a slot, these lines contain the slot's header and the
/// start of the frame.
#[inline]
pub(crate) fn prefetch_two_lines(start: *const u8) {
    #[cfg(target_arch = "x86_64")]
    {
        use core::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
        let second = start.wrapping_add(64);
        // SAFETY: a prefetch reads nothing, whatever the address.
        unsafe {
            _mm_prefetch::<_MM_HINT_T0>(start.cast());
            _mm_prefetch::<_MM_HINT_T0>(second.cast());
        }
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _no_stable_intrinsic = start;
}

/// Builds the request for `slots` slots or a few more, in blocks that are whole pages without unused bytes, so
/// that slots are contiguous. Because the size of a slot is an odd number of cache lines, the smallest such block
/// has as many slots as a page has cache lines.
const fn request(slots: u32, slot_bytes: u32, page_bytes: u32) -> tpacket_req {
    let slots_per_block = page_bytes / LINE_BYTES;
    let blocks = slots.div_ceil(slots_per_block);
    tpacket_req {
        tp_block_size: slot_bytes * slots_per_block,
        tp_block_nr: blocks,
        tp_frame_size: slot_bytes,
        tp_frame_nr: blocks * slots_per_block,
    }
}

const LINE_BYTES: u32 = 64;

/// Returns the size of a slot: an odd number of cache lines. With an even number (for example 2,048 bytes)
/// the headers of all slots would share a few sets of the first-level cache.
const fn slot_bytes(mtu: u32) -> u32 {
    let mtu = if mtu > LARGEST_MTU { LARGEST_MTU } else { mtu };
    ((mtu + SLOT_OVERHEAD_BYTES).div_ceil(LINE_BYTES) * LINE_BYTES) | LINE_BYTES
}

/// The largest MTU for which slots are sized; the MTU of loopback, 65,536 bytes, would require a ring of hundreds
/// of megabytes. Larger frames are copied as a whole, as GSO frames are.
const LARGEST_MTU: u32 = 9216;

/// Test functions: a ring that the test fills instead of the kernel.
#[cfg(test)]
impl RingMap {
    pub(super) fn anonymous(slots: u32, slot_bytes: u32) -> Arc<Self> {
        let bytes = slots as usize * slot_bytes as usize;
        let (access, flags) =
            (libc::PROT_READ | libc::PROT_WRITE, libc::MAP_PRIVATE | libc::MAP_ANONYMOUS);
        // SAFETY: the call creates a mapping at an address that the kernel chooses; existing mappings stay.
        let memory = unsafe { libc::mmap(std::ptr::null_mut(), bytes, access, flags, -1, 0) };
        assert_ne!(memory, libc::MAP_FAILED);
        let memory = NonNull::new(memory.cast()).expect("a mapping");
        Arc::new(Self { memory, slots, slot_bytes })
    }

    /// Writes a frame with its header into `slot`, as the kernel does.
    pub(super) fn fill(&self, slot: u32, status: u32, vnet: VnetHeader, frame: &[u8]) {
        self.put(slot, status, vnet, (frame, frame.len()));
    }

    /// Writes a frame into `slot` that the kernel has truncated.
    pub(super) fn fill_cut_short(&self, slot: u32, frame: &[u8]) {
        self.put(slot, 0, VnetHeader::default(), (frame, frame.len() + 1));
    }

    fn put(&self, slot: u32, status: u32, vnet: VnetHeader, (frame, bytes): (&[u8], usize)) {
        const MAC: usize = 96;
        let header = tpacket2_hdr {
            tp_status: 0,
            tp_len: bytes as u32,
            tp_snaplen: frame.len() as u32,
            tp_mac: MAC as u16,
            tp_net: MAC as u16 + 14,
            tp_sec: 1,
            tp_nsec: 0,
            tp_vlan_tci: 0,
            tp_vlan_tpid: 0,
            tp_padding: [0; 4],
        };
        let bytes = [&vnet.to_bytes()[..], frame].concat();
        assert!(MAC + frame.len() <= self.slot_bytes as usize);
        let start = self.start(slot);
        // SAFETY: header and frame lie within the slot, which no other code accesses before its status is
        // set.
        unsafe {
            start.cast::<tpacket2_hdr>().write(header);
            let to = start.add(MAC - VNET_HEADER_BYTES).as_ptr();
            std::ptr::copy_nonoverlapping(bytes.as_ptr(), to, bytes.len());
        }
        self.status(slot).store(libc::TP_STATUS_USER | status, Ordering::Release);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_newest_is_lent_until_its_buffer_is_dropped() {
        let map = RingMap::anonymous(64, 1_600);
        for slot in [0, 63, 5] {
            let next = (slot + 1) % 64;
            map.fill(slot, 0, VnetHeader::default(), &[7; 60]);
            assert!(!map.is_newest_lent(next), "it is nobody's yet");
            let lent = map.filled(slot).unwrap().into_buffer();
            assert_eq!((lent.bytes(), map.is_newest_lent(next)), (&[7; 60][..], true));
            drop(lent);
            assert!(!map.is_newest_lent(next));
        }
    }

    #[test]
    fn blocks_are_whole_pages_whatever_a_page_is() {
        for page in [4 << 10, 16 << 10, 64 << 10] {
            for (slots, mtu) in [(1, 68), (64, 1_500), (100, 9_000), (8_192, 1_500), (1 << 20, 68)]
            {
                let request = request(slots, slot_bytes(mtu), page);
                let what = format!("{slots} slots for {mtu} bytes, pages of {page}");
                assert_eq!(request.tp_block_size % page, 0, "{what}");
                let in_block = request.tp_block_size / request.tp_frame_size;
                assert_eq!(request.tp_block_size % request.tp_frame_size, 0, "{what}: no gaps");
                assert_eq!(request.tp_frame_nr, in_block * request.tp_block_nr, "{what}");
                assert!((slots..slots + in_block).contains(&request.tp_frame_nr), "{what}");
            }
        }
    }

    #[test]
    fn a_slot_holds_its_frame_and_is_an_odd_number_of_lines() {
        for mtu in [68, 1280, 1500, 9000, 65_536] {
            let bytes = slot_bytes(mtu);
            assert!(bytes >= mtu.min(LARGEST_MTU) + SLOT_OVERHEAD_BYTES);
            assert_eq!(bytes / 64 % 2, 1);
            assert_eq!(bytes % 64, 0);
        }
        assert_eq!(slot_bytes(1500), 1_600);
    }
}
