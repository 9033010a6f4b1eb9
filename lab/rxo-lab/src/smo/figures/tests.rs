use super::*;
use crate::smo::cost;

/// Makes the cost of an ACK: instructions (the same in each component), cycles and misses.
fn cost(way: Way, receivers: usize, [ack, cycles, misses]: [f64; 3]) -> Cost {
    Cost {
        case: cost::Case { way, receivers },
        parts: [ack / Category::ALL.len() as f64; Category::ALL.len()],
        ack,
        cycles: Some(cycles),
        misses: Some(misses),
        segment: 1.0,
        consumed: 0.0,
    }
}

fn holds(costs: &[Cost], number: &str) -> Vec<Option<bool>> {
    let figures = all(&Measured { costs: costs.to_vec(), ..Measured::default() });
    let figure = figures.iter().find(|figure| figure.number == number).unwrap();
    figure.verdicts()
}

/// Makes the costs of the stack, of the paper's change and of rxo's best, with 168 receivers.
fn three(mechanism: [f64; 3], best: [f64; 3]) -> Vec<Cost> {
    let stack = cost(Way::Stack, 168, [1_000.0, 3_000.0, 9.0]);
    vec![stack, cost(Way::Mechanism, 168, mechanism), cost(Way::Fast, 168, best)]
}

/// The paper's verdicts are on its change alone, whatever rxo's best saves.
#[test]
fn the_papers_change_is_judged_apart_from_our_best() {
    let of = |mechanism, best| holds(&three(mechanism, best), "6");
    let (yes, no) = (Some(true), Some(false));
    let (good, bad) = ([400.0, 1_000.0, 1.0], [900.0, 2_000.0, 1.0]);
    assert_eq!(of(good, good), [yes; 5]);
    assert_eq!(of(bad, good), [no, no, no, yes, yes], "synchronization with the instructions");
    assert_eq!(of([400.0, 2_000.0, 1.0], bad), [yes, no, yes, no, no]);
    let uncounted = three(good, good).into_iter().map(|cost| Cost { cycles: None, ..cost });
    let uncounted: Vec<Cost> = uncounted.collect();
    assert_eq!(holds(&uncounted, "6")[1], None, "cycles were not simulated");
}

/// The paper's misses are of several cores, while a cast has one.
#[test]
fn misses_are_shown_without_a_claim() {
    let costs = three([300.0, 500.0, 15.0], [300.0, 500.0, 10.0]);
    assert!(holds(&costs, "8 on one core").is_empty());
    assert!(holds(&costs, "6 in cycles").is_empty());
}

#[test]
fn growth_at_a_chosen_rate_is_a_calibration() {
    let ends = |way, grown| {
        [((way, paper::FEWEST), vec![110.0]), ((way, paper::MOST), vec![110.0 * (1.0 + grown)])]
    };
    for [with, without] in [[0.02, 0.2], [0.05, 0.03]] {
        let cells = [ends(Way::Fast, with), ends(Way::Stack, without)].concat();
        let claims = growths(AT_KNEE, &Values::of(cells));
        assert!(claims.iter().all(|claim| claim.holds().is_none()), "{claims:?}");
    }
}
