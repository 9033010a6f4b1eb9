use super::super::clients::Tally;
use super::super::server::Served;
use super::*;

/// Makes the cost of a way at a file size, with each component in thousands per request.
fn cost(way: Way, file_bytes: u64, thousands: [f64; 6]) -> Cost {
    let case = Case { way, file_bytes, acks: AckRate::Second };
    let tally =
        Tally { bytes: file_bytes, files: 1, segments: 1_000, acks: 500, packets: 501, again: 0 };
    let served = Served { tally, consumed: 500, calls: 50, turns: 60 };
    Cost::of(case, false, served, thousands.map(|count| 1e3 * count))
}

/// Makes costs in which the fast path leaves the fraction `left` of driver RX, network RX and memory.
fn costs(left: f64) -> Vec<Cost> {
    let of = |file_bytes: u64| {
        let size = file_bytes as f64 / (512 << 10) as f64;
        let of = |way, left: f64| {
            let receiving = [100.0 * left, 200.0 * left, 200.0 * left];
            let [driver, network, memory] = receiving.map(|part| part * size);
            cost(way, file_bytes, [driver, network, memory, 300.0 * size, 100.0 * size, 100.0])
        };
        [of(Way::Stack, 1.0), of(Way::FastPath, left), of(Way::Batches, left)]
    };
    [512 << 10, PROFILED_BYTES, 8 << 20].into_iter().flat_map(of).collect()
}

fn holds(figures: &[Figure], number: &str) -> Vec<Option<bool>> {
    let figure = figures.iter().find(|figure| figure.number == number).unwrap();
    figure.verdicts()
}

/// Table 1 has the claims of five sizes, that in batches, and that about growth.
#[test]
fn verdicts_follow_from_the_counts() {
    let of = |left| all(&Measured { costs: costs(left), ..Measured::default() });
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
    let between = all(&Measured { costs: costs(0.592), ..Measured::default() });
    let (yes, no) = (Some(true), Some(false));
    let held = holds(&between, "Table 1");
    let expected = [yes, None, yes, None, no, yes, no];
    assert_eq!(held, expected, "15.5 % each at the paper's mix, and 2.1 points more");
}

#[test]
fn a_share_is_held_to_a_range() {
    let of = |network: f64, memory: f64| {
        let parts = [0.0, network, memory, 100.0 - network - memory, 0.0, 0.0];
        let stack = vec![cost(Way::Stack, PROFILED_BYTES, parts)];
        holds(&all(&Measured { costs: stack, ..Measured::default() }), "1")
    };
    let (yes, no) = (Some(true), Some(false));
    assert_eq!(of(20.0, 18.0), [yes, yes, yes]);
    assert_eq!(of(54.0, 14.0), [no, yes, yes], "too much is no more right than too little");
    assert_eq!(of(14.0, 23.0), [no, no, yes]);
}

#[test]
fn an_ack_that_is_not_halved_says_what_batches_take() {
    let parts = |receiving: f64| [0.0, receiving, 0.0, 1_000.0, 0.0, 0.0];
    let of = |way, receiving| cost(way, PROFILED_BYTES, parts(receiving));
    let costs = vec![
        of(Way::Stack, 1_000.0),
        of(Way::FastPath, 800.0),
        of(Way::Records, 500.0),
        of(Way::Batches, 400.0),
    ];
    let figures = all(&Measured { costs, ..Measured::default() });
    let figure = figures.iter().find(|figure| figure.number == "ack").unwrap();
    let text = figure.claims[0].line();
    assert!(text.starts_with("weaker") && text.contains("takes 800, 40 %"), "{text}");
    assert!(text.contains("records, takes 1000."), "{text}");
}

#[test]
fn a_saving_is_judged_at_the_papers_mix() {
    let figures = all(&Measured { costs: costs(0.9), ..Measured::default() });
    let text = figures[0].claims[0].line();
    assert!(text.starts_with("weaker") && text.contains(" 3.8 %,"), "{text}");
}

#[test]
fn cycles_are_figure_3_and_instructions_figure_4() {
    let cycles = costs(0.3).into_iter().map(|cost| Cost { is_simulated: true, ..cost }).collect();
    let figures = all(&Measured { cycles, ..Measured::default() });
    assert_eq!(figures.len(), 1);
    assert_eq!(holds(&figures, "3"), [Some(true); 4], "and Table 1 at the paper's mix");
}

#[test]
fn live_rounds_that_do_not_agree_decide_nothing() {
    let windows = |all: [f64; 9]| {
        let of = |us_a_request| Window {
            us_a_request,
            gbit_per_s: 1.0,
            acks_a_segment: 0.1,
            requests: 10.0,
        };
        all.map(of).to_vec()
    };
    let of = |stack, batches| {
        let windows = vec![(Way::Stack, windows(stack)), (Way::Batches, windows(batches))];
        holds(&all(&Measured { windows, ..Measured::default() }), "live")
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
    assert!(all(&Measured::default()).is_empty());
    let stack_alone = vec![cost(Way::Stack, PROFILED_BYTES, [1.0; 6])];
    let figures = all(&Measured { costs: stack_alone, ..Measured::default() });
    assert!(figures.iter().all(|figure| figure.number == "Table 1" || figure.number == "1"));
}

#[test]
fn json_names_components_and_ways() {
    let window = Window { us_a_request: 1.5, gbit_per_s: 1.0, acks_a_segment: 0.1, requests: 10.0 };
    let cost = cost(Way::Stack, 2 << 20, [1.0, 2.0, 3.0, 4.0, 5.0, 6.0]);
    let windows = vec![(Way::Batches, vec![window])];
    let measured = Measured { costs: vec![cost], windows, ..Measured::default() };
    let json = serde_json::to_value(measured).unwrap();
    assert_eq!(json["costs"][0]["components"]["network_rx"], 2_000.0);
    assert_eq!(json["windows"]["batches"][0]["us_a_request"], 1.5);
}
