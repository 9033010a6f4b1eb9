//! Measures the cost of coalescing alone: the engine in memory, without device and stack.

use std::hint::black_box;
use std::time::{Duration, Instant as WallClock};

use rxo::live::{DeviceEngine, defaults};
use rxo_coalesce::{Config, Policy};
use rxo_driver::DeviceBuf;
use rxo_frame::{ChecksumStatus, Frame, Instant};

/// Frames of a few flows, in trains of consecutive segments. Together they exceed a core's caches.
pub(super) struct Workload {
    frames: Vec<Vec<u8>>,
}

impl Workload {
    pub(super) fn new() -> Self {
        let mut sent = [0_u32; FLOWS];
        let frames = (0..FRAMES).map(|place| {
            let flow = place / TRAIN % FLOWS;
            let number = sent[flow];
            sent[flow] += 1;
            segment(flow as u8, number)
        });
        Self { frames: frames.collect() }
    }

    /// Returns the engine's processing time in nanoseconds per packet, measured for about `time` with the live policy
    /// and polls of [`POLL`] frames.
    pub(super) fn ns_per_packet(&self, time: Duration) -> f64 {
        let config = Config::new(defaults::live(Policy::linux_gro()), rxo::random_seed());
        // The configuration is a constant that a test validates, so this cannot fail.
        let Ok(mut engine) = DeviceEngine::new(config) else { return 0.0 };
        let mut polls = self.polls();
        let (begin, mut packets) = (WallClock::now(), 0);
        while begin.elapsed() < time {
            for poll in &mut polls {
                black_box(engine.poll(poll, Instant::ZERO));
            }
            packets += self.frames.len();
        }
        begin.elapsed().as_nanos() as f64 / packets as f64
    }

    /// Returns copies of all frames, in batches of [`POLL`].
    fn polls(&self) -> Vec<Vec<Frame<DeviceBuf>>> {
        let polls = self.frames.chunks(POLL);
        polls.map(|poll| poll.iter().map(|bytes| frame(bytes)).collect()).collect()
    }
}

/// Returns `bytes` as a frame from a network card: with a verified checksum.
fn frame(bytes: &[u8]) -> Frame<DeviceBuf> {
    let bytes = bytes.to_vec().into();
    Frame { checksum: ChecksumStatus::Verified, ..Frame::new(bytes, Instant::ZERO) }
}

/// Builds segment `number` of `flow`: of full size, with timestamps. Written by hand, because the command needs no
/// general packet builder.
fn segment(flow: u8, number: u32) -> Vec<u8> {
    let mut bytes = vec![0; 14 + 20 + 32 + PAYLOAD];
    bytes[..12].copy_from_slice(&[2, 0, 0, 0, 0, 2, 2, 0, 0, 0, 0, 1]);
    bytes[12..14].copy_from_slice(&[8, 0]);
    let packet_bytes = (bytes.len() - 14) as u16;
    let ip = &mut bytes[14..34];
    ip[..2].copy_from_slice(&[0x45, 0]);
    ip[2..4].copy_from_slice(&packet_bytes.to_be_bytes());
    ip[4..6].copy_from_slice(&(number as u16).to_be_bytes());
    ip[6..10].copy_from_slice(&[0x40, 0, 64, 6]);
    ip[12..20].copy_from_slice(&[10, 0, 0, 1, 10, 0, 0, 2]);
    let checksum = checksum(ip);
    ip[10..12].copy_from_slice(&checksum.to_be_bytes());
    let tcp = &mut bytes[34..66];
    tcp[..4].copy_from_slice(&[200, flow, 1, 189]);
    tcp[4..8].copy_from_slice(&number.wrapping_mul(PAYLOAD as u32).to_be_bytes());
    tcp[8..16].copy_from_slice(&[0, 0, 0, 1, 0x80, 0x10, 1, 0]);
    // Two no-operations, then a timestamp that never changes.
    tcp[20..32].copy_from_slice(&[1, 1, 8, 10, 0, 0, 0, 7, 0, 0, 0, 9]);
    bytes
}

/// Returns the Internet checksum of an IPv4 header.
fn checksum(header: &[u8]) -> u16 {
    let words = header.chunks_exact(2).map(|pair| u32::from(pair[0]) << 8 | u32::from(pair[1]));
    let sum: u32 = words.sum();
    let folded = (sum & 0xffff) + (sum >> 16);
    !(((folded & 0xffff) + (folded >> 16)) as u16)
}

const FRAMES: usize = 16_384;
const FLOWS: usize = 4;
const TRAIN: usize = 16;
const POLL: usize = 64;
const PAYLOAD: usize = 1_448;

#[cfg(test)]
mod tests {
    use super::*;

    /// The workload's frames must be candidates; otherwise the benchmark would measure their bypassing.
    #[test]
    fn what_is_measured_is_coalesced() {
        let workload = Workload::new();
        let config = Config::new(defaults::live(Policy::linux_gro()), rxo::random_seed());
        let mut engine = DeviceEngine::new(config).unwrap();
        let mut polls = workload.polls();
        // The engine returns the buffers, so each poll can be reused.
        for _ in 0..2 {
            let deliveries = polls.iter_mut().map(|poll| engine.poll(poll, Instant::ZERO));
            assert_eq!(deliveries.sum::<usize>(), FRAMES / TRAIN);
        }
        let ns = workload.ns_per_packet(Duration::from_millis(20));
        assert!(ns > 0.0 && ns.is_finite(), "{ns}");
    }
}
