//! Coalesces four segments of one connection, as a new project would do first.

use std::hash::{BuildHasher, RandomState};

use rxo_coalesce::{Config, Delivery, Engine, Policy};
use rxo_frame::{Frame, Instant, LinkKind};

/// Returns a TCP segment over IPv4 with 100 bytes of payload, as a device delivers it that has verified the
/// checksums.
fn segment(number: u32) -> Vec<u8> {
    let mut packet = vec![0; 140];
    packet[0] = 0x45;
    packet[2..4].copy_from_slice(&140_u16.to_be_bytes());
    packet[6] = 0x40;
    (packet[8], packet[9]) = (64, 6);
    packet[12..20].copy_from_slice(&[10, 0, 0, 1, 10, 0, 0, 2]);
    let sum: u32 = packet[..20].chunks(2).map(|two| u32::from(two[0]) << 8 | u32::from(two[1])).sum();
    let folded = (sum & 0xffff) + (sum >> 16);
    packet[10..12].copy_from_slice(&(!(folded as u16)).to_be_bytes());
    packet[20..24].copy_from_slice(&[0, 80, 4, 0]);
    packet[24..28].copy_from_slice(&(1 + number * 100).to_be_bytes());
    (packet[32], packet[33], packet[34]) = (0x50, 0x10, 0xff);
    packet
}

fn main() {
    let mut config = Config::new(Policy::linux_gro(), RandomState::new().hash_one(0));
    config.link = LinkKind::RawIp;
    config.trust_checksums = true;
    let mut engine = Engine::new(config).expect("the numbers are in range");
    let mut batch: Vec<_> = (0..4).map(|n| Frame::new(segment(n), Instant::ZERO)).collect();
    let mut queue = Vec::new();
    engine.poll(&mut batch, Instant::ZERO, |deliveries| queue.extend(deliveries.into_owned()));
    for delivery in &queue {
        if let Delivery::Aggregate(aggregate) = delivery.view() {
            println!("{} of 4 frames left: {} segments", queue.len(), aggregate.segment_count());
        }
    }
}
