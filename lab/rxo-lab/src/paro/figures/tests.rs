use super::super::clients::Tally;
use super::super::server::Served;
use super::*;

/// Makes the cost of a way at a file size, with each component in thousands per request.
fn cost(way: Way, file_bytes: u64, thousands: [f64; 6]) -> (Case, Vec<Cost>) {
    let case = Case { way, file_bytes, acks: AckRate::Second };
    let tally =
        Tally { bytes: file_bytes, files: 1, segments: 1_000, acks: 500, packets: 501, again: 0 };
    let served = Served { tally, consumed: 500, calls: 50, turns: 60 };
    let costs = thousands.map(|count| 1e3 * count);
    let costs = COMPONENTS.into_iter().zip(costs).collect();
    (case, vec![Cost::of(case, served, &costs)])
}

/// Makes costs in which the fast path leaves the fraction `left` of driver RX, network RX and memory.
fn costs(left: f64) -> Costs {
    let of = |file_bytes: u64| {
        let size = file_bytes as f64 / (512 << 10) as f64;
        let of = |way, left: f64| {
            let receiving = [100.0 * left, 200.0 * left, 200.0 * left];
            let [driver, network, memory] = receiving.map(|part| part * size);
            cost(way, file_bytes, [driver, network, memory, 300.0 * size, 100.0 * size, 100.0])
        };
        [of(Way::Stack, 1.0), of(Way::FastPath, left), of(Way::Batches, left)]
    };
    Costs::of([512 << 10, PROFILED_BYTES, 8 << 20].into_iter().flat_map(of).collect())
}

fn holds(figures: &[Figure], number: &str) -> Vec<Option<bool>> {
    let figure = figures.iter().find(|figure| figure.number == number).unwrap();
    figure.verdicts()
}

/// Table 1 has the claims of five sizes, that in batches, and that about growth.
#[test]
fn verdicts_follow_from_the_counts() {
    let of = |left| of_requests(&costs(left));
    let (saving, none) = (of(0.4), of(1.0));
    let (yes, no) = (Some(true), Some(false));
    let counted = |verdict| [verdict, None, verdict, None, verdict, verdict, verdict];
    assert_eq!(holds(&saving, "Table 1"), counted(yes));
    assert_eq!(holds(&none, "Table 1"), counted(no));
    assert_eq!(holds(&saving, "4"), [yes, yes]);
    assert_eq!(holds(&none, "4"), [no, no]);
    assert_eq!(holds(&saving, "ack"), [yes]);
    assert_eq!(holds(&none, "ack"), [no]);
    assert_eq!(holds(&saving, "1"), [yes; 3], "network RX, memory, pure ACKs");
}

/// The paper saves 14.0 % at 512 KB, and 16.7 % at 8 MB.
#[test]
fn each_size_is_held_to_its_own_value() {
    let between = of_requests(&costs(0.592));
    let (yes, no) = (Some(true), Some(false));
    let held = holds(&between, "Table 1");
    let expected = [yes, None, yes, None, no, yes, no];
    assert_eq!(held, expected, "15.5 % each at the paper's mix, and 2.1 points more");
}

#[test]
fn a_share_is_held_to_a_range() {
    let of = |network: f64, memory: f64| {
        let parts = [0.0, network, memory, 100.0 - network - memory, 0.0, 0.0];
        holds(&of_requests(&Costs::of(vec![cost(Way::Stack, PROFILED_BYTES, parts)])), "1")
    };
    let (yes, no) = (Some(true), Some(false));
    assert_eq!(of(20.0, 18.0), [yes, yes, yes]);
    assert_eq!(of(54.0, 14.0), [no, yes, yes], "too much is no more right than too little");
    assert_eq!(of(14.0, 23.0), [no, no, yes]);
}

#[test]
fn a_saving_is_judged_at_the_papers_mix() {
    let figures = of_requests(&costs(0.9));
    let text = figures[0].claims[0].line();
    assert!(text.starts_with("weaker") && text.contains(" 3.8 %,"), "{text}");
}

#[test]
fn cycles_are_figure_3_and_table_1_at_the_papers_mix() {
    let figures = of_cycles(&costs(0.3));
    assert_eq!((figures.len(), holds(&figures, "3")), (1, vec![Some(true); 4]));
}

#[test]
fn live_rounds_that_do_not_agree_decide_nothing() {
    let of = |stack: [f64; 9], batches: [f64; 9]| {
        let window = |us_a_request| Window {
            us_a_request,
            gbit_per_s: 1.0,
            acks_a_segment: 0.1,
            requests: 10.0,
        };
        let both = [(Way::Stack, stack), (Way::Batches, batches)];
        let windows = both.map(|(way, all)| (way, all.map(window).to_vec()));
        of_windows(&Cells::of(windows.to_vec())).unwrap().verdicts()
    };
    // The machine varies more between rounds than between ways.
    let stack = [100.0, 120.0, 90.0, 110.0, 130.0, 95.0, 105.0, 115.0, 125.0];
    assert_eq!(of(stack, stack.map(|us| us * 0.8)), [Some(true)]);
    assert_eq!(of(stack, stack.map(|us| us * 0.9)), [Some(false)], "less than the paper's");
    let mut mixed = stack.map(|us| us * 0.8);
    mixed[..4].iter_mut().for_each(|us| *us *= 1.2);
    assert_eq!(of(stack, mixed), [None]);
}

#[test]
fn what_was_not_measured_has_no_figure() {
    let nothing = Costs::of(Vec::new());
    assert!(of_requests(&nothing).is_empty() && of_cycles(&nothing).is_empty());
    let stack_alone = Costs::of(vec![cost(Way::Stack, PROFILED_BYTES, [1.0; 6])]);
    let figures = of_requests(&stack_alone);
    assert!(figures.iter().all(|figure| figure.number == "Table 1" || figure.number == "1"));
}
