//! Writes a capture for trying `rxo analyze`: `cargo run -p rxo-trace --example capture -- FILE`.
//!
//! Eight senders on one gigabit link write 32 KB at a time. Each write is 23 segments, the last of
//! which has PSH. The receiver acknowledges every second segment. Every run writes the same
//! packets.

use std::error::Error;
use std::fs::File;

use rxo_capture::{CaptureWriter, Interface, LinkType, Packet};
use rxo_frame::Instant;
use rxo_testkit::{Random, seg};

const SENDERS: u32 = 8;
const WRITES: u32 = 400;
const WRITE_BYTES: u32 = 32 * 1_024;
const SEGMENT_BYTES: u32 = 1_448;
/// The time that a full segment takes on a link of 1 Gbit/s, in nanoseconds.
const SEGMENT_NS: u64 = 12_300;
/// The start of 2026, in nanoseconds since 1970.
const NEW_YEAR_NS: u64 = 1_767_225_600_000_000_000;

struct Output {
    writer: CaptureWriter<File>,
    interface: u32,
    at_ns: u64,
}

impl Output {
    fn write(&mut self, packet: &rxo_testkit::Packet, after_ns: u64) -> Result<(), Box<dyn Error>> {
        let bytes = packet.bytes();
        self.at_ns += after_ns;
        self.writer.write(&Packet {
            interface: self.interface,
            at: Instant::from_nanos(self.at_ns),
            original_bytes: bytes.len() as u32,
            pieces: &[&bytes],
            direction: None,
            comments: &[],
            custom: &[],
        })?;
        Ok(())
    }
}

fn main() -> Result<(), Box<dyn Error>> {
    let path = std::env::args().nth(1).ok_or("give the file to write")?;
    let mut writer = CaptureWriter::new(File::create(path)?, "the example of rxo-trace")?;
    let link = Interface { link: LinkType::ETHERNET, snap_bytes: None, name: Some("eth0".into()) };
    let interface = writer.add_interface(&link)?;
    let mut output = Output { writer, interface, at_ns: NEW_YEAR_NS };
    let mut random = Random::new(1);
    let (mut sent, mut segments) = ([0_u32; SENDERS as usize], [0_u32; SENDERS as usize]);
    for _ in 0..WRITES {
        let sender = random.below(SENDERS.into()) as u32;
        let (sent, segments) = (&mut sent[sender as usize], &mut segments[sender as usize]);
        let end = *sent + WRITE_BYTES;
        // Sometimes all senders wait for their applications.
        let mut after_ns = if random.below(4) == 0 { random.below(400_000) } else { 0 };
        while *sent < end {
            let bytes = SEGMENT_BYTES.min(end - *sent);
            let now_ms = ((output.at_ns - NEW_YEAR_NS) / 1_000_000) as u32;
            let data = seg().flow(sender).id(*segments as u16).seq(1 + *sent).len(bytes as usize);
            let data = data.ts(now_ms, 1);
            *sent += bytes;
            *segments += 1;
            let data = if *sent == end { data.psh() } else { data };
            output.write(&data, SEGMENT_NS + after_ns)?;
            after_ns = 0;
            if segments.is_multiple_of(2) {
                let ack = seg().flow(sender + SENDERS).pure_ack().ack(1 + *sent).ts(1, now_ms);
                output.write(&ack, 500)?;
            }
        }
    }
    output.writer.finish()?;
    Ok(())
}
