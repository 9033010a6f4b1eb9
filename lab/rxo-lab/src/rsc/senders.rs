//! Makes one capture of real Linux senders: builds the network and the connections, and records at the
//! receiver with a packet socket.
//!
//! Each sender is a separate host with one connection, as in the paper, and writes a payload once the
//! previous one is acknowledged. Its kernel hands the payload to the interface as one GSO frame, which leaves
//! as MTU-sized frames, back to back unless other senders interleave; PSH is on the last. Segments carry no
//! timestamps, so a full segment has 1,460 bytes as in the paper.

use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant, SystemTime};

use anyhow::{Context, Result, bail};
use rxo_capture::{CaptureWriter, Direction, Interface, LinkType, Packet};
use rxo_demo::machine::Cores;
use rxo_device::{FrameSource, SourceCounters};
use rxo_driver::{PacketOptions, PacketSource, clock};
use rxo_peers::{SharedLink, SharedLinkOptions};
use rxo_testbed::Namespace;
use rxo_testbed::traffic::{BulkConfig, BulkTransfer};

use super::WARM_UP;
use super::examine::Condition;

/// The link that the senders share, and the extent of a capture of it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Link {
    /// Packets in each capture.
    pub(super) packets: usize,
    pub(super) bytes_per_s: u64,
    /// Frames that a sender's link sends back to back.
    pub(super) burst_frames: u32,
}

/// A capture made in the lab.
#[derive(Debug)]
pub(super) struct Captured {
    /// Content of the pcapng file.
    pub(super) file: Vec<u8>,
    /// Frames that arrived but are missing in the file.
    pub(super) lost_frames: u64,
}

/// Starts the senders of `condition` and captures the arriving frames. Returns `None` if `stop` is set before
/// enough frames arrived.
pub(super) fn capture(
    condition: Condition,
    link: Link,
    stop: &AtomicBool,
) -> Result<Option<Captured>> {
    let (Condition { connections, payload_kb }, cores) = (condition, Cores::choose());
    let network = SharedLink::new(SharedLinkOptions {
        senders: connections,
        mtu: MTU,
        bytes_per_s: link.bytes_per_s,
        burst_frames: link.burst_frames,
        timestamps: false,
        core: cores.sender,
    })?;
    let config = BulkConfig {
        connections,
        write_bytes: payload_kb * 1_024,
        one_write_at_a_time: true,
        // The application threads share a core; the kernel's network work runs on the other.
        sender_core: cores.receiver,
        receiver_core: cores.receiver,
        ..BulkConfig::default()
    };
    let senders: Vec<&Namespace> = network.senders().collect();
    let (receiver, address) = (network.receiver(), network.receiver_address());
    let transfer = BulkTransfer::start_from_all(&senders, receiver, address, &config)?;
    thread::sleep(WARM_UP);
    let captured = receiver.run(|| record(link.packets, stop))??;
    if let Some(mismatch) = transfer.stop()?.mismatch {
        bail!("{mismatch}; please report this");
    }
    Ok(captured)
}

/// Records the next `packets` arriving packets.
fn record(packets: usize, stop: &AtomicBool) -> Result<Option<Captured>> {
    let name = SharedLink::RECEIVER_INTERFACE;
    let mut source = PacketSource::open(name, PacketOptions::default())?;
    let application = concat!("rxo-lab ", env!("CARGO_PKG_VERSION"), " rsc");
    let bytes = Vec::with_capacity(packets * (MTU as usize + BLOCK_BYTES));
    let mut file = CaptureWriter::new(bytes, application)?;
    let (link, name) = (LinkType::ETHERNET, Some(name.to_owned()));
    let interface = file.add_interface(&Interface { link, snap_bytes: None, name })?;
    // From the clock of arrival times to the Unix epoch.
    let since_1970 = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
    let since_1970 = since_1970.context("the clock of this machine is before 1970")?;
    let epoch = since_1970.saturating_sub(Duration::from_nanos(clock::now().as_nanos()));
    let (mut batch, mut left, mut last_arrival) = (Vec::new(), packets, Instant::now());
    while left > 0 {
        if stop.load(Ordering::Relaxed) {
            return Ok(None);
        }
        if source.receive(&mut batch, left.min(BATCH_FRAMES))? == 0 {
            if last_arrival.elapsed() > TIMEOUT {
                bail!("nothing arrived for {} s; the senders stand still", TIMEOUT.as_secs());
            }
            thread::sleep(PAUSE);
            continue;
        }
        last_arrival = Instant::now();
        left -= batch.len();
        for frame in batch.drain(..) {
            let bytes = frame.bytes();
            file.write(&Packet {
                interface,
                at: frame.arrived_at + epoch,
                original_bytes: bytes.len() as u32,
                pieces: &[bytes],
                direction: Some(Direction::In),
                comments: &[],
                custom: &[],
            })?;
        }
    }
    let SourceCounters { ring_drops, truncated, .. } = source.counters();
    Ok(Some(Captured { file: file.finish()?, lost_frames: ring_drops + truncated }))
}

/// MTU of the paper's Ethernet.
const MTU: u32 = 1_500;
/// Bytes of a packet block besides the packet, with the Ethernet header.
const BLOCK_BYTES: usize = 60;
const BATCH_FRAMES: usize = 64;
const PAUSE: Duration = Duration::from_micros(300);
const TIMEOUT: Duration = Duration::from_secs(10);
