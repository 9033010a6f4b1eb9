use serde_json::json;

use super::*;
use crate::claim::Claim;
use crate::figure::Figure;
use crate::flags::typed;

#[test]
fn a_part_is_measured_alone() {
    for (line, steps) in [
        ("", 84 + 12 + 6 + 48 + 50 + 7 * 3 + 7 + 9),
        ("--only rate", 96),
        ("--only latency", 6),
        ("--only cost --quick", 11),
        ("--only throughput", 119),
        ("--only throughput --quick", 18),
        ("--only guests", 16),
        ("--only guests --quick", 2),
        ("--counted", 84 + 12 + 6 + 8),
    ] {
        let study = study(&typed(line).unwrap()).unwrap();
        let needs_guests = !["--only rate", "--only latency", "--counted"].contains(&line);
        assert_eq!((study.steps(), study.needs_networks), (steps, needs_guests), "{line}");
    }
}

/// Returns the figures and the claims over `rows`.
fn concluded(rows: Value) -> (Vec<Figure>, Vec<Claim>) {
    crate::conclude::tests::concluded("xen", rows)
}

fn holds(claims: &[Claim], id: &str) -> Option<bool> {
    claims.iter().find(|claim| claim.id() == id).and_then(Claim::holds)
}

#[test]
fn the_rate_is_linuxs_share_of_what_the_link_carries() {
    let row = |system: &str, value: f64, gro: bool| json!({ "system": system, "frames_a_poll": 2.55, "gro": gro, "instructions_a_byte": value });
    let costs = [("xen", 1.0), ("lro", 0.9), ("da", 0.2)].map(|(it, value)| row(it, value, true));
    let guest = |gro, share: f64| {
        let all = [("linux", 3.9), ("xen", 4.0), ("lro", 4.0 * share), ("da", 4.0 * share)];
        all.map(|(system, value)| row(system, value, gro))
    };
    let guests = [guest(true, 1.0), guest(false, 0.5)].concat();
    let machines = [300.0, 500.0, 100.0].map(|rate| json!({ "system": "da", "mbit_per_s": rate }));
    let (figures, claims) =
        concluded(json!({ "costs": costs, "guests": guests, "machines": machines }));
    let figure = figures.iter().find(|figure| figure.number == "Table IV").unwrap();
    let rounded = |series: usize| -> Vec<_> {
        figure.series[series].values.iter().map(|value| value.map(f64::round)).collect()
    };
    // Cost per byte: Linux 3.9, Xen 5, LRO 2.9, and DA 2.2, which is faster than the link.
    let of = |linux, xen, lro, da| [Some(linux), Some(xen), Some(lro), None, Some(da), None, None];
    assert_eq!(rounded(0), of(721.0, 562.0, 941.0, 941.0));
    // A guest that gains nothing from aggregation: LRO costs 4.9, DA 4.2.
    assert_eq!(rounded(1), of(721.0, 562.0, 574.0, 670.0));
    let measured = &figure.series[2];
    assert_eq!((measured.values[4], measured.ranges[4]), (Some(300.0), Some((100.0, 500.0))));
    let verdicts = ["da", "da.linux", "lro", "lro.linux"]
        .map(|id| holds(&claims, &format!("xen.table-iv.{id}")));
    assert_eq!(verdicts, [Some(true), Some(true), Some(true), Some(false)], "without GRO");
    assert_eq!(holds(&claims, "xen.table-v.total"), Some(false), "0.44 of Xen's");
}

#[test]
fn requests_are_judged_by_the_round_in_the_middle() {
    let latency = |p50: f64| json!({ "p50_us": p50, "p99_us": 2.0 * p50, "per_second": 1e6 / p50 });
    let judged = |autos: &[f64], held: u64| {
        let turn = |auto: &f64| json!([{ "system": "auto", "latency": latency(*auto), "xen": latency(100.0) }]);
        let rounds: Vec<Value> = autos.iter().map(turn).collect();
        let boot = json!({ "rounds": rounds, "auto_held": held, "hold_p99_us": 60.0 });
        let (_, claims) = concluded(json!({ "requests": [boot] }));
        ["xen.requests.auto", "xen.requests.auto.idle"].map(|id| holds(&claims, id))
    };
    let alike = [101.0, 100.0, 99.0, 101.0, 100.0, 101.5, 101.5];
    assert_eq!(judged(&alike, 0), [Some(true); 2]);
    assert_eq!(judged(&alike, 1), [Some(true), Some(false)], "one was held");
    // With seven values the minimum and maximum bound the median.
    assert_eq!(judged(&[101.0, 100.0, 99.0, 101.0, 100.0, 102.0, 300.0], 0)[0], None);
    assert_eq!(judged(&[103.0, 104.0, 105.0, 103.0, 104.0, 105.0, 103.0], 0)[0], Some(false));
    assert_eq!(judged(&alike[..5], 0)[0], None, "too few");
}

#[test]
fn payload_at_other_addresses_is_seen() {
    let judged = |bo: Value| {
        let row = |system: &str, alignment: Value| json!({ "system": system, "frames_a_poll": 2.55, "gro": true, "alignment": alignment });
        let guests = [row("lro", json!({ "14": 9 })), row("bo", bo)];
        let (figures, claims) = concluded(json!({ "guests": guests }));
        let x = figures.into_iter().find(|it| it.number == "alignment places").unwrap().x;
        (x, holds(&claims, "xen.alignment.places"))
    };
    assert_eq!(judged(json!({ "14": 3 })), (vec!["14".to_owned()], Some(false)));
    assert_eq!(
        judged(json!({ "14": 2, "50": 2 })),
        (vec!["14".to_owned(), "50".to_owned()], Some(true))
    );
}
