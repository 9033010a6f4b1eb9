//! A VPN with receive offload: decrypted packets from the tunnel are coalesced, and the TUN gets many of them
//! in one gathered write with a `virtio_net_hdr`.
//!
//! `cargo run -p rxo --example vpn` passes sample packets to the loop and prints the writes that would
//! follow; `cargo run -p rxo --example vpn -- rxo-vpn` writes them to a TUN device of that name, as root.

use rxo::device::MemorySink;
use rxo::{MemoryLink, MemoryOptions};

// quote:begin
use std::error::Error;

use rxo::worker::carried;
use rxo::{Config, DeviceError, Engine, Frame, FrameSink, Instant, LinkKind, Policy};

struct Vpn<S> {
    engine: Engine<Vec<u8>>,
    batch: Vec<Frame<Vec<u8>>>,
    tun: S,
}

impl<S: FrameSink> Vpn<S> {
    fn new(tun: S) -> Result<Self, Box<dyn Error>> {
        // UDP and tunnels are coalesced only if the TUN can segment them.
        let policy = carried(Policy::linux_gro(), tun.capabilities())?;
        let config = Config { link: LinkKind::RawIp, ..Config::new(policy, rxo::random_seed()) };
        Ok(Self { engine: Engine::new(config)?, batch: Vec::with_capacity(256), tun })
    }

    /// Passes a packet from the tunnel, which was decrypted at `now`, to the engine.
    fn on_packet(&mut self, packet: Vec<u8>, now: Instant) {
        self.batch.push(Frame::new(packet, now));
    }

    /// Ends the batch. Called when the tunnel's socket has no more packets.
    fn on_end_of_batch(&mut self, now: Instant) -> Result<(), DeviceError> {
        let (tun, mut sent) = (&mut self.tun, Ok(()));
        // A large batch is delivered in several parts; the first error counts.
        self.engine.poll(&mut self.batch, now, |deliveries| {
            let done = tun.transmit(deliveries.iter());
            sent = std::mem::replace(&mut sent, Ok(())).and(done);
        });
        sent
    }
}
// quote:end

fn main() -> Result<(), Box<dyn Error>> {
    match std::env::args().nth(1) {
        Some(name) => write_to_tun(&name),
        None => print_what_would_be_written(),
    }
}

/// Creates the packets of two bulk flows, alternately, as they come out of the tunnel.
fn decrypted() -> impl Iterator<Item = Vec<u8>> {
    (0..40).map(|n| {
        let (flow, index) = (n % 2, n / 2);
        rxo_testkit::seg().raw_ip().flow(flow).seq(1 + index * 1_400).len(1_400).bytes()
    })
}

fn print_what_would_be_written() -> Result<(), Box<dyn Error>> {
    let options = MemoryOptions { link: LinkKind::RawIp, ..MemoryOptions::default() };
    let link = MemoryLink::new(options);
    let mut vpn: Vpn<MemorySink> = Vpn::new(link.sink())?;
    decrypted().for_each(|packet| vpn.on_packet(packet, Instant::ZERO));
    vpn.on_end_of_batch(Instant::ZERO)?;
    for write in link.take_all() {
        let size = write.offload.gso.map_or(0, |gso| gso.size.get());
        println!(
            "one write of {} bytes in {} pieces for {} packets, gso_size {size}",
            write.bytes.len(),
            write.pieces,
            write.frames,
        );
    }
    Ok(())
}

#[cfg(feature = "driver")]
fn write_to_tun(name: &str) -> Result<(), Box<dyn Error>> {
    use rxo::driver::{SubmitMode, Tap, TapKind, clock};

    let tun = Tap::open(name, TapKind::Tun)?;
    tun.interface().set_up(true)?;
    let mut vpn = Vpn::new(tun.sink(SubmitMode::Auto)?)?;
    decrypted().for_each(|packet| vpn.on_packet(packet, clock::now()));
    vpn.on_end_of_batch(clock::now())?;
    let written = vpn.tun.counters();
    println!("{name}: {} packets in {} writes", written.frames, written.packets);
    Ok(())
}

#[cfg(not(feature = "driver"))]
fn write_to_tun(name: &str) -> Result<(), Box<dyn Error>> {
    Err(format!("{name}: this example was built without the feature `driver`").into())
}
