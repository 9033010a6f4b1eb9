use serde_json::{Value, json};

use super::*;
use crate::conclude::tests::{concluded, verdicts};
use crate::figure::Figure;
use crate::flags::typed;

#[test]
fn a_quick_run_leaves_cycles_out_unless_they_are_named() {
    let steps = |line: &str| study(&typed(line).unwrap()).map(|study| study.each_step());
    assert_eq!(steps("").unwrap(), [2 * 5 * 4, 4, 7 * 3]);
    assert_eq!(steps("--quick").unwrap(), [4, 0, 3]);
    assert_eq!(steps("--quick --only cycles").unwrap(), [0, 4, 0]);
    assert_eq!(steps("--counted").unwrap(), [4, 0, 0]);
    assert_eq!(steps("--only live --rounds 3").unwrap(), [0, 0, 9]);
    assert_eq!(steps("--rounds 101").unwrap_err().to_string(), "--rounds 101: choose 1 to 100");
}

const NAMES: [&str; 6] =
    ["driver RX", "network RX", "memory", "network TX", "driver TX", "application"];

/// Makes the cost of a way at a file size, with these components.
fn cost(way: Way, file_bytes: u64, parts: [f64; 6]) -> Value {
    let components =
        NAMES.into_iter().zip(parts).map(|(name, cost)| (name.to_owned(), Value::from(cost)));
    let (components, total) = (components.collect::<Value>(), parts.iter().sum::<f64>());
    json!({
        "way": way, "file_bytes": file_bytes, "acks": "second", "components": components, "total": total,
        "acks_a_request": 500.0, "pure_acks_percent": 99.8,
    })
}

/// Makes costs in which the fast path leaves the fraction `left` of driver RX, network RX and memory.
fn costs(left: f64) -> Vec<Value> {
    let of = |file_bytes: u64| {
        let size = file_bytes as f64 / (512 << 10) as f64;
        let of = |way, left: f64| {
            let receiving = [1e5 * left, 2e5 * left, 2e5 * left];
            let [driver, network, memory] = receiving.map(|part| part * size);
            cost(way, file_bytes, [driver, network, memory, 3e5 * size, 1e5 * size, 1e5])
        };
        [of(Way::Stack, 1.0), of(Way::FastPath, left), of(Way::Batches, left)]
    };
    [512 << 10, PROFILED_BYTES, 8 << 20].into_iter().flat_map(of).collect()
}

fn requests(costs: impl Into<Vec<Value>>) -> Vec<Figure> {
    concluded("paro", json!({ "costs": costs.into() })).0
}

/// Table 1 has the claims of five sizes, that in batches, and that about growth.
#[test]
fn verdicts_follow_from_the_counts() {
    let (saving, none) = (requests(costs(0.4)), requests(costs(1.0)));
    let (yes, no) = (Some(true), Some(false));
    let counted = |verdict| [verdict, None, verdict, None, verdict, verdict, verdict];
    assert_eq!(verdicts(&saving, "Table 1"), counted(yes));
    assert_eq!(verdicts(&none, "Table 1"), counted(no));
    assert_eq!(verdicts(&saving, "4"), [yes, yes]);
    assert_eq!(verdicts(&none, "4"), [no, no]);
    assert_eq!(verdicts(&saving, "ack"), [yes]);
    assert_eq!(verdicts(&none, "ack"), [no]);
    assert_eq!(verdicts(&saving, "1"), [yes; 3], "network RX, memory, pure ACKs");
}

/// The paper saves 14.0 % at 512 KB, and 16.7 % at 8 MB.
#[test]
fn each_size_is_held_to_its_own_value() {
    let (yes, no) = (Some(true), Some(false));
    let expected = [yes, None, yes, None, no, yes, no];
    let held = verdicts(&requests(costs(0.592)), "Table 1");
    assert_eq!(held, expected, "15.5 % each at the paper's mix, and 2.1 points more");
}

#[test]
fn a_share_is_held_to_a_range() {
    let of = |network: f64, memory: f64| {
        let parts = [0.0, network, memory, 100.0 - network - memory, 0.0, 0.0];
        verdicts(&requests([cost(Way::Stack, PROFILED_BYTES, parts)]), "1")
    };
    let (yes, no) = (Some(true), Some(false));
    assert_eq!(of(20.0, 18.0), [yes, yes, yes]);
    assert_eq!(of(54.0, 14.0), [no, yes, yes], "too much is no more right than too little");
    assert_eq!(of(14.0, 23.0), [no, no, yes]);
}

#[test]
fn a_saving_is_judged_at_the_papers_mix() {
    let text = requests(costs(0.9))[0].claims[0].line();
    assert!(text.starts_with("weaker") && text.contains(" 3.8 %,"), "{text}");
}

#[test]
fn cycles_are_figure_3_and_table_1_at_the_papers_mix() {
    let cycles = costs(0.3).into_iter().filter(|cost| cost["file_bytes"] == PROFILED_BYTES);
    let (figures, _) = concluded("paro", json!({ "cycles": Vec::from_iter(cycles) }));
    assert_eq!((figures.len(), verdicts(&figures, "3")), (1, vec![Some(true); 4]));
}

#[test]
fn live_rounds_that_do_not_agree_decide_nothing() {
    let of = |stack: [f64; 9], batches: [f64; 9]| {
        let rows =
            |way: Way, all: [f64; 9]| all.map(|us| json!({ "way": way, "us_a_request": us }));
        let windows = [rows(Way::Stack, stack), rows(Way::Batches, batches)].concat();
        verdicts(&concluded("paro", json!({ "windows": windows })).0, "live")
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
fn without_the_fast_path_there_are_table_1_and_figure_1() {
    let figures = requests([cost(Way::Stack, PROFILED_BYTES, [1.0; 6])]);
    let numbers: Vec<_> = figures.iter().map(|figure| figure.number).collect();
    assert_eq!(numbers, ["Table 1", "1"]);
}
