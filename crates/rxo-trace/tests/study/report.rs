//! The report for traffic that was generated for this purpose.

use rxo_capture::{Interface, LinkType, Record};
use rxo_testkit::{Workload, arp, seg, udp, vxlan};
use rxo_trace::report::Protocol;
use rxo_trace::study::{ChecksumMode, Settings, Study};
use rxo_trace::text::text;

use crate::traffic::{ethernet, generated, point, record, records, settings, study};

/// Returns consecutive full segments of one flow.
fn train(count: u32) -> Vec<Record> {
    let packets: Vec<_> =
        (0..count).map(|n| seg().id(n as u16).seq(1 + n * 1_000).len(1_000)).collect();
    records(&packets)
}

#[test]
fn the_traffic_is_what_went_in() {
    let packets = [
        seg().seq(1).len(1_000),
        seg().seq(1_001).len(1_000),
        seg().flow(1).pure_ack().ack(10),
        seg().flow(1).pure_ack().ack(20),
        seg().flow(1).pure_ack().ack(20),
        udp(),
        arp(),
        seg().flow(2).syn().len(0),
    ];
    let report = study(settings(point("linux-gro", "packets:64")), &ethernet(), &records(&packets));
    let traffic = report.traffic;
    assert_eq!((traffic.packets, traffic.flows, traffic.tcp_packets), (8, 4, 6));
    assert_eq!((traffic.udp_flows, traffic.udp_packets), (1, 1));
    assert_eq!((traffic.data_segments, traffic.pure_acks), (2, 3));
    assert_eq!(traffic.aggregatable_pure_acks, 1, "the third is a duplicate");
    assert_eq!((traffic.duration_ns, traffic.started_at_ns), (7_000, 1_000));
    assert_eq!((report.outcome.eliminated, report.outcome.deliveries), (1, 7));
    assert!((report.outcome.eliminated_per_10_000 - 1_250.0).abs() < 1e-9);
    assert_eq!(report.flows[0].pure_acks, 3, "the flow with most packets comes first");
}

/// Returns datagrams of 1,200 bytes as QUIC sends them, then a TCP flow with the same addresses and ports.
fn quic(count: u32) -> Vec<Record> {
    let datagrams = (0..count).map(|n| udp().id(n as u16).len(1_200));
    let segments = (0..count).map(|n| seg().id(n as u16).seq(1 + n * 500).len(500));
    records(&datagrams.chain(segments).collect::<Vec<_>>())
}

#[test]
fn udp_is_coalesced_unless_told_otherwise_and_counts_beside_tcp() {
    let chosen = point("linux-gro", "packets:64");
    let report = study(settings(chosen), &ethernet(), &quic(64));
    let traffic = &report.traffic;
    assert_eq!((traffic.udp_packets, traffic.tcp_packets), (64, 64));
    assert_eq!((traffic.flows, traffic.udp_flows), (2, 1));
    assert_eq!((traffic.checksums.right, traffic.checksums.wrong), (128, 0));
    let of = |protocol| report.flows.iter().find(|flow| flow.protocol == protocol).unwrap();
    for (protocol, bytes, deliveries) in
        [(Protocol::Udp, 64 * 1_200, 2), (Protocol::Tcp, 64 * 500, 1)]
    {
        let flow = of(protocol);
        assert_eq!((flow.packets, flow.payload_bytes, flow.deliveries), (64, bytes, deliveries));
    }
    assert!(report.outcome.settings.contains(&("udp".to_owned(), "equal".to_owned())));
    assert!(report.notes.iter().any(|note| note.contains("rx-udp-gro-forwarding")));

    let mut without = chosen;
    without.policy.set("udp", "off").unwrap();
    let report = study(settings(without), &ethernet(), &quic(64));
    assert_eq!((report.outcome.eliminated, report.outcome.deliveries), (63, 65));
    assert_eq!(report.outcome.bypassed[0].reason, "not_tcp");
    assert!(report.notes.is_empty(), "{:?}", report.notes);
}

