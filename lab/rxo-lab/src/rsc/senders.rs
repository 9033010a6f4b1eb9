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
use rxo_device::{FrameSource, SourceCounters};
use rxo_driver::{DeviceBuf, PacketOptions, PacketSource, clock};
use rxo_frame::Frame;
use rxo_peers::{SharedLink, SharedLinkOptions};
use rxo_testbed::Namespace;
use rxo_testbed::traffic::{BulkConfig, BulkTransfer};

use super::condition::Condition;
use super::plan::LabPlan;

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
///
/// # Errors
/// If the network cannot be built, a connection breaks or stalls, or wrong bytes arrive.
pub(super) fn capture(
    condition: Condition,
    plan: &LabPlan,
    stop: &AtomicBool,
) -> Result<Option<Captured>> {
    let network = SharedLink::new(SharedLinkOptions {
        senders: condition.connections,
        mtu: MTU,
        bytes_per_s: plan.bytes_per_s,
        burst_frames: plan.burst_frames,
        timestamps: false,
        core: plan.cores.sender,
    })?;
    let transfer = send(&network, condition, plan)?;
    thread::sleep(plan.warm_up);
    let captured = network.receiver().run(|| record(plan.packets, stop))??;
    let report = transfer.stop()?;
    if let Some(mismatch) = report.mismatch {
        bail!("{mismatch}; please report this");
    }
    Ok(captured)
}

fn send(network: &SharedLink, condition: Condition, plan: &LabPlan) -> Result<BulkTransfer> {
    let config = BulkConfig {
        connections: condition.connections,
        write_bytes: condition.payload_bytes(),
        one_write_at_a_time: true,
        // The application threads share a core; the kernel's network work runs on the other.
        sender_core: plan.cores.receiver,
        receiver_core: plan.cores.receiver,
        ..BulkConfig::default()
    };
    let senders: Vec<&Namespace> = network.senders().collect();
    let (receiver, address) = (network.receiver(), network.receiver_address());
    Ok(BulkTransfer::start_from_all(&senders, receiver, address, &config)?)
}

/// Records the next `packets` arriving packets.
fn record(packets: usize, stop: &AtomicBool) -> Result<Option<Captured>> {
    let name = SharedLink::RECEIVER_INTERFACE;
    let mut source = PacketSource::open(name, PacketOptions::default())?;
    let mut writer = Writer::new(name, packets)?;
    let mut batch = Vec::new();
    let mut last_arrival = Instant::now();
    while writer.left > 0 {
        if stop.load(Ordering::Relaxed) {
            return Ok(None);
        }
        if source.receive(&mut batch, writer.left.min(BATCH_FRAMES))? == 0 {
            if last_arrival.elapsed() > PATIENCE {
                bail!("nothing arrived for {} s; the senders stand still", PATIENCE.as_secs());
            }
            thread::sleep(PAUSE);
            continue;
        }
        last_arrival = Instant::now();
        batch.drain(..).try_for_each(|frame| writer.write(&frame))?;
    }
    let SourceCounters { ring_drops, truncated, .. } = source.counters();
    Ok(Some(Captured { file: writer.file.finish()?, lost_frames: ring_drops + truncated }))
}

/// The capture file that is being written.
struct Writer {
    file: CaptureWriter<Vec<u8>>,
    interface: u32,
    /// Offset from the clock of arrival times to the Unix epoch.
    epoch: Duration,
    left: usize,
}

impl Writer {
    fn new(interface: &str, packets: usize) -> Result<Self> {
        let bytes = Vec::with_capacity(packets * (MTU as usize + BLOCK_BYTES));
        let application = concat!("rxo-lab ", env!("CARGO_PKG_VERSION"), " rsc");
        let mut file = CaptureWriter::new(bytes, application)?;
        let interface = file.add_interface(&Interface {
            link: LinkType::ETHERNET,
            snap_bytes: None,
            name: Some(interface.to_owned()),
        })?;
        let since_1970 = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
        let since_1970 = since_1970.context("the clock of this machine is before 1970")?;
        let epoch = since_1970.saturating_sub(Duration::from_nanos(clock::now().as_nanos()));
        Ok(Self { file, interface, epoch, left: packets })
    }

    fn write(&mut self, frame: &Frame<DeviceBuf>) -> Result<()> {
        let bytes = frame.bytes();
        self.file.write(&Packet {
            interface: self.interface,
            at: frame.arrived_at + self.epoch,
            original_bytes: bytes.len() as u32,
            pieces: &[bytes],
            direction: Some(Direction::In),
            comments: &[],
            custom: &[],
        })?;
        self.left -= 1;
        Ok(())
    }
}

/// MTU of the paper's Ethernet.
const MTU: u32 = 1_500;
/// Bytes of a packet block besides the packet, with the Ethernet header.
const BLOCK_BYTES: usize = 60;
const BATCH_FRAMES: usize = 64;
const PAUSE: Duration = Duration::from_micros(300);
const PATIENCE: Duration = Duration::from_secs(10);
