//! tun-rs: the GRO that is available to a Rust VPN on crates.io.
//!
//! It works on IP packets in growable buffers, checks every checksum, and copies: each packet once to inspect
//! it, and its payload once more to append it. Its rows are compared with rxo's verified rows. The
//! measurement covers everything except the write to the device, through the function that `send_multiple`
//! calls.

use std::hint::black_box;

use rxo_testkit::Traffic;
use tun_rs::{GROTable, VIRTIO_NET_HDR_LEN};

use super::{BATCH_FRAMES, Contender, Outcome};
use crate::arch;

/// Offset of the IP packet in its buffer. Buffers of this size begin 16 bytes into a cache line, so the
/// packet begins 14 bytes into one, as after an Ethernet header.
const OFFSET_BYTES: usize = 62;
/// Capacity that `send_multiple` needs to append up to the largest IP packet.
const CAPACITY_BYTES: usize = 2 * OFFSET_BYTES + 65_535;
const ETHERNET_BYTES: usize = 14;

/// The GRO table and a workload in buffers.
pub(crate) struct TunRs<'a> {
    table: GROTable,
    buffers: Vec<Vec<u8>>,
    traffic: &'a Traffic,
}

impl<'a> TunRs<'a> {
    /// Makes a buffer for each packet of `traffic`.
    pub(crate) fn new(traffic: &'a Traffic) -> Self {
        let buffers = traffic.iter().map(|_| Vec::with_capacity(CAPACITY_BYTES)).collect();
        Self { table: GROTable::new(), buffers, traffic }
    }
}

impl Contender for TunRs<'_> {
    fn prepare(&mut self) {
        for (buffer, packet) in self.buffers.iter_mut().zip(self.traffic.iter()) {
            buffer.clear();
            buffer.resize(OFFSET_BYTES, NOT_WRITTEN);
            buffer.extend_from_slice(packet.get(ETHERNET_BYTES..).unwrap_or_default());
        }
    }

    fn make_cold(&self) {
        for buffer in &self.buffers {
            arch::flush(&buffer[OFFSET_BYTES - VIRTIO_NET_HDR_LEN..]);
        }
        arch::fence();
    }

    fn pass(&mut self) {
        for batch in self.buffers.chunks_mut(BATCH_FRAMES) {
            self.table
                .apply_gro(batch, OFFSET_BYTES, COALESCES_UDP)
                .expect("buffers of the right size");
            black_box(&batch);
        }
    }

    /// Counts the buffers to write. `apply_gro` has written a virtio header into each; a buffer whose payload
    /// was appended to another still has the mark of `prepare`.
    fn outcome(&self) -> Outcome {
        let written = |buffer: &&Vec<u8>| buffer[OFFSET_BYTES - VIRTIO_NET_HDR_LEN] != NOT_WRITTEN;
        let deliveries = self.buffers.iter().filter(written).count() as u64;
        Outcome { deliveries, frames: self.buffers.len() as u64 }
    }
}

const NOT_WRITTEN: u8 = 0xff;
/// tun-rs coalesces datagrams if its device can segment them again, as TUN devices can since Linux 6.2.
const COALESCES_UDP: bool = true;
