use super::driver::{copies, table_v};
use super::guest::{guest_copies, guest_share, table_iv};
use super::virtual_time::{aggregates, holds, table_vii};
use super::*;
use crate::xen::paper;
use crate::xen::plan::FULL_LOAD;
use crate::xen::traffic::{SEGMENT_BYTES, Traffic};
use crate::xen::virtual_time;

fn cost(system: System, frames_a_poll: f64, instructions_a_byte: f64) -> Cost {
    let is_linear = matches!(system, System::Lro | System::Da);
    Cost {
        system,
        frames_a_poll,
        instructions_a_byte,
        instructions_a_frame: instructions_a_byte * SEGMENT_BYTES as f64,
        copies: if is_linear { 2.0 } else { 1.0 },
        pieces: 2.55,
        packets_an_aggregate: 2.55,
    }
}

fn costs(share: f64) -> Vec<Cost> {
    let polls = [paper::FRAMES_A_POLL, FULL_LOAD];
    let value = |system| match system {
        System::Xen => 1.0,
        System::Lro | System::Bo => 0.9,
        _ => share,
    };
    let each = |system| polls.map(|frames| cost(system, frames, value(system)));
    System::DOMAINS.into_iter().flat_map(each).collect()
}

fn verdicts(figure: &Figure) -> Vec<Option<bool>> {
    figure.statements.iter().map(|statement| statement.holds).collect()
}

#[test]
fn the_bars_of_the_driver_domain_are_judged() {
    assert_eq!(verdicts(&table_v(&costs(0.2))), [Some(true); 3]);
    assert_eq!(verdicts(&table_v(&costs(0.3))), [Some(true), Some(false), Some(true)]);
    assert_eq!(verdicts(&table_v(&costs(0.95))), [Some(false); 3]);
    assert_eq!(verdicts(&table_v(&[])), [None; 3]);
}

#[test]
fn a_copy_too_many_is_seen() {
    assert_eq!(verdicts(&copies(&costs(0.2))), [Some(true)]);
    let mut wrong = costs(0.2);
    wrong[1].copies = 1.5;
    assert_eq!(verdicts(&copies(&wrong)), [Some(false)]);
}

#[test]
fn on_virtual_time_the_papers_rate_and_requests_hold() {
    let traffic = Traffic::new(5_000, SEGMENT_BYTES).unwrap();
    let rate = |system| virtual_time::rate(system, paper::FRAMES_A_POLL, &traffic).unwrap();
    let rates: Vec<_> = System::DOMAINS.map(rate).to_vec();
    assert_eq!(verdicts(&aggregates(&rates)), [Some(true)]);
    assert_eq!(verdicts(&holds(&rates))[0], Some(true), "{rates:?}");
    let requests = Traffic::new(50, 1).unwrap();
    let exchange = |system| virtual_time::exchange(system, &requests).unwrap();
    let exchanges: Vec<_> = System::DOMAINS.map(exchange).to_vec();
    assert_eq!(verdicts(&table_vii(&exchanges)), [Some(true); 2]);
}

fn guests(share: f64) -> Vec<GuestCost> {
    let polls = [paper::FRAMES_A_POLL, FULL_LOAD];
    let of = |system, frames_a_poll| GuestCost {
        system,
        frames_a_poll,
        instructions_a_byte: if system == System::Xen { 4.0 } else { 4.0 * share },
        copying_a_byte: if system == System::Bo { 0.4 } else { 0.3 },
        packets_an_aggregate: 2.55,
        copies: 1.0,
    };
    let each = |system| polls.map(|frames| of(system, frames));
    System::DOMAINS.into_iter().flat_map(each).collect()
}

#[test]
fn the_bars_of_the_guest_are_judged() {
    assert_eq!(verdicts(&guest_share(&guests(0.25))), [Some(true); 2]);
    assert_eq!(verdicts(&guest_share(&guests(0.5))), [Some(true), Some(false)]);
    assert_eq!(verdicts(&guest_share(&[])), [None; 2]);
    assert_eq!(verdicts(&guest_copies(&guests(0.5))), [Some(true)]);
}

#[test]
fn the_rate_is_linuxs_share_of_what_the_link_carries() {
    let figure = table_iv(&costs(0.2), &guests(0.5));
    let derived: Vec<_> = figure.series[0].values.iter().map(|v| v.unwrap().round()).collect();
    // Linux: 4 a byte. Xen: 5, LRO: 2.9, DA: 2.2, more than the link carries.
    assert_eq!(derived, [721.0, 577.0, 941.0, 941.0, 941.0, 941.0, 941.0]);
    assert_eq!(verdicts(&figure), [Some(true)]);
    assert_eq!(verdicts(&table_iv(&costs(0.2), &guests(1.0))), [Some(false)]);
}

#[test]
fn a_busy_machine_permits_verdicts_on_what_guests_have_no_part_in() {
    use crate::experiment::Findings;
    use crate::xen::findings::Found;
    let measured = Measured { costs: costs(0.2), guests: guests(0.25), ..Measured::default() };
    let verdicts = |found: &Found| found.paragraphs().join("\n").matches("holds: ").count();
    let mut found = Found::new(measured, Vec::new());
    let all = verdicts(&found);
    found.withhold();
    let kept = verdicts(&found);
    // Three of Table V and one of copies.
    assert!(kept == 4 && all > kept, "{kept} of {all}");
}

#[test]
fn nothing_measured_is_no_figure() {
    assert!(all(&Measured::default()).is_empty());
}
