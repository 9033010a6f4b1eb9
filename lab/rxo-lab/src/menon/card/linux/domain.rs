//! The driver domain as a separate process: rxo's worker between the card's ring and a guest's ring.
//!
//! It forwards frames. At the first line on standard input it prints "counting", and callgrind begins to
//! count; at the next line it prints the number of frames forwarded since.

use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use anyhow::Result;
use rxo::device::Pause;
use rxo::live::{Device, DeviceOptions, SystemWaiter};
use rxo::{Duplex, Worker, WorkerConfig};
use rxo_console::output;
use rxo_driver::{DeviceSink, DeviceSource};
use serde::{Deserialize, Serialize};

use crate::callgrind::counted_phase;
use crate::menon::stack::Stack;

/// Counts of forwarded frames.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(super) struct Passed {
    /// Frames from the card.
    pub(super) packets: u64,
    /// Packets delivered to the guest.
    pub(super) deliveries: u64,
    /// Frames from the guest.
    pub(super) from_guest: u64,
    /// Frames to the card, all of them ACKs.
    pub(super) acks: u64,
}

type Domain = Worker<DeviceSource, DeviceSink, DeviceSource, DeviceSink>;

/// The parameters of the driver domain.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub(crate) struct Parameters {
    /// The card's socket.
    pub(super) card: PathBuf,
    /// The guest's socket.
    pub(super) guest: PathBuf,
    /// The Aggregation Limit; without it each frame is alone.
    pub(super) limit: Option<u16>,
    /// Full segments for an ACK on the wire.
    pub(super) ack_split: Option<u16>,
}

/// Forwards frames, first uncounted, then under callgrind's count.
pub(crate) fn run(parameters: &Parameters) -> Result<()> {
    let mut domain = start(parameters)?;
    output::json_line(&"ready")?;
    pass_on(&mut domain)?;
    let before = passed(&mut domain);
    output::json_line(&"counting")?;
    counted_phase(|| pass_on(&mut domain))?;
    output::json_line(&passed(&mut domain).since(before))
}

fn start(parameters: &Parameters) -> Result<Domain> {
    let Parameters { card, guest, limit, ack_split } = parameters;
    let open = |kind, path: &PathBuf| -> Result<_> {
        let name = format!("{kind}:{}", path.display()).parse()?;
        let Device { source, sink } = Device::open(&name, DeviceOptions::default())?;
        Ok(Duplex { source, sink })
    };
    let stack = Stack { limit: *limit, ack_offload: false };
    let config = WorkerConfig {
        pause: Pause::NEVER,
        overload: None,
        ack_split: *ack_split,
        ..WorkerConfig::new(stack.policy())
    };
    Ok(Worker::new(open("virtio", card)?, open("vhost", guest)?, config)?)
}

/// Forwards frames until standard input delivers a line or ends.
fn pass_on(domain: &mut Domain) -> Result<()> {
    let is_told = AtomicBool::new(false);
    thread::scope(|scope| {
        scope.spawn(|| {
            // A read error counts as the end of standard input.
            _ = std::io::stdin().read_line(&mut String::new());
            is_told.store(true, Ordering::Relaxed);
        });
        Ok(domain.run(&mut SystemWaiter::resting(REST), &is_told, |_| ())?)
    })
}

fn passed(domain: &mut Domain) -> Passed {
    let reading = domain.reading();
    Passed {
        packets: reading.nic_in.frames,
        deliveries: reading.host_out.packets,
        from_guest: reading.host_in.frames,
        acks: reading.nic_out.frames,
    }
}

impl Passed {
    const fn since(self, before: Self) -> Self {
        Self {
            packets: self.packets - before.packets,
            deliveries: self.deliveries - before.deliveries,
            from_guest: self.from_guest - before.from_guest,
            acks: self.acks - before.acks,
        }
    }
}

/// Pause of an idle worker. Idle turns are counted too, so they must be rare.
const REST: Duration = Duration::from_millis(4);
