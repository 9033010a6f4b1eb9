//! A safe wrapper of the C interface in `shim/gro.c`.
#![allow(unsafe_code, reason = "DPDK is a C library")]

use std::ptr::NonNull;

use super::Caller;

/// Packets in mbufs, in memory that the C code owns.
pub(super) struct Packets {
    raw: NonNull<RawPackets>,
    count: usize,
}

impl Packets {
    /// Allocates `count` empty packets.
    pub(super) fn new(count: usize) -> Self {
        let count_c = u32::try_from(count).expect("a workload fits 32 bits");
        // SAFETY: the function takes a number and returns owned memory or NULL.
        let raw = NonNull::new(unsafe { gro_new(count_c) }).expect("memory for the mbufs");
        Self { raw, count }
    }

    /// Loads packet `index` with the lengths that a driver would set.
    pub(super) fn load(&mut self, index: usize, bytes: &[u8], lengths: &Lengths) {
        assert!(index < self.count && bytes.len() == lengths.bytes as usize);
        // SAFETY: `raw` is live until drop; C checks the index and the length against its slots
        // and reads exactly `lengths.bytes` bytes, which is the slice's length.
        let loaded = unsafe { gro_load(self.raw.as_ptr(), index as u32, bytes.as_ptr(), lengths) };
        assert!(loaded == 1, "packet {index} of {} bytes does not fit an mbuf", bytes.len());
    }

    /// Returns the bytes of packet `index`, which was loaded with `len` bytes.
    pub(super) fn bytes(&self, index: usize, len: usize) -> &[u8] {
        assert!(index < self.count && len <= DATA_ROOM_BYTES);
        // SAFETY: the index is in range, so the pointer is to a data room of 2,048 initialized
        // bytes, which nothing changes while `self` is borrowed.
        unsafe { std::slice::from_raw_parts(gro_data(self.raw.as_ptr(), index as u32), len) }
    }

    /// Processes every packet once. All must have been loaded since the last pass.
    pub(super) fn pass(&mut self, batch_frames: usize, caller: Caller) -> GroOutcome {
        assert!((1..=BATCH_LIMIT).contains(&batch_frames));
        let mut outcome = GroOutcome::default();
        // SAFETY: `raw` is live and borrowed mutably, every slot was loaded by `Dpdk::prepare`,
        // the batch is within C's array, `caller` is one of C's three values, and `outcome` is a live
        // value of C's layout.
        unsafe {
            gro_pass(self.raw.as_ptr(), batch_frames as u16, caller, &raw mut outcome);
        }
        outcome
    }
}

impl Drop for Packets {
    fn drop(&mut self) {
        // SAFETY: `raw` came from `gro_new` and is freed only here.
        unsafe { gro_free(self.raw.as_ptr()) };
    }
}

/// Size of a packet's data area: `DATA_ROOM` of the shim.
const DATA_ROOM_BYTES: usize = 2_048;
/// Most packets per batch: `BATCH_LIMIT` of the shim.
const BATCH_LIMIT: usize = 128;

/// Lengths of a packet and its headers: `struct gro_lengths` of the shim.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Lengths {
    /// Length of the whole packet.
    pub(super) bytes: u32,
    /// Length of the link header.
    pub(super) link: u16,
    /// Length of the IP header.
    pub(super) network: u16,
    /// Length of the TCP header.
    pub(super) transport: u16,
    /// 1 if the packet is TCP over IPv4, otherwise 0.
    pub(super) is_tcp4: u16,
}

/// Result of a pass: `struct gro_outcome` of the shim.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct GroOutcome {
    /// Mbuf chains delivered.
    pub(super) deliveries: u64,
    /// Mbufs in the delivered chains.
    pub(super) frames: u64,
    /// A value that depends on every delivery, so that the compiler removes none.
    pub(super) touched: u64,
}

#[repr(C)]
struct RawPackets {
    _private: [u8; 0],
}

unsafe extern "C" {
    fn gro_new(count: u32) -> *mut RawPackets;
    fn gro_free(packets: *mut RawPackets);
    fn gro_load(
        packets: *mut RawPackets,
        index: u32,
        bytes: *const u8,
        lengths: *const Lengths,
    ) -> i32;
    fn gro_data(packets: *const RawPackets, index: u32) -> *const u8;
    fn gro_pass(
        packets: *mut RawPackets,
        batch_frames: u16,
        caller: Caller,
        outcome: *mut GroOutcome,
    );
}
