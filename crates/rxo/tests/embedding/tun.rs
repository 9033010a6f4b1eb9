//! A TUN that counts writes.

use rxo_vnet::{VNET_HEADER_BYTES, packets};

/// What was written: the packets that the kernel would see on a wire, and in how many writes they came.
#[derive(Default)]
pub(crate) struct Tun {
    pub(crate) writes: usize,
    pub(crate) packets: Vec<Vec<u8>>,
}

impl Tun {
    /// One `writev` of a virtio-net header and a packet.
    pub(crate) fn write(&mut self, header: [u8; VNET_HEADER_BYTES], pieces: &[&[u8]]) {
        self.writes += 1;
        let bytes = [&header[..], &pieces.concat()].concat();
        let (mut all, mut out) = (packets(&bytes).expect("a valid header"), vec![0; 65_535]);
        while let Some(length) = all.next_into(&mut out).expect("room") {
            self.packets.push(out[..length].to_vec());
        }
    }
}

/// The packets of two transfers, in turn.
pub(crate) fn decrypted() -> Vec<Vec<u8>> {
    let packet = |n: u32| {
        rxo_testkit::seg()
            .raw_ip()
            .flow(n % 2)
            .id((n / 2) as u16)
            .seq(1 + n / 2 * 1_300)
            .len(1_300)
            .bytes()
    };
    (0..256).map(packet).collect()
}

/// The packets sorted by flow, in the order in which each flow sent them.
pub(crate) fn by_flow(mut packets: Vec<Vec<u8>>) -> Vec<Vec<u8>> {
    packets.sort_by_key(|packet| packet[12..24].to_vec());
    packets
}