#[test]
fn tcp_inside_tunnels_is_coalesced_unless_told_otherwise_and_counted() {
    let segment = |n: u32| {
        let outer = vxlan().checksum().id(n as u16);
        seg().seq(n * 1_400).len(1_400).id(n as u16).within(outer)
    };
    let packets: Vec<_> = (0..64).map(segment).collect();
    let chosen = point("linux-gro", "packets:64");
    let report = study(settings(chosen), &ethernet(), &records(&packets));
    let outcome = &report.outcome;
    assert_eq!((outcome.packets, outcome.deliveries), (64, 2), "at most 65,535 bytes each");
    assert_eq!((outcome.tunnelled, outcome.tunnelled_deliveries), (64, 2));
    assert!(report.notes.iter().any(|note| note.contains("Linux 6.17")), "{:?}", report.notes);
    let text = text(&report);
    assert!(text.contains("64 TCP segments inside VXLAN and Geneve in 2 deliveries"), "{text}");

    let mut without = chosen;
    without.policy.set("tunnels", "off").unwrap();
    let report = study(settings(without), &ethernet(), &records(&packets));
    let outcome = &report.outcome;
    assert_eq!((outcome.deliveries, outcome.tunnelled, outcome.eliminated), (64, 0, 0));
    assert_eq!(outcome.bypassed[0].reason, "udp_tunnel");
}

#[test]
fn unfinished_checksums_of_datagrams_are_accepted_on_request() {
    let packets: Vec<_> = (0..10).map(|n| udp().id(n).len(1_200).partial()).collect();
    for (checksums, eliminated) in [(ChecksumMode::Verify, 0), (ChecksumMode::Partial, 9)] {
        let settings = Settings { checksums, ..settings(point("linux-gro", "packets:64")) };
        let report = study(settings, &ethernet(), &records(&packets));
        assert_eq!(report.traffic.checksums.unfinished, 10, "{checksums}");
        assert_eq!(report.outcome.eliminated, eliminated, "{checksums}");
    }
}

#[test]
fn cut_packets_are_counted_apart_and_coalesced_only_when_trusted() {
    let cut: Vec<Record> = train(64)
        .iter()
        .map(|whole| Record { bytes: whole.bytes.as_ref()[..96].to_vec().into(), ..whole.clone() })
        .collect();
    let with = |checksums| {
        let settings = Settings { checksums, ..settings(point("linux-gro", "packets:64")) };
        study(settings, &ethernet(), &cut)
    };
    for mode in [ChecksumMode::Verify, ChecksumMode::Partial] {
        let report = with(mode);
        assert_eq!(report.outcome.eliminated, 0, "{mode}");
        assert_eq!((report.traffic.cut_packets, report.traffic.checksums.cut), (64, 64));
        assert_eq!(report.outcome.bypassed[0].reason, "truncated");
        assert!(report.notes[0].contains("--checksum trust"), "{:?}", report.notes);
    }
    let whole = study(settings(point("linux-gro", "packets:64")), &ethernet(), &train(64));
    let trusted = with(ChecksumMode::Trust);
    assert!(trusted.outcome.eliminated > 60);
    assert_eq!(trusted.outcome.eliminated, whole.outcome.eliminated);
    assert_eq!(trusted.flows[0].payload_bytes, 64_000, "sizes are those on the wire");
    assert_eq!(trusted.traffic.bytes, whole.traffic.bytes);
}

#[test]
fn interfaces_are_devices_of_their_own() {
    let link = |link| Interface { link, snap_bytes: None, name: None };
    let interfaces = [link(LinkType::ETHERNET), link(LinkType::RAW)];
    let both: Vec<Record> = (0..40_u32)
        .map(|n| {
            let packet = seg().id(n as u16 / 2).seq(1 + n / 2 * 1_000).len(1_000);
            let packet = if n % 2 == 0 { packet } else { packet.raw_ip() };
            Record { interface: n % 2, ..record(packet.bytes(), u64::from(n) * 100) }
        })
        .collect();
    let report = study(settings(point("linux-gro", "packets:64")), &interfaces, &both);
    // On one device, each segment would have arrived twice, and nothing would have been merged.
    assert_eq!((report.outcome.aggregates, report.outcome.eliminated), (2, 38));
}

#[test]
fn captures_in_a_row_go_on_where_the_last_ended() {
    let records = train(64);
    let point = point("linux-gro", "packets:64");
    let one = study(settings(point), &ethernet(), &records);
    let mut two = Study::new(settings(point)).unwrap();
    for (name, half) in [("a", &records[..20]), ("b", &records[20..])] {
        two.begin_source(name);
        two.take(&ethernet(), &mut half.to_vec());
        two.end_source("pcap", None);
    }
    let two = two.finish(None);
    assert_eq!(two.sources.iter().map(|source| source.packets).collect::<Vec<_>>(), [20, 44]);
    assert_eq!(format!("{:?}", two.outcome), format!("{:?}", one.outcome));
}

