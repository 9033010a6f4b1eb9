//! A live interface: its settings, and the effect of coalescing at the rates that it had.

use serde::Serialize;

/// An interface that was watched live.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Live {
    /// The name of the interface.
    pub interface: String,
    /// The time for which the interface was watched, in nanoseconds.
    pub watched_ns: u64,
    /// The settings with which the host receives today.
    pub settings: HostSettings,
    /// The number of deliveries to the host's stack as the host is.
    pub frames: u64,
    /// The number of those frames that the host, or a sender on this machine, had merged.
    pub merged_frames: u64,
    /// The number of packets in `merged_frames`.
    pub merged_packets: u64,
    /// The number of frames that arrived while the analysis was behind. No other number counts them.
    pub lost_packets: u64,
    /// The length of the steps of time from which rates are computed, in nanoseconds.
    pub step_ns: u64,
    /// All packets first, then the addresses that receive a tenth of the packets or more, most packets first.
    pub receivers: Vec<LiveReceiver>,
}

/// The settings with which a Linux host receives. `None` where the driver or the kernel does not report one.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct HostSettings {
    /// The name of the driver.
    pub driver: Option<String>,
    /// `true` if the kernel merges received packets (GRO).
    pub gro: Option<bool>,
    /// `true` if the device merges received packets (LRO).
    pub lro: bool,
    /// The time from a packet to the device's interrupt, in microseconds.
    pub rx_usecs: Option<u32>,
    /// The number of packets after which the device interrupts at once; 0 for no such number.
    pub rx_frames: Option<u32>,
    /// `true` if the driver adapts `rx_usecs` to the traffic.
    pub is_adaptive: bool,
    /// The time after a poll until the next one while interrupts stay off, in nanoseconds.
    pub gro_flush_timeout_ns: Option<u64>,
    /// The number of empty polls in a row after which interrupts are switched on again.
    pub napi_defer_hard_irqs: Option<u64>,
}

/// The packets for one address, or all packets of a live interface.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct LiveReceiver {
    /// The receiving address; `None` for all packets of the interface.
    pub address: Option<String>,
    /// The number of packets.
    pub packets: u64,
    /// The number of deliveries as the host is.
    pub frames: u64,
    /// The number of deliveries under the chosen policy.
    pub deliveries: u64,
    /// The effect at the median, the 95th percentile and the peak of the rate.
    pub rates: Vec<LiveRate>,
}

/// The effect of coalescing at one rate.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct LiveRate {
    /// The name of the rate: `median`, `p95` or `peak`, over steps of time.
    pub rate: String,
    /// The number of packets per second.
    pub packets_per_second: f64,
    /// Bits on the wire per second, in 10^9.
    pub gbit_per_second: f64,
    /// The number of cores that are busy with receiving without any coalescing.
    pub cores_without: f64,
    /// The number of cores that are busy with receiving as the host is.
    pub cores_today: f64,
    /// The number of cores that are busy with receiving under the chosen policy.
    pub cores_with: f64,
    /// `true` if the chosen policy saves 1 % of a core or more, compared with the host as it is.
    pub is_worth_it: bool,
}
