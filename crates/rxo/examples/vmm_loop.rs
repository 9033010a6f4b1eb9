//! The receive loop of a VM monitor: it passes frames from a TAP to a guest, as few packets with a virtio
//! header of 12 bytes each.
//!
//! The loop copies slice by slice into the guest's buffers. `cargo run -p rxo --example vmm_loop`.

use std::error::Error;

use rxo::coalesce::Deliveries;
use rxo::{Config, Engine, Frame, Gather, Instant, Policy};
use rxo_vnet::{VIRTIO_HEADER_BYTES, VnetHeader};

/// The receive queue of a guest, whose buffers have 4 KiB and are merged (`VIRTIO_NET_F_MRG_RXBUF`).
#[derive(Default)]
struct Guest {
    packets: Vec<Vec<u8>>,
}

const BUFFER_BYTES: usize = 4_096;

impl Guest {
    fn fill(&mut self, deliveries: &Deliveries<'_, Vec<u8>>) {
        for delivery in deliveries.iter() {
            let bytes = VIRTIO_HEADER_BYTES + delivery.byte_len();
            let header = VnetHeader::for_packet(delivery.offload(), 0);
            let mut packet = Vec::with_capacity(bytes);
            packet.extend(header.to_virtio_bytes(bytes.div_ceil(BUFFER_BYTES) as u16));
            delivery.for_each_slice(|piece| packet.extend_from_slice(piece));
            self.packets.push(packet);
        }
    }
}

/// Runs the example.
pub fn main() -> Result<(), Box<dyn Error>> {
    let (mut engine, mut guest) =
        (Engine::new(Config::new(Policy::linux_gro(), rxo::random_seed()))?, Guest::default());
    let packet = |n: u32| rxo_testkit::seg().seq(1 + n * 1_448).len(1_448).bytes();
    let mut batch: Vec<_> = (0..32).map(|n| Frame::new(packet(n), Instant::ZERO)).collect();
    engine.poll(&mut batch, Instant::ZERO, |deliveries| guest.fill(&deliveries));
    let [packet] = guest.packets.as_slice() else { return Err("one packet".into()) };
    println!("32 frames in one packet of {} buffers", packet[10]);
    assert_eq!((packet[0], packet[1], packet[10]), (1, 1, 12));
    Ok(())
}
