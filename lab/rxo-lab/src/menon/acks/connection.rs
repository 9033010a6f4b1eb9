//! Runs one connection through rxo, and observes it while it sends.
//!
//! ```text
//!  sender - veth - [rate, loss, delay] - rxo: coalesces, towards a TAP - Linux receiver
//!         <- veth ------------- [delay] - rxo: the receiver's ACKs, split or not <---
//!
//!  Linux sender - a TAP - rxo ---------------- [rate, delay] - veth - receiver
//!               <- a TAP - rxo: aggregates ACKs - [delay] <- veth - its ACKs
//! ```

use std::net::Ipv4Addr;
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Result, bail};
use rxo::Reading;
use rxo::live::defaults;
use rxo_coalesce::{Policy, PureAckRule};
use rxo_console::numbers::{ratio, rounded};
use rxo_demo::through::{self, Manner, TAP};
use rxo_device::middleware::ImpairmentSettings;
use rxo_peers::{CountingConfig, CountingTransfer};
use rxo_testbed::traffic::{BulkConfig, BulkTransfer, WindowPoint};
use rxo_testbed::{AckRate, CpuMeter, Interface, Lab, LabOptions};
use serde::Serialize;

use super::{SEGMENT_BYTES, Sender, Setting, Treatment, growth};

/// The impairment between sender and receiver, on a link of the setting's rate.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum Network {
    /// The link without loss or delay.
    Clean,
    /// One data frame in a hundred is lost.
    Loss,
    /// A round trip of 20 ms: 10 ms each way.
    Delay,
}

impl Network {
    pub(super) const ALL: [Self; 3] = [Self::Clean, Self::Loss, Self::Delay];

    /// Returns the impairments of the data direction and of the ACK direction in round `round`, whose seed gives
    /// all compared cases the same losses.
    fn impairments(self, bytes_per_s: u64, round: usize) -> [ImpairmentSettings; 2] {
        let none = ImpairmentSettings::default();
        let (seed, rate_bytes_per_s) = (1 + round as u64, Some(bytes_per_s));
        let data = ImpairmentSettings { seed, rate_bytes_per_s, ..none };
        let delayed = |it| ImpairmentSettings { delay: ROUND_TRIP / 2, ..it };
        match self {
            Self::Clean => [data, none],
            Self::Loss => [ImpairmentSettings { loss_ppm: 10_000, ..data }, none],
            Self::Delay => [delayed(data), delayed(none)],
        }
    }
}

/// Round-trip time of the slowest network.
pub(super) const ROUND_TRIP: Duration = Duration::from_millis(20);

/// The end of the connection that is behind rxo.
#[derive(Clone, Copy, Debug)]
pub(super) enum Behind {
    Receiver(Treatment),
    /// A Linux sender. rxo delivers at least every `keep_every`-th ACK to it.
    Sender(Option<u16>),
}

/// The result of one connection.
#[derive(Clone, Debug, Serialize)]
pub(super) struct Sample {
    /// Payload rate from the first byte to the end.
    mbit_per_s: f64,
    /// Time from the first byte until 90 % of the link's payload rate arrives for 60 ms; `None` if it never did.
    full_rate_ms: Option<f64>,
    /// 1 if the connection reached full rate.
    full_rate_rounds: u64,
    rounds: u64,
    /// Frames that the sender received for each frame that it sent.
    acks_per_segment: f64,
    /// Frames from the wire per delivery to the host.
    per_delivery: f64,
    /// Processor time of both ends and rxo, in seconds per 10^9 bytes of payload.
    cpu_s_per_gb: f64,
    retransmissions: u64,
    /// Frames that the network lost on purpose.
    lost: u64,
    /// ACKs that splitting inserted before those of the receiver.
    inserted_acks: u64,
    /// Frames lost at any other point.
    dropped: u64,
    /// The congestion window, as pairs of seconds and segments.
    window: Vec<(f64, f64)>,
}

impl Behind {
    fn manner(self) -> Manner {
        let coalesced = Manner::with(defaults::live(Policy::linux_gro()));
        let ack_split = match self {
            Self::Receiver(Treatment::None) => return Manner::with(Policy::none()),
            Self::Receiver(Treatment::Coalesced) => None,
            Self::Receiver(Treatment::Split) => Some(2),
            Self::Receiver(Treatment::SplitEach) => Some(1),
            Self::Sender(keep_every) => return Manner::with(acks(keep_every)),
        };
        Manner { ack_split, ..coalesced }
    }
}

/// Returns the Linux GRO policy with aggregation of pure ACKs; without a setting, the policy that coalesces
/// nothing.
fn acks(keep_every: Option<u16>) -> Policy {
    let policy = defaults::live(Policy::linux_gro());
    keep_every.map_or(Policy::none(), |keep_every| Policy {
        pure_acks: PureAckRule::Single,
        keep_every,
        max_acks: policy.max_acks.max(keep_every),
        ..policy
    })
}

