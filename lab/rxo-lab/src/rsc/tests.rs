use serde_json::{Value, json};

use super::examine::{BUFFERS_KB, ENTRIES, WINDOWS};
use super::*;
use crate::claim::Claim;
use crate::conclude::tests::{concluded, verdicts};
use crate::figure::Figure;
use crate::flags::typed;

fn of(line: &str) -> Result<Study> {
    study(&typed::<RscFlags>(line)?)
}

#[test]
fn without_flags_it_is_the_papers_experiments() {
    assert_eq!(of("").unwrap().each_step(), [36, 5 * 2 * 6 * 4]);
    assert_eq!(of("--quick").unwrap().each_step(), [6, 8]);
}

#[test]
fn captures_that_were_brought_are_studied_and_nothing_else() {
    let folder = rxo_peers::Folder::new("brought").unwrap();
    std::fs::write(folder.file("mine.pcap"), "").unwrap();
    let path = folder.file("");
    let brought = of(&format!("--captures {}", path.display())).unwrap();
    assert_eq!((brought.each_step(), brought.needs_networks), (vec![1, 0], false));
    let both = of(&format!("--captures {} --only captures,cpu", path.display())).unwrap();
    assert_eq!((both.each_step()[1] > 0, both.needs_networks), (true, true));
}

#[test]
fn an_invalid_value_is_named_with_valid_ones() {
    let rows = [
        ("--packets 100", "--packets 100: choose 500 to 200000"),
        ("--rate 5000", "--rate 5000: choose 10 to 1000"),
        ("--burst 0", "--burst 0: choose 1 to 64"),
        ("--rounds 0", "--rounds 0: choose 1 to 1000"),
        ("--seconds 1h", "--seconds 1h: choose 0.1s to 60s"),
        ("--keep Cargo.toml", "--keep Cargo.toml: that is a file"),
        ("--captures src --only cpu", "--captures is for the part captures"),
        ("--captures src", "--captures src: there is no file named *.pcap"),
        ("--captures nowhere", "--captures nowhere: cannot be read"),
    ];
    for (flags, message) in rows {
        let error = of(flags).err().unwrap().to_string();
        assert!(error.starts_with(message), "{error}");
    }
}

/// Makes an examined capture with the paper's values.
fn examined(connections: usize, payload_kb: usize) -> Value {
    let eliminated = match (connections, payload_kb) {
        (_, 2) => 4_900.0,
        (16, 8) => 7_600.0,
        (_, 8) => 7_900.0,
        _ => 7_000.0,
    };
    let mut by_buffer = [eliminated; BUFFERS_KB.len()];
    if payload_kb > 4 {
        by_buffer[0] = 4_500.0;
    }
    json!({
        "name": format!("{connections}-{payload_kb}"), "eliminated": eliminated, "by_buffer": by_buffer,
        "condition": { "connections": connections, "payload_kb": payload_kb },
        "by_entries": ENTRIES.map(|entries| eliminated * (1.0 - 0.1 / f64::from(entries).powi(3))),
        "by_window": WINDOWS.map(|packets| 8_000.0 - 24_000.0 / f64::from(packets)),
    })
}

fn all() -> Vec<Value> {
    let conditions = CONNECTIONS.into_iter();
    conditions.flat_map(|count| PAYLOADS_KB.map(|kb| examined(count, kb))).collect()
}

fn figures(captures: Vec<Value>) -> Vec<Figure> {
    concluded("rsc", json!({ "captures": captures })).0
}

#[test]
fn as_in_the_paper_every_statement_holds() {
    let figures = figures(all());
    for (number, count) in [("4", 5), ("5", 1), ("6", 1), ("7", 2), ("8", 3)] {
        assert_eq!(verdicts(&figures, number), vec![Some(true); count], "figure {number}");
    }
    let most = figures[0].series.iter().find(|series| series.is_reference).unwrap();
    assert_eq!(most.values[2], Some(8_333.0), "six segments in a buffer: {figures:?}");
}