#[test]
fn captures_that_have_nothing_to_do_with_each_other_are_kept_apart() {
    const YEAR_NS: u64 = 31_536_000_000_000_000;
    let early = train(40);
    let late: Vec<Record> = (0..40_u32)
        .map(|n| {
            let packet = seg().id(40 + n as u16).seq(1 + (40 + n) * 1_000).len(1_000);
            record(packet.bytes(), YEAR_NS + u64::from(n) * 1_000)
        })
        .collect();
    for captures in [[&early, &late], [&late, &early]] {
        let mut study = Study::new(settings(point("linux-gro", "packets:64"))).unwrap();
        for capture in captures {
            study.begin_source("a");
            study.take(&ethernet(), &mut capture.clone());
        }
        let report = study.finish(None);
        // Each capture has forty packets: no poll and no aggregate crosses the boundary.
        assert_eq!((report.outcome.aggregates, report.outcome.packets_per_poll.max), (2, 40));
        assert!(report.traffic.duration_ns < 1_000_000, "{}", report.traffic.duration_ns);
        assert_eq!(report.traffic.steps_back, 0);
    }
}

#[test]
fn damage_makes_it_partial_and_keeps_what_was_read() {
    let mut study = Study::new(settings(point("linux-gro", "packets:64"))).unwrap();
    study.begin_source("a.pcap");
    study.take(&ethernet(), &mut train(10));
    study.end_source("pcap", Some("a.pcap is damaged at byte 99".into()));
    study.refuse_source("b.txt", "b.txt is no capture");
    let report = study.finish(None);
    assert_eq!(report.partial.as_deref(), Some("a.pcap is damaged at byte 99"));
    assert_eq!((report.traffic.packets, report.sources.len()), (10, 2));
}

/// The advice on limits of segments is computed, and must be what engines with these limits give.
#[test]
fn computed_limits_are_what_engines_give() {
    for (kind, own) in [(Workload::W2, "32"), (Workload::W3, "7"), (Workload::Mixed, "64")] {
        let mut chosen = point("linux-gro", "time:100us");
        chosen.policy.set("max_segments", own).unwrap();
        let records = generated(kind, 6_000);
        let report = study(Settings::new(chosen), &ethernet(), &records);
        let choice = report.advice.unwrap().choices.remove(0);
        assert_eq!((choice.key.as_str(), choice.tried.len() >= 4), ("max_segments", true));
        for tried in choice.tried {
            let mut limited = chosen;
            limited.policy.set("max_segments", &tried.value).unwrap();
            let settings = Settings { advise: false, ..Settings::new(limited) };
            let outcome = study(settings, &ethernet(), &records).outcome;
            let (found, expected) = (tried.eliminated_per_10_000, outcome.eliminated_per_10_000);
            assert!(
                (found - expected).abs() < 1.0,
                "{kind:?}, {}: {found}, {expected}",
                tried.value
            );
        }
    }
}

#[test]
fn advice_names_the_smallest_settings_that_are_enough() {
    let settings = Settings::new(point("linux-gro", "time:50us"));
    let report = study(settings, &ethernet(), &generated(Workload::W2, 20_000));
    let advice = report.advice.unwrap();
    let keys: Vec<&str> = advice.choices.iter().map(|choice| choice.key.as_str()).collect();
    assert_eq!(keys, ["max_segments", "flows"]);
    for choice in &advice.choices {
        assert!(choice.share_of_best >= 0.95, "{choice:?}");
        assert!(choice.tried.len() >= 4, "{choice:?}");
    }
    assert!(advice.expected_share >= 0.95);
    let flows: u64 = advice.choices[1].value.parse().unwrap();
    assert!(flows >= 16, "16 flows take turns: {flows}");
    let linux = advice.linux.unwrap();
    assert_eq!(linux.rx_usecs, 50);
    assert!(linux.commands[0].starts_with("ethtool -C IF rx-usecs 50 "));
    // The advice describes the settings of the report.
    let gain = report.outcome.eliminated as f64 / report.outcome.packets as f64;
    assert!((linux.fewer_packets - gain).abs() < 1e-9);
    assert!((report.decision.fewer_packets - gain).abs() < 1e-9);
}

