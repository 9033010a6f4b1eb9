//! Tests that every statement follows from the captures, and can fail.

use super::super::examine::Interleaving;
use super::*;

/// Makes an examined capture with the paper's values.
fn examined(connections: usize, payload_kb: usize) -> Examined {
    let eliminated = match (connections, payload_kb) {
        (_, 2) => 4_900.0,
        (16, 8) => 7_600.0,
        (_, 8) => 7_900.0,
        _ => 7_000.0,
    };
    let mut by_buffer = vec![eliminated; BUFFERS_KB.len()];
    if payload_kb > 4 {
        by_buffer[0] = 4_500.0;
    }
    let by_entries = ENTRIES.map(|entries| eliminated * (1.0 - 0.1 / f64::from(entries).powi(3)));
    Examined {
        name: format!("{connections}-{payload_kb}"),
        condition: Some(Condition { connections, payload_kb }),
        packets: 10_000,
        gbit_per_s: 0.2,
        lost_frames: 0,
        interleaving: Interleaving::default(),
        eliminated,
        flushed: Vec::new(),
        bypassed: Vec::new(),
        by_entries: by_entries.to_vec(),
        by_buffer,
        by_window: WINDOWS.map(|packets| 8_000.0 - 24_000.0 / f64::from(packets)).to_vec(),
        damage: None,
    }
}

fn all() -> Vec<Examined> {
    let conditions = [4, 8, 16, 30, 60, 90].into_iter();
    conditions.flat_map(|count| [2, 4, 8, 16, 32, 64].map(|kb| examined(count, kb))).collect()
}

fn verdicts(examined: &[Examined], number: &str) -> Vec<Option<bool>> {
    let figures = figures(&examined.iter().collect::<Vec<_>>());
    let figure = figures.iter().find(|figure| figure.number == number).unwrap();
    figure.verdicts()
}

#[test]
fn as_in_the_paper_every_statement_holds() {
    for (number, count) in [("4", 5), ("5", 1), ("6", 1), ("7", 2), ("8", 3)] {
        assert_eq!(verdicts(&all(), number), vec![Some(true); count], "figure {number}");
    }
}

/// Each change makes one statement fail, with a reason or a value.
#[test]
fn every_statement_can_fail() {
    type Change = fn(&mut Examined);
    let rows: [(&str, usize, Change); 12] = [
        ("4", 0, |e| e.eliminated = 3_000.0),
        ("4", 1, |e| e.eliminated = 9_000.0),
        ("4", 2, |e| {
            e.eliminated = e.by_window[0] + e.condition.unwrap().connections as f64 * 200.0
        }),
        ("4", 3, |e| e.eliminated = 7_000.0),
        ("4", 4, |e| e.eliminated = 7_000.0),
        ("5", 0, |e| e.eliminated = 4_000.0),
        ("6", 0, |e| e.by_entries[2] = 100.0),
        ("7", 0, |e| e.by_buffer[0] = 100.0),
        ("7", 1, |e| e.by_buffer[0] = e.by_buffer[1]),
        ("8", 0, |e| e.by_window[2] = 100.0),
        ("8", 1, |e| e.by_window[4] = e.by_window[2] + 100.0),
        ("8", 2, |e| e.by_window[5] = 9_900.0),
    ];
    for (number, place, change) in rows {
        let mut captures = all();
        captures.iter_mut().for_each(change);
        assert_eq!(verdicts(&captures, number)[place], Some(false), "figure {number}, {place}");
    }
}

#[test]
fn captures_of_others_are_lines_of_figures_6_to_8() {
    let other = Examined { condition: None, name: "mine.pcap".into(), ..examined(16, 8) };
    let figures = figures(&[&other]);
    let numbers: Vec<&str> = figures.iter().map(|figure| figure.number).collect();
    assert_eq!(numbers, ["6", "7", "8"]);
    for figure in &figures {
        assert_eq!(figure.series[0].name, "mine.pcap");
        assert!(figure.claims.is_empty(), "{figure:?}");
    }
}

#[test]
fn of_nothing_there_is_no_figure() {
    assert!(figures(&[]).is_empty());
}

#[test]
fn payloads_and_buffers_limit_what_can_be_eliminated() {
    // According to the paper (section 5.1), 8 KB hold five full segments and a remainder of about 890 bytes.
    let rows = [(2, 0.5), (4, 1.0 / 3.0), (8, 1.0 / 6.0), (16, 0.25), (32, 5.0 / 23.0), (64, 0.2)];
    for (payload_kb, left) in rows {
        let most = ceiling(payload_kb * 1_024);
        assert!((most - (1.0 - left) * 10_000.0).abs() < 1e-6, "{payload_kb} KB: {most}");
    }
}