/// Each change makes one statement fail, with a reason or a value.
#[test]
fn every_statement_can_fail() {
    type Change = fn(&mut Value);
    let rows: [(&str, usize, Change); 12] = [
        ("4", 0, |it| it["eliminated"] = 3_000.0.into()),
        ("4", 1, |it| it["eliminated"] = 9_000.0.into()),
        ("4", 2, |it| {
            let more = it["condition"]["connections"].as_f64().unwrap() * 200.0;
            it["eliminated"] = (it["by_window"][0].as_f64().unwrap() + more).into();
        }),
        ("4", 3, |it| it["eliminated"] = 7_000.0.into()),
        ("4", 4, |it| it["eliminated"] = 7_000.0.into()),
        ("5", 0, |it| it["eliminated"] = 4_000.0.into()),
        ("6", 0, |it| it["by_entries"][2] = 100.0.into()),
        ("7", 0, |it| it["by_buffer"][0] = 100.0.into()),
        ("7", 1, |it| it["by_buffer"][0] = it["by_buffer"][1].clone()),
        ("8", 0, |it| it["by_window"][2] = 100.0.into()),
        ("8", 1, |it| it["by_window"][4] = (it["by_window"][2].as_f64().unwrap() + 100.0).into()),
        ("8", 2, |it| it["by_window"][5] = 9_900.0.into()),
    ];
    for (number, place, change) in rows {
        let mut captures = all();
        captures.iter_mut().for_each(change);
        let found = verdicts(&figures(captures), number);
        assert_eq!(found[place], Some(false), "figure {number}, {place}");
    }
}

/// Few connections that are captured leave a claim about many open, but not one that fails.
#[test]
fn too_few_connections_decide_nothing_but_what_fails() {
    let of = |eliminated: f64| {
        let mut capture = examined(16, 8);
        capture["eliminated"] = eliminated.into();
        let figures = figures(vec![capture]);
        (verdicts(&figures, "5")[0], verdicts(&figures, "4")[2], figures[1].claims[0].line())
    };
    let (half, variation, line) = of(7_600.0);
    assert_eq!((half, variation), (None, None), "one number of connections does not vary");
    assert!(line.contains("Only [16] of [16, 30, 60, 90] connections were captured."), "{line}");
    assert_eq!(of(4_000.0).0, Some(false));
}

#[test]
fn captures_of_others_are_lines_of_figures_6_to_8() {
    let mut other = examined(16, 8);
    (other["condition"], other["name"]) = (Value::Null, "mine.pcap".into());
    let (figures, claims) = concluded("rsc", json!({ "captures": [other] }));
    let numbers: Vec<&str> = figures.iter().map(|figure| figure.number).collect();
    assert_eq!(numbers, ["6", "7", "8"]);
    assert!(figures.iter().all(|figure| figure.series[0].name == "mine.pcap"));
    assert!(claims.is_empty(), "{claims:?}");
}

/// Makes a cost in percent of a core at the paper's rate, with the sender's rate.
fn cost(pace: &str, payload_kb: usize, level: &str, percent: f64, gbit_per_s: f64) -> Value {
    json!({
        "pace": pace, "payload_kb": payload_kb, "level": level, "ns_per_byte": percent / 11.875,
        "gbit_per_s": gbit_per_s,
    })
}

fn of_costs(costs: Vec<Value>) -> (Vec<Figure>, Vec<Claim>) {
    concluded("rsc", json!({ "costs": costs }))
}

