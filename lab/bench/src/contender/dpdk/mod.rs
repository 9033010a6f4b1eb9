//! DPDK's `rte_gro` in its lightweight mode, which coalesces each batch by itself and holds nothing.
//!
//! DPDK checks no TCP checksum and does not update the checksum fields of the merged header, so its rows are
//! compared with rxo's trusted rows. It coalesces IPv4 only. The heavyweight mode, which walks its whole
//! table for every new flow, is not measured.

mod sys;

use std::hint::black_box;

use rxo_testkit::Traffic;
use rxo_wire::{IpVersion, Parsed, Transport};

use self::sys::{GroOutcome, Lengths, Packets};
use super::{BATCH_FRAMES, Contender, Outcome};
use crate::arch;

/// The caller's work on a batch before it passes the batch to the engine: `enum gro_caller` of the shim.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(C)]
pub(crate) enum Caller {
    /// No work: the device reported the packet types.
    DoesNothing,
    /// Prefetches both header lines of every packet, as DPDK's example programs do. Fastest with cold
    /// packets, a little slower with warm ones.
    Prefetches,
    /// Parses packet types and header lengths (`rte_net_get_ptype`), like drivers of devices that do not
    /// report them.
    ReadsTypes,
}

/// `rte_gro_reassemble_burst` with a workload in mbufs.
pub(crate) struct Dpdk<'a> {
    packets: Packets,
    traffic: &'a Traffic,
    caller: Caller,
    last: GroOutcome,
}

impl<'a> Dpdk<'a> {
    /// Copies `traffic` into mbufs.
    pub(crate) fn new(traffic: &'a Traffic, caller: Caller) -> Self {
        let packets = Packets::new(traffic.len());
        Self { packets, traffic, caller, last: GroOutcome::default() }
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
        self.last = self.packets.pass(BATCH_FRAMES, self.caller);
        black_box(self.last.touched);
    }

    fn outcome(&self) -> Outcome {
        Outcome { deliveries: self.last.deliveries, frames: self.last.frames }
    }
}

/// Returns the header lengths that a driver sets in an mbuf.
fn lengths(packet: &[u8]) -> Lengths {
    let all = Lengths { bytes: packet.len() as u32, ..Lengths::default() };
    match rxo_wire::parse(packet) {
        Ok(parsed) => Lengths {
            link: parsed.at.network as u16,
            network: (parsed.at.transport - parsed.at.network) as u16,
            transport: (parsed.at.payload - parsed.at.transport) as u16,
            is_tcp4: u16::from(is_tcp4(&parsed)),
            ..all
        },
        Err(_) => all,
    }
}

fn is_tcp4(parsed: &Parsed) -> bool {
    parsed.ip.version == IpVersion::V4 && matches!(parsed.transport, Transport::Tcp(_))
}
