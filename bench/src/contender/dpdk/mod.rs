//! DPDK's `rte_gro` in its lightweight mode: a batch in, the batch coalesced, nothing held.
//!
//! It checks no TCP checksum and leaves the merged header's checksum fields as they were, so its
//! rows stand beside rxo's with trusted checksums. It coalesces IPv4 only. The heavyweight mode,
//! which walks its whole table for every new flow, is not measured here.

mod sys;

use std::hint::black_box;

use rxo_testkit::Traffic;
use rxo_wire::{IpVersion, Parsed, Transport};

use self::sys::{GroOutcome, Lengths, Packets};
use super::{BATCH_FRAMES, Contender, Outcome};
use crate::arch;

/// Whether the caller prefetches the headers of a batch before it hands it over, as drivers of
/// DPDK's example programs do. Best cold, a little slower warm.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Prefetch {
    /// The caller does nothing.
    No,
    /// Both header lines of every packet.
    Headers,
}

/// `rte_gro_reassemble_burst` with a workload in mbufs.
pub(crate) struct Dpdk<'a> {
    packets: Packets,
    traffic: &'a Traffic,
    prefetch: Prefetch,
    last: GroOutcome,
}

impl<'a> Dpdk<'a> {
    /// Lays `traffic` out in mbufs.
    pub(crate) fn new(traffic: &'a Traffic, prefetch: Prefetch) -> Self {
        let packets = Packets::new(traffic.len());
        Self { packets, traffic, prefetch, last: GroOutcome::default() }
    }
}

impl Contender for Dpdk<'_> {
    fn prepare(&mut self) {
        for (index, packet) in self.traffic.iter().enumerate() {
            self.packets.load(index, packet, &lengths(packet));
        }
    }

    fn make_cold(&self) {
        for (index, packet) in self.traffic.iter().enumerate() {
            arch::flush(self.packets.bytes(index, packet.len()));
        }
        arch::fence();
    }

    fn pass(&mut self) {
        self.last = self.packets.pass(BATCH_FRAMES, self.prefetch == Prefetch::Headers);
        black_box(self.last.touched);
    }

    fn outcome(&self) -> Outcome {
        Outcome { deliveries: self.last.deliveries, frames: self.last.frames }
    }
}

/// What a driver knows of a packet when it hands over its mbuf.
fn lengths(packet: &[u8]) -> Lengths {
    let all = Lengths { bytes: packet.len() as u32, ..Lengths::default() };
    match rxo_wire::parse(packet) {
        Ok(parsed) => Lengths {
            link: parsed.network as u16,
            network: (parsed.transport_at - parsed.network) as u16,
            transport: (parsed.payload - parsed.transport_at) as u16,
            is_tcp4: u16::from(is_tcp4(&parsed)),
            ..all
        },
        Err(_) => all,
    }
}

fn is_tcp4(parsed: &Parsed) -> bool {
    parsed.ip.version == IpVersion::V4 && matches!(parsed.transport, Transport::Tcp(_))
}
