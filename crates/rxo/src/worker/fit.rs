//! Fit: checks that two devices and a configuration work together.
//!
//! The check precedes the first frame, so that a policy never applies only in part, and no frame is received
//! that cannot be delivered.

use std::time::Duration;

use rxo_coalesce::{Policy, PureAckRule, TunnelRule, UdpRule};
use rxo_device::{FrameSink, FrameSource, SinkCapabilities, SourceCapabilities};
use rxo_frame::{ConfigError, LinkKind};
use thiserror::Error;

use super::{Directions, Duplex, WorkerConfig};

/// The reason why a worker cannot run between two devices. The message is one line, with the remedy.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum Misfit {
    /// One device has Ethernet headers and the other does not.
    #[error(
        "the nic carries {} and the host's device {}; give two that carry the same, such as \
         packet:IFNAME with tap:NAME", carries(.nic), carries(.host)
    )]
    Link {
        /// The link layer of the frames that the nic receives.
        nic: LinkKind,
        /// The link layer of the frames of the host's device.
        host: LinkKind,
    },
    /// The two devices have different MTUs.
    #[error(
        "MTU mismatch: the nic has {nic} and the host's device {host}; make them equal with \
         `ip link set NAME mtu {nic}`"
    )]
    Mtu {
        /// The nic's MTU, in bytes.
        nic: u32,
        /// The MTU of the host's device, in bytes.
        host: u32,
    },
    /// The host's device accepts no aggregates.
    #[error(
        "policy {policy} does not fit the host's device, which takes no packet larger than its MTU \
         of {mtu}; choose policy none"
    )]
    NoSegmentation {
        /// The name of the policy.
        policy: &'static str,
        /// The MTU of the host's device, in bytes.
        mtu: u32,
    },
    /// The policy requires a receiver that reads records of each segment, because the merged header alone
    /// would mislead it.
    #[error(
        "policy {policy} does not fit the host's device: the merged header hides windows and \
         timestamps, and the stack behind the device cannot read them from a record; choose policy \
         linux-gro"
    )]
    NeedsRecords {
        /// The name of the policy.
        policy: &'static str,
    },
    /// The policy requires a receiver that reads records of each ACK, because one ACK alone would hide the
    /// others.
    #[error(
        "pure_acks=record of policy {policy} does not fit the host's device: the stack behind the \
         device cannot read the records of aggregated ACKs; choose pure_acks=single"
    )]
    NeedsAckRecords {
        /// The name of the policy.
        policy: &'static str,
    },
    /// The host's device cannot segment UDP aggregates.
    #[error(
        "udp=equal of policy {policy} does not fit the host's device, which does not segment UDP (a TAP \
         or TUN does from Linux 6.2 on); choose udp=off, or udp=auto to coalesce UDP where the device can"
    )]
    NoUdpSegmentation {
        /// The name of the policy.
        policy: &'static str,
    },
    /// The host's device cannot segment TCP aggregates inside tunnels.
    #[error(
        "tunnels=on of policy {policy} does not fit the host's device, which does not segment TCP inside \
         tunnels (a TAP does from Linux 6.17 on); choose tunnels=off, or tunnels=auto to coalesce it where \
         the device can"
    )]
    NoTunnelSegmentation {
        /// The name of the policy.
        policy: &'static str,
    },
    /// One device receives GSO frames that the other device cannot send, because the other device does not segment.
    #[error(
        "the {from} gives GSO frames, and the {to} cannot segment them; switch them off with \
         `ethtool -K NAME gro off gso off tso off` or choose another device"
    )]
    Gso {
        /// The name of the device that receives GSO frames.
        from: &'static str,
        /// The name of the device that cannot send GSO frames.
        to: &'static str,
    },
    /// The number of the switch's ports differs from the number of devices.
    #[error("the switch has {ports} ports for {devices} devices; make one for each")]
    Ports {
        /// The number of ports of the switch.
        ports: usize,
        /// The number of devices: the nic and the guests.
        devices: usize,
    },
    /// A number in the configuration of the worker or of its engine is out of range.
    #[error(transparent)]
    Number(#[from] ConfigError),
    /// The interval between reports is shorter than 1 ms.
    #[error("report_every is {0:?}; it must be at least 1ms, or none")]
    ReportEvery(Duration),
    /// ACK splitting requires both directions in one worker.
    #[error(
        "ack_split needs to see what the host is given and what it sends; serve both directions in \
         one worker, or set it to none"
    )]
    SplitNeedsBoth,
    /// A number in the configuration of ACK splitting is out of range.
    #[error("ack_split: {0}")]
    Split(ConfigError),
}

