//! Measures how many frames per second the engine processes in Rust, like `speed.c` through librxo.
//!
//! ```sh
//! cargo run --release -p rxo-capi --example speed
//! ```
//!
//! An argument chooses what is measured, so that callgrind counts it alone: `verified` or `trusted`.

use std::error::Error;
use std::time::Instant as Clock;

use rxo_coalesce::{Config, Engine, Policy};
use rxo_frame::{Frame, Gather, Instant, LinkKind};
use rxo_wire::build::{BuildError, Ipv4Header, TcpHeader, write_tcp_checksum};
use rxo_wire::checksum::Summer;
use rxo_wire::{PROTOCOL_TCP, SeqNumber, TcpFlags};

const POLL: usize = 64;
const POLLS: usize = 20_000;
const PAYLOAD_BYTES: usize = 1_400;

fn main() -> Result<(), Box<dyn Error>> {
    let packets: Vec<Vec<u8>> = (0..POLL).map(segment).collect::<Result<_, _>>()?;
    measure("engine, checksums verified", &packets, false)?;
    measure("engine, checksums trusted", &packets, true)
}

fn segment(index: usize) -> Result<Vec<u8>, BuildError> {
    let seq = SeqNumber((index * PAYLOAD_BYTES) as u32);
    let tcp = TcpHeader {
        source_port: 4_000,
        destination_port: 443,
        seq,
        flags: TcpFlags::ACK,
        window: 512,
        ..TcpHeader::default()
    };
    let payload_bytes = tcp.bytes() + PAYLOAD_BYTES;
    let ip = Ipv4Header {
        protocol: PROTOCOL_TCP,
        id: index as u16,
        payload_bytes,
        ..Ipv4Header::default()
    };
    let mut packet = vec![0; ip.bytes() + payload_bytes];
    let segment = ip.write(&mut packet)?;
    tcp.write(segment)?.fill(index as u8);
    write_tcp_checksum(segment, ip.pseudo_header(), Summer::detect())?;
    Ok(packet)
}

fn measure(name: &str, packets: &[Vec<u8>], trust_checksums: bool) -> Result<(), Box<dyn Error>> {
    if std::env::args().nth(1).is_some_and(|chosen| !name.ends_with(&chosen)) {
        return Ok(());
    }
    let config = Config {
        link: LinkKind::RawIp,
        batch_frames: POLL,
        trust_checksums,
        ..Config::new(Policy::linux_gro(), 1)
    };
    let mut engine = Engine::<&[u8]>::new(config)?;
    let (mut batch, mut deliveries) = (Vec::with_capacity(POLL), 0);
    let start = Clock::now();
    for round in 0..POLLS {
        let now = Instant::from_nanos(round as u64);
        batch.extend(packets.iter().map(|packet| Frame::new(packet.as_slice(), now)));
        engine.poll(&mut batch, now, |ready| {
            for delivery in ready.iter() {
                // Visits every piece, as a sink does.
                let mut pieces = 0;
                delivery.for_each_slice(|_piece| pieces += 1);
                deliveries += usize::from(pieces > 0);
            }
        });
    }
    if deliveries != 2 * POLLS {
        return Err(format!("{deliveries} deliveries").into());
    }
    let frames_per_s = (POLLS * POLL) as f64 / start.elapsed().as_secs_f64();
    println!("{name}\t{frames_per_s:.0}");
    Ok(())
}
