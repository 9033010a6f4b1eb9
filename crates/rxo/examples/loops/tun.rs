//! The TUN that the loops write to, and the packets that they write.

use rxo::Gather;
#[cfg(test)]
use rxo_vnet::{VnetHeader, packets};

/// A TUN that was opened with `IFF_VNET_HDR`.
pub(crate) trait Tun {
    /// Writes a virtio-net header and a packet with one `writev`.
    fn write<'a>(&mut self, packet: impl Gather<'a>);
}

/// A TUN in memory that counts the writes, and stores the packets that a kernel would make of them.
#[cfg(test)]
#[derive(Default)]
pub(crate) struct Counted {
    pub(crate) writes: usize,
    pub(crate) packets: Vec<Vec<u8>>,
}

#[cfg(test)]
impl Tun for Counted {
    fn write<'a>(&mut self, packet: impl Gather<'a>) {
        self.writes += 1;
        let mut bytes = VnetHeader::for_packet(packet.offload(), 0).to_bytes().to_vec();
        packet.for_each_slice(|piece| bytes.extend(piece));
        let (mut all, mut out) = (packets(&bytes).expect("a valid header"), vec![0; 65_535]);
        while let Some(length) = all.next_into(&mut out).expect("room") {
            self.packets.push(out[..length].to_vec());
        }
    }
}

/// Creates `count` packets of two bulk transfers, alternately.
pub(crate) fn decrypted(count: u32) -> Vec<Vec<u8>> {
    let packet = |n: u32| {
        rxo_testkit::seg()
            .raw_ip()
            .flow(n % 2)
            .id((n / 2) as u16)
            .seq(1 + n / 2 * 1_300)
            .len(1_300)
            .bytes()
    };
    (0..count).map(packet).collect()
}

/// Returns `packets` sorted by flow; within a flow they keep their order.
#[cfg(test)]
pub(crate) fn by_flow(mut packets: Vec<Vec<u8>>) -> Vec<Vec<u8>> {
    packets.sort_by_key(|packet| packet[12..24].to_vec());
    packets
}
