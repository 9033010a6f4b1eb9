//! Tests that settings and devices that do not fit together are refused before the first frame, in one line
//! with the remedy.

use std::time::Duration;

use rxo::device::{MemorySink, MemorySource};
use rxo::worker::Directions;
use rxo::{Duplex, LinkKind, MemoryLink, MemoryOptions, Misfit, Policy, Worker, WorkerConfig};
use rxo_coalesce::{TunnelRule, UdpRule};

const USUAL: MemoryOptions = MemoryOptions {
    link: LinkKind::Ethernet,
    mtu: 1_500,
    gso_bytes: 65_535,
    segments_udp: false,
    segments_tunnels: false,
    most_packets: 8,
    expands_acks: false,
};
const NO_GSO: MemoryOptions = MemoryOptions { gso_bytes: 0, ..USUAL };

fn device(source: MemoryOptions, sink: MemoryOptions) -> Duplex<MemorySource, MemorySink> {
    Duplex { source: MemoryLink::new(source).source(), sink: MemoryLink::new(sink).sink() }
}

fn between(
    nic: MemoryOptions,
    host: MemoryOptions,
    config: WorkerConfig,
) -> Result<WorkerConfig, Misfit> {
    let worker = Worker::new(device(nic, nic), device(host, host), config)?;
    Ok(worker.config().clone())
}

fn config(policy: Policy) -> WorkerConfig {
    WorkerConfig::new(policy)
}

#[test]
fn a_misfit_is_one_line_with_its_remedy() {
    let gro = || config(Policy::linux_gro());
    let raw_ip = MemoryOptions { link: LinkKind::RawIp, ..USUAL };
    let jumbo = MemoryOptions { mtu: 9_000, ..USUAL };
    let rows = [
        (
            between(USUAL, raw_ip, gro()),
            "the nic carries Ethernet frames and the host's device IP packets; give two",
        ),
        (
            between(USUAL, jumbo, gro()),
            "MTU mismatch: the nic has 1500 and the host's device 9000; make them equal",
        ),
        (
            between(NO_GSO, NO_GSO, gro()),
            "policy linux-gro does not fit the host's device, which takes no packet larger than its MTU of 1500; choose policy none",
        ),
        (
            between(USUAL, USUAL, config(Policy::remember())),
            "policy remember does not fit the host's device: the merged",
        ),
        (between(USUAL, USUAL, config(ack_records())), "pure_acks=record of policy linux-gro does"),
        (
            between(USUAL, NO_GSO, config(Policy::none())),
            "the nic gives GSO frames, and the host's device cannot segment them",
        ),
        (
            between(NO_GSO, USUAL, config(Policy::none())),
            "the host's device gives GSO frames, and the nic cannot",
        ),
        (
            between(USUAL, USUAL, WorkerConfig { budget_frames: 0, ..gro() }),
            "budget_frames is 0; choose 1",
        ),
        (
            between(USUAL, USUAL, WorkerConfig { host_budget_frames: 70_000, ..gro() }),
            "host_budget_frames is 70000",
        ),
        (
            between(USUAL, USUAL, WorkerConfig { ack_split: Some(0), ..gro() }),
            "ack_split: every is 0; choose 1 to 64",
        ),
        (
            between(
                USUAL,
                USUAL,
                WorkerConfig { ack_split: Some(2), directions: Directions::ToNic, ..gro() },
            ),
            "ack_split needs to see what the host is given",
        ),
        (
            between(USUAL, USUAL, config(Policy { flows: 0, ..Policy::linux_gro() })),
            "flows is 0; choose 1 to 4096",
        ),
    ];
    for (result, begins) in rows {
        let line = result.unwrap_err().to_string();
        assert!(line.starts_with(begins) && !line.contains('\n'), "{line}");
    }
}

