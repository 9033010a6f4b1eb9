//! An implementation of a sink: it writes each packet as one contiguous slice to a device without offloads,
//! such as WinTUN or a macOS utun.
//!
//! Checksums are complete, and the device's MTU is 65,535. `cargo run -p rxo --example own_sink`.

use std::error::Error;

use rxo::coalesce::ChecksumForm;
use rxo::{Config, Engine, Frame, Gather, Instant, LinkKind, Policy};

/// A device that takes one IP packet per write.
#[derive(Default)]
struct Utun {
    written: Vec<Vec<u8>>,
}

impl Utun {
    fn write<'a>(&mut self, delivery: impl Gather<'a>) {
        let mut packet = Vec::with_capacity(4 + delivery.byte_len());
        delivery.for_each_slice(|piece| packet.extend_from_slice(piece));
        if let Some(family) = rxo_vnet::utun_prefix(&packet) {
            packet.splice(..0, family);
        }
        self.written.push(packet);
    }
}

/// Runs the example.
pub fn main() -> Result<(), Box<dyn Error>> {
    let config = Config {
        link: LinkKind::RawIp,
        form: ChecksumForm::Complete,
        ..Config::new(Policy::linux_gro(), rxo::random_seed())
    };
    let (mut engine, mut utun) = (Engine::new(config)?, Utun::default());
    let packet = |n: u32| rxo_testkit::seg().raw_ip().seq(1 + n * 10).len(10).bytes();
    let mut batch: Vec<_> = (0..3).map(|n| Frame::new(packet(n), Instant::ZERO)).collect();
    engine.poll(&mut batch, Instant::ZERO, |all| all.iter().for_each(|one| utun.write(one)));
    let [written] = utun.written.as_slice() else { return Err("one write".into()) };
    println!("{written:02x?}");
    assert_eq!(written[..8], [0, 0, 0, 2, 0x45, 0, 0, (written.len() - 4) as u8]);
    let parsed = rxo::wire::parse_ip(&written[4..]).map_err(|_| "an IP packet")?;
    assert!(rxo::wire::checksum::verify_transport(
        &parsed,
        &written[4..],
        rxo::wire::checksum::Summer::detect()
    ));
    Ok(())
}