#[test]
fn savings_are_points_at_one_pace_and_shares_at_the_other() {
    let levels = [("Regular", 40.0), ("RSC_2", 37.0), ("RSC_5", 36.0)];
    let at = |pace| levels.map(|(level, percent)| cost(pace, 8, level, percent, 1.0));
    let figures = of_costs([at("one-gbit"), at("unlimited")].concat()).0;
    // 3 and 4 points, where the paper has at least 2 and 5.
    assert_eq!(verdicts(&figures, "10"), [Some(true), Some(false)]);
    let line = figures[0].claims[1].line();
    assert!(line.contains("By payload: 4.0 with 8 KB."), "{line}");
    assert_eq!(verdicts(&figures, "12"), [Some(true), None, Some(true)], "without RSC_3");
    assert!(of_costs(Vec::new()).0.is_empty());
}

#[test]
fn points_without_the_papers_rate_are_in_no_verdict() {
    let all = [
        cost("one-gbit", 2, "Regular", 90.0, 0.94),
        cost("one-gbit", 2, "RSC_2", 190.0, 0.4),
        cost("one-gbit", 8, "Regular", 22.0, 0.94),
        cost("one-gbit", 8, "RSC_2", 19.0, 0.94),
    ];
    let figures = of_costs(all.to_vec()).0;
    // 2 KB is invalid and left out; there RSC_2 would cost 100 points.
    assert_eq!(verdicts(&figures, "10"), [Some(true), None], "{:?}", figures[0].claims);
    assert_eq!(figures[0].series[1].invalid, [true, false]);
    assert_eq!(figures[0].series[0].invalid, [false, false]);
    let condition = figures[0].condition.as_deref().unwrap();
    assert!(condition.ends_with("the sender reached 0.40 to 0.40 with 2 KB."), "{condition}");
    assert!(of_costs(all[2..].to_vec()).0[0].condition.is_none());
    let (figures, _) = of_costs(all[1..2].to_vec());
    assert_eq!(verdicts(&figures, "10"), [None; 2], "nothing to compare with");
}

/// Makes costs of packets that are delivered `k` at a time.
fn packets(all: &[(usize, &str, f64, f64)]) -> (Vec<Figure>, Vec<Claim>) {
    let row = |&(payload_kb, level, k, ns): &(usize, &str, f64, f64)| {
        json!({
            "pace": "unlimited", "payload_kb": payload_kb, "level": level, "packets_per_delivery": k,
            "ns_per_packet": ns, "packet_bytes": 1_500.0, "gbit_per_s": 5.0,
        })
    };
    of_costs(all.iter().map(row).collect())
}

/// On the line 200 + 800/k a packet of 12,000 bits takes a microsecond with k = 1. Costs with small payloads are
/// left out.
#[test]
fn costs_on_a_line_are_projected() {
    let (figures, claims) = packets(&[
        (64, "Regular", 1.0, 1_000.0),
        (64, "RSC_2", 2.0, 600.0),
        (64, "RSC_5", 4.0, 400.0),
        (2, "Regular", 1.0, 10_000.0),
        (2, "RSC_2", 2.0, 1_000.0),
    ]);
    let figure = figures.iter().find(|figure| figure.number == "projection").unwrap();
    let at = |series: usize, rate: &str| {
        figure.series[series].values[figure.x.iter().position(|x| x == rate).unwrap()].unwrap()
    };
    assert_eq!((figure.series[2].name.as_str(), figure.verdicts()), ("RSC_5", vec![Some(true)]));
    assert!((at(0, "100") - 100.0 / 12.0).abs() < 0.01, "{figure:?}");
    assert!((at(2, "100") / at(0, "100") - 0.4).abs() < 0.01, "{figure:?}");
    let line = claims.last().unwrap().line();
    assert!(line.contains("200 ns + 800 ns / k, in writes of 64 KB."), "{line}");
}

#[test]
fn costs_that_do_not_fall_say_nothing() {
    let is_projected = |all| packets(all).0.iter().any(|figure| figure.number == "projection");
    assert!(!is_projected(&[(8, "Regular", 1.0, 500.0), (8, "RSC_2", 2.0, 600.0)]));
    assert!(!is_projected(&[(8, "Regular", 1.0, 500.0)]));
}