#[test]
fn reports_without_a_time_between_them_are_refused() {
    let with = |every| WorkerConfig { report_every: every, ..config(Policy::linux_gro()) };
    let refused = between(USUAL, USUAL, with(Some(Duration::ZERO))).unwrap_err().to_string();
    assert_eq!(refused, "report_every is 0ns; it must be at least 1ms, or none");
    for every in [None, Some(Duration::from_millis(1))] {
        assert!(between(USUAL, USUAL, with(every)).is_ok());
    }
}

fn ack_records() -> Policy {
    Policy { pure_acks: rxo_coalesce::PureAckRule::Record, ..Policy::linux_gro() }
}

#[test]
fn every_policy_but_those_that_need_records_fits_a_sink_that_segments() {
    for policy in Policy::all() {
        let fits = between(USUAL, USUAL, config(policy));
        assert_eq!(fits.is_err(), policy.needs_records, "{}", policy.name);
    }
}

#[test]
fn without_segmentation_single_frames_can_be_carried() {
    assert!(between(NO_GSO, NO_GSO, config(Policy::none())).is_ok());
}

#[test]
fn the_engine_keeps_to_what_the_sink_takes() {
    let small = MemoryOptions { gso_bytes: 32_768, ..USUAL };
    let raw_ip = MemoryOptions { link: LinkKind::RawIp, ..small };
    let config = between(raw_ip, raw_ip, config(Policy::linux_gro())).unwrap();
    assert_eq!(config.engine.policy.max_bytes, 32_768);
    assert_eq!(config.engine.link, LinkKind::RawIp);
    assert_eq!(config.engine.batch_frames, config.budget_frames);
}

#[test]
fn udp_is_coalesced_where_the_sink_segments_it_and_refused_where_it_cannot() {
    let udp = MemoryOptions { segments_udp: true, ..USUAL };
    let with = |rule| config(Policy { udp: rule, ..Policy::linux_gro() });
    let decided =
        |sink, rule| between(sink, sink, with(rule)).map(|config| config.engine.policy.udp).ok();
    assert_eq!(Policy::linux_gro().udp, UdpRule::Auto);
    assert_eq!(decided(udp, UdpRule::Auto), Some(UdpRule::Equal));
    assert_eq!(decided(USUAL, UdpRule::Auto), Some(UdpRule::Off));
    assert_eq!(decided(udp, UdpRule::Equal), Some(UdpRule::Equal));
    assert_eq!(decided(udp, UdpRule::Off), Some(UdpRule::Off));
    let refused = between(USUAL, USUAL, with(UdpRule::Equal)).unwrap_err();
    assert_eq!(refused, Misfit::NoUdpSegmentation { policy: "linux-gro" });
    let line = refused.to_string();
    assert!(line.contains("choose udp=off") && !line.contains('\n'), "{line}");
}

#[test]
fn tunnels_are_coalesced_where_the_sink_segments_them_and_refused_where_it_cannot() {
    let tunnels = MemoryOptions { segments_tunnels: true, ..USUAL };
    let with = |rule| config(Policy { tunnels: rule, ..Policy::linux_gro() });
    let decided = |sink, rule| {
        between(sink, sink, with(rule)).map(|config| config.engine.policy.tunnels).ok()
    };
    assert_eq!(decided(tunnels, TunnelRule::Auto), Some(TunnelRule::On));
    assert_eq!(decided(USUAL, TunnelRule::Auto), Some(TunnelRule::Off));
    assert_eq!(decided(tunnels, TunnelRule::On), Some(TunnelRule::On));
    assert_eq!(decided(tunnels, TunnelRule::Off), Some(TunnelRule::Off));
    let refused = between(USUAL, USUAL, with(TunnelRule::On)).unwrap_err();
    assert_eq!(refused, Misfit::NoTunnelSegmentation { policy: "linux-gro" });
    let line = refused.to_string();
    assert!(line.contains("choose tunnels=off") && !line.contains('\n'), "{line}");
}

#[test]
fn only_what_is_served_has_to_fit() {
    let to_nic = WorkerConfig { directions: Directions::ToNic, ..config(Policy::remember()) };
    assert!(between(USUAL, NO_GSO, to_nic).is_ok());
}
