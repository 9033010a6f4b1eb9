use serde_json::json;

use super::*;
use crate::conclude::tests::{concluded, verdicts};
use crate::flags::typed;

#[test]
fn parts_are_measured_alone_and_all_without_flags() {
    let of = |line: &str| study(&typed(line).unwrap());
    let steps = |line: &str| of(line).unwrap().each_step();
    assert_eq!(steps("--rounds 1"), [12, 22, 6, 4, 2]);
    assert_eq!(steps("--only cost"), [12, 0, 0, 0, 0]);
    assert_eq!(steps("--only simulation"), [3, 22, 0, 0, 0], "it needs the costs");
    assert_eq!(steps("--only knee,real"), [0, 0, 60, 40, 2]);
    assert_eq!(steps("--quick"), [6, 4, 4, 2, 2]);
    assert_eq!(steps("--counted"), [6, 4, 0, 0, 0]);
    assert!(!of("--only cost,simulation").unwrap().needs_networks);
    assert!(of("--only knee").unwrap().needs_networks);
    let error = of("--rounds 0").err().unwrap().to_string();
    assert_eq!(error, "--rounds 0: choose 1 to 100");
}

/// Returns the verdicts on the costs of an ACK to 168 receivers by the stack, by the paper's change, and by rxo's best:
/// instructions (the same in each component), cycles and misses.
fn judged(mechanism: [f64; 3], best: [f64; 3], number: &str) -> Vec<Option<bool>> {
    let all = Way::ALL.into_iter().zip([[1_000.0, 3_000.0, 9.0], mechanism, best]);
    let costs = all.map(|(way, [ack, cycles, misses])| {
        let parts = json!({ "RX": ack / 2.0, "sync": ack / 2.0 });
        json!({ "way": way, "receivers": MOST, "ack": ack, "parts": parts, "cycles": cycles, "misses": misses })
    });
    verdicts(&concluded("smo", json!({ "costs": Vec::from_iter(costs) })).0, number)
}

/// The paper's verdicts are on its change alone, whatever rxo's best saves.
#[test]
fn the_papers_change_is_judged_apart_from_our_best() {
    let (yes, no) = (Some(true), Some(false));
    let (good, bad) = ([400.0, 1_000.0, 1.0], [900.0, 2_000.0, 1.0]);
    assert_eq!(judged(good, good, "6"), [yes; 5]);
    assert_eq!(judged(bad, good, "6"), [no, no, no, yes, yes], "locks with the instructions");
    assert_eq!(judged([400.0, 2_000.0, 1.0], bad, "6"), [yes, no, yes, no, no]);
    assert!(
        judged(good, good, "8 on one core").is_empty(),
        "the paper's misses are of several cores"
    );
}

#[test]
fn growth_at_a_chosen_rate_is_a_calibration() {
    let ends = |way: Way, grown| {
        [(FEWEST, 110.0), (MOST, 110.0 * (1.0 + grown))]
            .map(|(receivers, percent)| json!({ "way": way, "receivers": receivers, "percent": percent }))
    };
    for [with, without] in [[0.02, 0.2], [0.05, 0.03]] {
        let knee = [ends(Way::Fast, with), ends(Way::Stack, without)].concat();
        let (figures, claims) = concluded("smo", json!({ "knee": knee }));
        assert_eq!(verdicts(&figures, "5 at the knee"), [None; 2]);
        assert_eq!(claims.len(), 2);
        let quartiles: usize = figures[0].series.iter().map(|it| it.quartiles.len()).sum();
        assert_eq!(quartiles, 4, "a box at each end of both lines: {figures:?}");
    }
}

/// A receiver that was killed must be reported, and all others must have the file.
#[test]
fn hardship_needs_the_report_of_the_one_that_was_killed() {
    let verdict = |right, is_reported| {
        let row =
            json!({ "way": "fast", "receivers": 168, "right": right, "is_reported": is_reported });
        concluded("smo", json!({ "hardship": [row] })).1[0].holds()
    };
    assert_eq!(verdict(169, true), Some(true));
    assert_eq!((verdict(168, true), verdict(169, false)), (Some(false), Some(false)));
}
