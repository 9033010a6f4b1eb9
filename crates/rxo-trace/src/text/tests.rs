use super::*;
use crate::report::{
    Advice, Choice, Decision, Distribution, FlowReport, LinuxAdvice, Outcome, ReasonCount, Report,
    Source, Sweep, Traffic, Tried,
};
use crate::sweep::SweepAxis;

fn outcome(eliminated: u64) -> Outcome {
    Outcome {
        policy: "linux-gro".into(),
        poll: "time:50us".into(),
        packets: 10_000,
        deliveries: 10_000 - eliminated,
        aggregates: 100,
        eliminated,
        eliminated_per_10_000: eliminated as f64,
        segments_per_aggregate: Distribution { mean: 21.5, p50: 20, p99: 32, ..Default::default() },
        hold_ns: Distribution {
            count: 1,
            p50: 1_500,
            p99: 80_000,
            max: 90_000,
            ..Default::default()
        },
        flushed: vec![ReasonCount {
            reason: "psh".into(),
            count: 4,
            share: 0.5,
            meaning: "a segment with PSH".into(),
            remedy: Some("--set psh=keep".into()),
        }],
        ..Outcome::default()
    }
}

fn report() -> Report {
    Report {
        decision: Decision {
            sentence: "Worth it: it saves much.".into(),
            packets: 10_000,
            deliveries: 2_500,
            fewer_packets: 0.75,
            cores_without: Some(0.096),
            cores_with: Some(0.043),
            poll: "time:50us".into(),
            ..Decision::default()
        },
        sources: vec![Source { name: "a.pcap".into(), format: "pcap".into(), ..Source::default() }],
        traffic: Traffic { packets: 10_000, duration_ns: 1_000_000_000, ..Traffic::default() },
        outcome: outcome(7_500),
        flows: vec![FlowReport {
            source: "10.0.0.1:1".into(),
            packets: 9,
            deliveries: 3,
            ..Default::default()
        }],
        partial: Some("interrupted after 10,000 packets".into()),
        notes: vec!["something to know".into()],
        ..Report::default()
    }
}

#[test]
fn the_summary_says_what_was_eliminated_and_what_ended_it() {
    let text = text(&report());
    for part in [
        "packets     75.0 % fewer for the host's stack: 2,500 deliveries of 10,000 packets, with --poll",
        "cores       0.096 busy with receiving at this rate without coalescing, 0.043 with it",
        "decision    Worth it",
        "capture     a.pcap (pcap): 0 packets",
        "7,500 of 10,000 packets, 7500 of 10,000; 2,500 deliveries are left, 4.00 packets each",
        "21.5 packets (p50 20, p99 32)",
        "p50 1.50 us, p99 80.0 us",
        "a segment with PSH; --set psh=keep",
        "* PARTIAL: interrupted after 10,000 packets",
        "* something to know",
    ] {
        assert!(text.contains(part), "{part} is not in\n{text}");
    }
}

#[test]
fn one_is_singular_in_the_summary() {
    let mut report = report();
    (report.decision.packets, report.decision.deliveries) = (1, 1);
    let Report { traffic, outcome, .. } = &mut report;
    (traffic.packets, traffic.bytes, traffic.flows, traffic.pure_acks) = (1, 1, 1, 1);
    (outcome.packets, outcome.deliveries, outcome.eliminated) = (1, 1, 0);
    (outcome.tunnelled, outcome.tunnelled_deliveries) = (1, 1);
    outcome.settings = ["max_segments", "flows"].map(|name| (name.into(), "1".into())).into();
    traffic.filtered_packets = 1;
    report.sources[0].packets = 1;
    report.filter = Some("tcp".into());
    let text = text(&report);
    for part in [
        "1 delivery of 1 packet, with --poll",
        "a.pcap (pcap): 1 packet in",
        "tcp; 1 packet left out",
        "traffic     1 packet, 1 byte, 1 TCP flow, ",
        "with data, 1 pure ACK (",
        "linux-gro, 1 segment, 1 flow, hold",
        "0 of 1 packet, 7500 of 10,000; 1 delivery is left",
        "1 TCP segment inside VXLAN and Geneve in 1 delivery",
    ] {
        assert!(text.contains(part), "{part} is not in\n{text}");
    }
}

#[test]
fn a_sweep_is_a_list_or_a_grid() {
    let axis = |key: &str, values: [&str; 2]| SweepAxis {
        key: key.into(),
        values: values.map(Into::into).into(),
    };
    let one =
        Sweep { axes: vec![axis("flows", ["1", "4"])], outcomes: [10, 20].map(outcome).into() };
    let text = sweep::text(&one);
    assert!(text.contains("\n4              20         20           21.5"), "{text}");
    let axes = vec![axis("flows", ["1", "4"]), axis("psh", ["close", "keep"])];
    let two = Sweep { axes, outcomes: [10, 20, 30, 40].map(outcome).into() };
    let text = sweep::text(&two);
    let lines: Vec<&str> = text.lines().rev().take(3).map(str::trim).collect();
    assert_eq!(
        lines,
        ["4               30    40", "1               10    20", "flows \\ psh  close  keep"],
        "{text}"
    );
}

#[test]
fn the_answer_comes_first_and_what_is_no_prediction_is_called_so() {
    let mut report = report();
    let begin = text(&report);
    assert!(begin.starts_with("packets     75.0 % fewer for the host's stack"), "{begin}");
    report.decision.is_hypothetical = true;
    assert!(text(&report).starts_with("packets     no prediction: 75.0 % fewer"));
    report.decision.cores_with = None;
    assert!(text(&report).contains("cores       unknown"));
}

#[test]
fn advice_is_given_only_where_there_is_something_to_gain() {
    let choice = Choice {
        key: "flows".into(),
        value: "4".into(),
        eliminated_per_10_000: 960.0,
        share_of_best: 0.96,
        tried: vec![Tried { value: "4".into(), eliminated_per_10_000: 960.0 }],
    };
    let linux =
        LinuxAdvice { commands: vec!["ethtool -C IF rx-usecs 50".into()], ..Default::default() };
    let given = Advice {
        wanted_share: 0.95,
        choices: vec![choice.clone()],
        linux: Some(linux),
        ..Advice::default()
    };
    let text = advice::text(&given).unwrap();
    assert!(text.contains("reach 95 % of the best") && text.contains("rx-usecs 50"), "{text}");
    let nothing = Choice { eliminated_per_10_000: 0.0, ..choice };
    assert!(advice::text(&Advice { choices: vec![nothing], ..given }).is_none());
}