#[test]
fn the_answer_is_what_a_host_would_see_and_packets_are_no_prediction() {
    // Bursts of eight full segments every 200 µs: 40,000 packets per second.
    let bursts: Vec<Record> = (0..4_000_u32)
        .map(|n| {
            let packet = seg().id(n as u16).seq(1 + n * 1_000).len(1_000);
            record(packet.bytes(), u64::from(n / 8) * 200_000 + u64::from(n % 8) * 1_000)
        })
        .collect();
    let with = |poll| study(Settings::new(point("linux-gro", poll)), &ethernet(), &bursts);
    let seen = with("time:50us");
    assert!((seen.decision.fewer_packets - 7.0 / 8.0).abs() < 0.001, "{:?}", seen.decision);
    assert_eq!((seen.decision.is_worth_it, seen.decision.is_hypothetical), (Some(true), false));
    let advice = seen.advice.unwrap();
    let polls: Vec<(&str, f64)> =
        advice.polls.iter().map(|poll| (poll.poll.as_str(), poll.fewer_packets)).collect();
    assert_eq!(polls[0].0, "host:1us");
    assert!(polls.last().is_some_and(|(poll, most)| *poll == "time:500us" && *most > 0.9));
    assert!(advice.polls[0].is_today && !advice.polls[1].is_today);
    assert_eq!(advice.polls.iter().filter(|poll| poll.is_chosen).count(), 1);
    let most = with("packets:64");
    assert!(most.decision.is_hypothetical && most.decision.is_worth_it.is_none());
    assert!(most.decision.sentence.starts_with("No prediction: "), "{}", most.decision.sentence);
    assert!(most.advice.unwrap().linux.is_none(), "nothing is advised that no host would see");
}

#[test]
fn what_is_not_worth_it_is_not_advised() {
    let slow: Vec<Record> = (0..2_000_u32)
        .map(|n| {
            let packet = seg().id(n as u16).seq(1 + n * 1_000).len(1_000);
            record(packet.bytes(), u64::from(n / 2) * 100_000_000 + u64::from(n % 2) * 1_000)
        })
        .collect();
    let report = study(Settings::new(point("linux-gro", "time:50us")), &ethernet(), &slow);
    assert!(report.decision.fewer_packets > 0.4, "{:?}", report.decision);
    assert_eq!(report.decision.is_worth_it, Some(false));
    assert!(report.decision.sentence.starts_with("Not worth it: "), "{}", report.decision.sentence);
    assert!(report.advice.unwrap().linux.is_none());
}

#[test]
fn the_course_has_every_packet_and_every_delivery() {
    for (policy, poll) in
        [("linux-gro", "time:50us"), ("gallatin-2007", "packets:64"), ("none", "host:1us")]
    {
        let report =
            study(settings(point(policy, poll)), &ethernet(), &generated(Workload::W7, 20_000));
        let sum = |value: fn(&rxo_trace::report::CourseStep) -> u64| {
            report.course.steps.iter().map(value).sum::<u64>()
        };
        assert_eq!(sum(|step| step.packets), report.traffic.packets, "{policy}");
        assert_eq!(sum(|step| step.bytes), report.traffic.bytes, "{policy}");
        assert_eq!(sum(|step| step.deliveries), report.outcome.deliveries, "{policy}");
        assert!((64..=128).contains(&report.course.steps.len()), "{policy}");
    }
}

#[test]
fn each_capture_has_its_own_time() {
    let mut study = Study::new(settings(point("linux-gro", "time:50us"))).unwrap();
    for (name, at_ns) in [("a", 5_000_000_000), ("b", 90_000_000_000_000)] {
        study.begin_source(name);
        let packet = |n: u64| record(seg().id(n as u16).bytes(), at_ns + n * 1_000);
        study.take(&ethernet(), &mut (0..10).map(packet).collect());
        study.take(&ethernet(), &mut (10..20).map(packet).collect());
        study.end_source("pcap", None);
    }
    let sources = study.finish(None).sources;
    let times: Vec<_> =
        sources.iter().map(|source| (source.started_at_ns, source.duration_ns)).collect();
    assert_eq!(times, [(5_000_000_000, 19_000), (90_000_000_000_000, 19_000)]);
}

#[test]
fn without_coalescing_there_is_no_advice() {
    let settings = Settings::new(point("none", "packets:64"));
    assert!(study(settings, &ethernet(), &train(10)).advice.is_none());
}

/// As in live operation, a card that gathers packets gives them the time of its interrupt.
#[test]
fn what_is_held_for_a_time_is_held_from_the_interrupt_on() {
    let one = [record(seg().seq(1).len(1_000).bytes(), 0), record(arp().bytes(), 1_000_000)];
    for (poll, held_ns) in [("host:1us", 100_000), ("time:50us", 150_000)] {
        let mut point = point("linux-gro", poll);
        point.policy.set("hold", "100us").unwrap();
        let outcome = study(settings(point), &ethernet(), &one).outcome;
        assert_eq!(outcome.hold_ns.max, held_ns, "{poll}");
    }
}