/// Runs a connection of `sender` over `network` for the time of `setting`.
///
/// # Errors
/// If the network cannot be built, the connection cannot be opened or breaks, or wrong bytes arrive.
pub(super) fn observe(
    sender: Sender,
    network: Network,
    behind: Behind,
    (setting, round): (Setting, usize),
) -> Result<Sample> {
    let is_receiver = matches!(behind, Behind::Receiver(_));
    let lab = lab(setting, if is_receiver { AckRate::Default } else { AckRate::EachSegment })?;
    let [data, acks] = network.impairments(setting.bytes_per_s, round);
    // Frames from the wire arrive in groups, as from a card with interrupt moderation.
    let frames = if is_receiver { SPLIT_FRAMES } else { KEEP_FRAMES };
    let gathered = |it| ImpairmentSettings { gather: setting.time_of_frames(frames), ..it };
    let impair = if is_receiver { [gathered(data), acks] } else { [gathered(acks), data] };
    let manner = Manner { impair: impair.map(Some), ..behind.manner() };
    let through = through::start(&lab, manner, setting.cores.receiver)?;
    let (wire, tap) = (lab.peer().interface(Lab::PEER_INTERFACE), lab.host().interface(TAP));
    let before = wire.counters()?;
    let watched = if is_receiver {
        let cores = [setting.cores.sender, setting.cores.receiver];
        watch(sender, ([&wire, &tap], Lab::HOST_ADDRESSES.0, cores), setting)?
    } else {
        // The sender runs on the host behind rxo, on that host's core.
        let cores = [setting.cores.receiver, setting.cores.sender];
        watch(sender, ([&tap, &wire], Lab::PEER_ADDRESSES.0, cores), setting)?
    };
    let after = wire.counters()?;
    let received = after.received_frames - before.received_frames;
    let reading = through.finish()?;
    let frames = match is_receiver {
        true => [after.sent_frames - before.sent_frames, received],
        false => [received, reading.host_out.packets],
    };
    Ok(Sample::new(setting, &watched, frames, &reading))
}

/// Makes two hosts whose socket buffers never limit a sender before the link does.
fn lab(setting: Setting, acks: AckRate) -> Result<Lab> {
    let options = LabOptions { peer_core: setting.cores.sender, acks, ..LabOptions::default() };
    let lab = Lab::through_with(options)?;
    for namespace in [lab.peer(), lab.host()] {
        namespace.set_sysctl("net.ipv4.tcp_rmem", BUFFERS)?;
        namespace.set_sysctl("net.ipv4.tcp_wmem", BUFFERS)?;
    }
    Ok(lab)
}

/// The observations of one connection.
struct Watched {
    /// Bytes delivered over time.
    arrived: Vec<WindowPoint>,
    /// The sender's congestion window over time.
    windows: Vec<WindowPoint>,
    retransmissions: u64,
    /// Processor time of this whole process and of `ksoftirqd` while the connection sent.
    cpu: Duration,
    /// Payload bytes that arrived in that time.
    received_bytes: u64,
}

/// Both ends of a connection, the receiver's address, and the cores of the sending and of the receiving thread.
type Route<'a, 'n> = ([&'a Interface<'n>; 2], Ipv4Addr, [Option<usize>; 2]);

fn watch(sender: Sender, route: Route<'_, '_>, setting: Setting) -> Result<Watched> {
    let meter = CpuMeter::new();
    let (before, transfer) = (meter.read()?, Transfer::start(sender, route)?);
    let begin = Instant::now();
    let mut arrived = Vec::new();
    while begin.elapsed() < setting.effort.duration {
        thread::sleep(BETWEEN_POINTS);
        arrived.push(transfer.point(begin)?);
    }
    let cpu = meter.read()?.since(&before).total();
    let received_bytes = arrived.last().map_or(0, |point| point.delivered_bytes);
    let (windows, retransmissions) = transfer.stop()?;
    let windows = windows.unwrap_or_else(|| arrived.clone());
    Ok(Watched { arrived, windows, retransmissions, cpu, received_bytes })
}

enum Transfer {
    Kernel(BulkTransfer),
    Counting(CountingTransfer),
}

impl Transfer {
    fn start(sender: Sender, (ends, address, cores): Route<'_, '_>) -> Result<Self> {
        let ([from, to], [sender_core, receiver_core]) = (ends, cores);
        let receive_low_water_bytes = Some(LOW_WATER_BYTES);
        if sender == Sender::Counting {
            let config = CountingConfig {
                receive_low_water_bytes,
                sender_core,
                receiver_core,
                ..CountingConfig::default()
            };
            return Ok(Self::Counting(CountingTransfer::start(from, to, address, config)?));
        }
        let config = BulkConfig {
            congestion_control: Some(sender.name().to_owned()),
            receive_low_water_bytes,
            sender_core,
            receiver_core,
            ..BulkConfig::default()
        };
        let (from, to) = (from.namespace(), to.namespace());
        Ok(Self::Kernel(BulkTransfer::start(from, to, address.into(), &config)?))
    }

