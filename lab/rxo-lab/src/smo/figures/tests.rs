use super::*;

/// Makes the cost of an ACK: instructions (the same in each component), cycles and misses.
fn cost(way: Way, receivers: usize, [ack, cycles, misses]: [f64; 3]) -> Cost {
    Cost {
        case: Case { way, receivers },
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

/// Makes the costs of the stack and of the fast path, with 168 receivers.
fn pair(stack: [f64; 3], fast: [f64; 3]) -> Vec<Cost> {
    vec![cost(Way::Stack, 168, stack), cost(Way::Fast, 168, fast)]
}

#[test]
fn instructions_and_cycles_are_judged_apart() {
    let of = |fast| holds(&pair([1_000.0, 3_000.0, 9.0], fast), "6");
    let (yes, no) = (Some(true), Some(false));
    assert_eq!(of([400.0, 1_000.0, 1.0]), [yes, yes, yes]);
    assert_eq!(of([400.0, 2_000.0, 1.0]), [yes, no, yes]);
    assert_eq!(of([900.0, 1_000.0, 1.0]), [no, yes, no], "synchronization with the instructions");
    let uncounted = pair([1_000.0; 3], [400.0; 3]).into_iter();
    let uncounted: Vec<Cost> = uncounted.map(|cost| Cost { cycles: None, ..cost }).collect();
    assert_eq!(holds(&uncounted, "6")[1], None, "cycles were not simulated");
}

/// The paper's misses are of several cores, while a cast has one.
#[test]
fn misses_are_shown_without_a_claim() {
    let few =
        [cost(Way::Stack, 88, [1_000.0, 2_000.0, 50.0]), cost(Way::Fast, 88, [300.0, 500.0, 10.0])];
    let many = pair([1_000.0, 3_000.0, 60.0], [300.0, 500.0, 15.0]);
    let costs = [&few[..], &many].concat();
    assert!(holds(&costs, "8 on one core").is_empty());
    let figures = all(&Measured { costs, ..Measured::default() });
    assert!(figures.iter().any(|figure| figure.number == "6 in cycles"));
}

#[test]
fn growth_at_a_chosen_rate_is_a_calibration() {
    let of = |[with, without]: [f64; 2]| {
        let percent = |way: Way, receivers: usize| {
            let grown = if way == Way::Fast { with } else { without };
            Some(if receivers == paper::MOST { 110.0 * (1.0 + grown) } else { 110.0 })
        };
        growths(AT_KNEE, percent).iter().map(Claim::text).collect::<Vec<_>>()
    };
    for one in of([0.02, 0.2]).iter().chain(&of([0.05, 0.03])) {
        assert!(one.starts_with("calibration "), "{one}");
    }
    assert!(of([0.02, 0.2])[1].contains("20.00 %"));
}