/// The minimum interval between two reports.
const SHORTEST_REPORT: Duration = Duration::from_millis(1);

/// The maximum number of frames in a batch that can be configured.
const MOST_BUDGET_FRAMES: u64 = 32_768;

/// Checks that the devices and the configuration fit together. Limits the policy in `config` to the aggregates that the
/// host's sink accepts.
///
/// # Errors
/// The first misfit found.
pub(super) fn check<NI, NO, HI, HO>(
    nic: &Duplex<NI, NO>,
    host: &Duplex<HI, HO>,
    config: &mut WorkerConfig,
) -> Result<(), Misfit>
where
    NI: FrameSource,
    NO: FrameSink,
    HI: FrameSource,
    HO: FrameSink,
{
    if config.directions.to_host() {
        let (source, sink) = (nic.source.capabilities(), host.sink.capabilities());
        check_link((source.link, source.mtu), (sink.link, sink.mtu))?;
        check_gso(source, sink, ("nic", "host's device"))?;
        config.engine.policy = carried(config.engine.policy, sink)?;
        config.engine.link = source.link;
    }
    if config.directions.to_nic() {
        let (source, sink) = (host.source.capabilities(), nic.sink.capabilities());
        check_link((sink.link, sink.mtu), (source.link, source.mtu))?;
        check_gso(source, sink, ("host's device", "nic"))?;
    }
    if config.ack_split.is_some() && config.directions != Directions::Both {
        return Err(Misfit::SplitNeedsBoth);
    }
    check_report(config.report_every)?;
    check_report(config.look_every)?;
    ConfigError::check([
        ("budget_frames", config.budget_frames as u64, 1, MOST_BUDGET_FRAMES),
        ("host_budget_frames", config.host_budget_frames as u64, 1, MOST_BUDGET_FRAMES),
    ])?;
    config.engine.batch_frames = config.budget_frames;
    Ok(())
}

/// Checks that the interval between two reports is long enough. `None` is valid.
///
/// # Errors
/// If the interval is too short.
pub(super) fn check_report(every: Option<Duration>) -> Result<(), Misfit> {
    every.filter(|every| *every < SHORTEST_REPORT).map_or(Ok(()), |it| Err(Misfit::ReportEvery(it)))
}

fn check_link(nic: (LinkKind, u32), host: (LinkKind, u32)) -> Result<(), Misfit> {
    if nic.0 != host.0 {
        return Err(Misfit::Link { nic: nic.0, host: host.0 });
    }
    if nic.1 != host.1 {
        return Err(Misfit::Mtu { nic: nic.1, host: host.1 });
    }
    Ok(())
}

fn check_gso(
    source: SourceCapabilities,
    sink: SinkCapabilities,
    (from, to): (&'static str, &'static str),
) -> Result<(), Misfit> {
    if source.gives_gso && sink.gso_bytes == 0 {
        return Err(Misfit::Gso { from, to });
    }
    Ok(())
}

/// Returns `policy` reduced to the capabilities of a sink: its aggregates are not larger than the sink accepts, and
/// where the policy leaves this open, UDP and TCP inside tunnels are coalesced only if the sink can segment them. The
/// capabilities of a kind of sink are known before a sink is open, so a misfit can be reported before anything is
/// changed.
///
/// # Errors
/// If the sink lacks something that the policy requires.
pub fn carried(policy: Policy, sink: SinkCapabilities) -> Result<Policy, Misfit> {
    if !policy.coalesce {
        return Ok(policy);
    }
    if policy.needs_records {
        return Err(Misfit::NeedsRecords { policy: policy.name });
    }
    if policy.pure_acks == PureAckRule::Record {
        return Err(Misfit::NeedsAckRecords { policy: policy.name });
    }
    if sink.gso_bytes == 0 {
        return Err(Misfit::NoSegmentation { policy: policy.name, mtu: sink.mtu });
    }
    if policy.udp == UdpRule::Equal && !sink.segments_udp {
        return Err(Misfit::NoUdpSegmentation { policy: policy.name });
    }
    if policy.tunnels == TunnelRule::On && !sink.segments_tunnels {
        return Err(Misfit::NoTunnelSegmentation { policy: policy.name });
    }
    let max_bytes = policy.max_bytes.min(sink.gso_bytes);
    let decided = policy.with_udp_if(sink.segments_udp).with_tunnels_if(sink.segments_tunnels);
    Ok(Policy { max_bytes, ..decided })
}

const fn carries(link: &LinkKind) -> &'static str {
    match link {
        LinkKind::Ethernet => "Ethernet frames",
        LinkKind::RawIp => "IP packets",
    }
}