    fn point(&self, begin: Instant) -> Result<WindowPoint> {
        let (at, cwnd_bytes) = (begin.elapsed(), 0);
        Ok(match self {
            Self::Kernel(transfer) => WindowPoint { at, ..transfer.window()? },
            Self::Counting(transfer) => {
                WindowPoint { at, cwnd_bytes, delivered_bytes: transfer.received_bytes() }
            }
        })
    }

    /// Stops the sender. Returns its own record of its window, if it keeps one, and the number of
    /// retransmitted segments.
    fn stop(self) -> Result<(Option<Vec<WindowPoint>>, u64)> {
        let (mismatch, record, retransmissions) = match self {
            Self::Kernel(transfer) => {
                let report = transfer.stop()?;
                (report.mismatch, None, report.retransmitted_segments)
            }
            Self::Counting(transfer) => {
                let report = transfer.stop()?;
                (report.mismatch, Some(report.record), report.counters.retransmissions)
            }
        };
        if let Some(mismatch) = mismatch {
            bail!("{mismatch}; please report this");
        }
        Ok((record, retransmissions))
    }
}

impl Sample {
    fn new(setting: Setting, watched: &Watched, [data, acks]: [u64; 2], reading: &Reading) -> Self {
        let reached =
            growth::reached(&watched.arrived, setting.payload_bytes_per_s(), FULL_SHARE, FULL_FOR);
        let gigabytes = watched.received_bytes as f64 / 1e9;
        let dropped = [&reading.nic_in, &reading.host_in]
            .map(|side| side.ring_drops + side.impaired.over_frames + side.impaired.over_bytes);
        let per_delivery = ratio(reading.nic_in.frames as f64, reading.host_out.packets as f64);
        Self {
            mbit_per_s: rounded(growth::mean_bytes_per_s(&watched.arrived) * 8.0 / 1e6, 1),
            full_rate_ms: reached.map(|time| (time.as_secs_f64() * 1e3).round()),
            full_rate_rounds: u64::from(reached.is_some()),
            rounds: 1,
            acks_per_segment: rounded(ratio(acks as f64, data as f64), 3),
            per_delivery: rounded(per_delivery, 1),
            cpu_s_per_gb: rounded(ratio(watched.cpu.as_secs_f64(), gigabytes), 2),
            retransmissions: watched.retransmissions,
            lost: reading.nic_in.impaired.lost + reading.host_in.impaired.lost,
            inserted_acks: reading.split.as_ref().map_or(0, |split| split.inserted),
            dropped: dropped.iter().sum::<u64>()
                + reading.host_out.dropped
                + reading.nic_out.dropped,
            window: growth::curve(&watched.windows, SEGMENT_BYTES, MOST_POINTS),
        }
    }
}

/// Frames that the network releases together to a receiver: the paper's aggregation limit.
pub(super) const SPLIT_FRAMES: u32 = 20;
/// Frames whose ACKs arrive together at a sender, more than the largest setting. With longer gaps, CUBIC would
/// take a gap of 2 ms between ACKs for the end of a train and leave slow start by chance.
pub(super) const KEEP_FRAMES: u32 = 80;
/// Share of the link's payload rate that counts as full rate.
const FULL_SHARE: f64 = 0.9;
/// Window over which the rate is measured: three round trips of the slowest network, so that a packet train
/// does not pass for a rate.
const FULL_FOR: Duration = Duration::from_millis(60);
const MOST_POINTS: usize = 400;
/// Minimum, default and maximum of a socket buffer, in bytes: more than the link and its queue ever hold.
const BUFFERS: &str = "4096 16777216 16777216";
/// Receive low-water mark. It makes Linux acknowledge every second segment, as RFC 9293 requires, instead of
/// waiting for a slow reader; 2 ms of data at 1 Gbit/s.
const LOW_WATER_BYTES: usize = 256 * 1024;
const BETWEEN_POINTS: Duration = Duration::from_millis(5);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_network_is_bad_in_one_way() {
        for network in Network::ALL {
            let [data, acks] = network.impairments(1_000, 4);
            assert_eq!((data.rate_bytes_per_s, data.seed), (Some(1_000), 5));
            assert_eq!((acks.rate_bytes_per_s, acks.loss_ppm), (None, 0));
            assert_eq!(data.loss_ppm > 0, network == Network::Loss);
            let delayed = if network == Network::Delay { ROUND_TRIP } else { Duration::ZERO };
            assert_eq!(data.delay + acks.delay, delayed);
        }
    }
}
