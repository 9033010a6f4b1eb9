use super::driver::{copies, sweep, table_v};
use super::guest::{alignments, guest_copies, guest_share};
use super::totals::{shares, table_iv};
use super::virtual_time::{aggregates, holds, load, table_vii};
use super::*;
use crate::xen::guest::Alignment;
use crate::xen::guest::exchange::{Latency, Requests, Turn};
use crate::xen::guest::rate::GuestRate;
use crate::xen::guest::several::{Several, Share};
use crate::xen::paper;
use crate::xen::plan::FULL_LOAD;
use crate::xen::traffic::{SEGMENT_BYTES, Traffic};
use crate::xen::virtual_time::{self, Paced, Reader};

fn cost(system: System, frames_a_poll: f64, instructions_a_byte: f64) -> Cost {
    let is_linear = system.path() == rxo_driver::CopyPath::Linear;
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
    System::COUNTED.into_iter().flat_map(each).collect()
}

fn verdicts(figure: &Figure) -> Vec<Option<bool>> {
    figure.verdicts()
}

#[test]
fn the_bars_of_the_driver_domain_are_judged() {
    let (yes, no) = (Some(true), Some(false));
    assert_eq!(verdicts(&table_v(&costs(0.2))), [yes; 4]);
    assert_eq!(verdicts(&table_v(&costs(0.3))), [no, yes, no, yes]);
    assert_eq!(verdicts(&table_v(&costs(0.95))), [no; 4]);
    assert_eq!(verdicts(&table_v(&[])), [None; 4]);
}

#[test]
fn a_copy_too_many_is_seen() {
    assert_eq!(verdicts(&copies(&costs(0.2))), [Some(true); 2]);
    let mut wrong = costs(0.2);
    let bo = |cost: &&mut Cost| cost.system == System::Bo;
    wrong.iter_mut().filter(bo).for_each(|cost| cost.copies = 1.5);
    assert_eq!(verdicts(&copies(&wrong)), [Some(true), Some(false)]);
}

#[test]
fn on_virtual_time_the_papers_rate_and_requests_hold() {
    let traffic = Traffic::new(5_000, SEGMENT_BYTES);
    let rate = |system| virtual_time::rate(system, paper::FRAMES_A_POLL, &traffic).unwrap();
    let rates: Vec<_> = System::DOMAINS.map(rate).to_vec();
    assert_eq!(verdicts(&aggregates(&rates)), [None; 2], "calibrations");
    let of = |system| rates.iter().find(|rate| rate.system == system).unwrap();
    let [lro, da] = [System::Lro, System::Da].map(|system| of(system).packets_an_aggregate);
    // Polls that end at a timestamp's tick are shorter.
    assert!(da / lro >= 0.95 * 4.71 / 2.55, "{da} of {lro}");
    assert_eq!(verdicts(&holds(&rates)), [Some(true)], "{rates:?}");
    let requests = Traffic::new(50, 1);
    let exchange = |system| virtual_time::exchange(system, &requests).unwrap();
    let exchanges: Vec<_> = System::DOMAINS.map(exchange).to_vec();
    assert_eq!(verdicts(&table_vii(&exchanges)), [None], "a calibration");
    let [first, rest @ ..] = &exchanges[..] else { panic!("{exchanges:?}") };
    assert!(rest.iter().all(|one| (one.per_second / first.per_second - 1.0).abs() <= 0.02));
}

fn counted(share: f64) -> Vec<GuestCost> {
    let polls = [paper::FRAMES_A_POLL, FULL_LOAD];
    let of = |system, frames_a_poll| GuestCost {
        system,
        frames_a_poll,
        gro: true,
        instructions_a_byte: if system == System::Xen { 4.0 } else { 4.0 * share },
        copying_a_byte: if system == System::Bo { 0.4 } else { 0.3 },
        packets_an_aggregate: 2.55,
        copies: 1.0,
        hold_p50_us: 20.0,
        hold_p99_us: 40.0,
        alignment: Alignment(std::array::from_fn(|at| u64::from(at == 14))),
    };
    let each = |system| polls.map(|frames| of(system, frames));
    let domains = System::DOMAINS.into_iter().flat_map(each);
    // The guest with direct access to the card.
    let linux = GuestCost { instructions_a_byte: 3.9, ..of(System::Linux, paper::FRAMES_A_POLL) };
    domains.chain([linux]).collect()
}

#[test]
fn the_bars_of_the_guest_are_judged() {
    let today = |share| verdicts(&guest_share(&counted(share), &[]));
    assert_eq!(today(0.25), [None, Some(true), Some(true)]);
    assert_eq!(today(0.5), [None, Some(true), Some(false)]);
    let as_then = |share| verdicts(&guest_share(&[], &counted(share)));
    assert_eq!(as_then(0.6), [Some(true), None, None]);
    assert_eq!(as_then(0.8), [Some(false), None, None]);
    assert_eq!(verdicts(&guest_copies(&counted(0.5))), [Some(true)]);
}

#[test]
fn payload_at_other_addresses_is_seen() {
    let mut guests = counted(0.5);
    let alike = alignments(&guests);
    assert_eq!((verdicts(&alike), &alike.x[..]), (vec![Some(false)], &["14".to_owned()][..]));
    let gathered = guests.iter_mut().filter(|cost| cost.system == System::Bo);
    gathered.for_each(|cost| cost.alignment = Alignment(std::array::from_fn(|_| 1)));
    let other = alignments(&guests);
    assert_eq!((verdicts(&other), other.x.len()), (vec![Some(true)], 64));
}

/// Makes results on the faster link, from auto's aggregates and holding polls for a busy and an idle guest.
fn paced(auto: [(f64, u64); 2]) -> Vec<Paced> {
    let [busy, idle] = auto;
    let rows = [
        (System::Lro, Reader::Busy, (2.55, 0)),
        (System::Auto, Reader::Busy, busy),
        (System::Auto, Reader::Idle, idle),
    ];
    let of = |(system, guest, (packets_an_aggregate, holding_polls))| {
        let rate = virtual_time::Rate {
            system,
            frames_a_poll: paper::FRAMES_A_POLL,
            packets_an_aggregate,
            hold_p50_us: 20.0,
            hold_p99_us: 45.0,
        };
        Paced { rate, guest, polls: 100, holding_polls }
    };
    rows.map(of).to_vec()
}

#[test]
fn auto_must_hold_for_a_busy_guest_and_for_no_idle_one() {
    let of = |auto| verdicts(&load(&[], &paced(auto)));
    let (yes, no) = (Some(true), Some(false));
    assert_eq!(of([(17.0, 80), (2.55, 0)]), [yes; 4]);
    assert_eq!(of([(17.0, 80), (3.0, 9)]), [yes, yes, no, yes], "an idle guest waits");
    let never = of([(2.55, 0), (2.55, 0)]);
    assert_eq!(never, [yes, no, yes, no], "it never holds: there is no control");
    assert!(verdicts(&load(&[], &paced([(17.0, 80), (2.55, 0)])[..1])).is_empty());
    let mut late = paced([(17.0, 80), (2.55, 0)]);
    late[1].rate.hold_p99_us = 51.0;
    assert_eq!(verdicts(&load(&[], &late)), [no, yes, yes, yes], "longer than its bound");
}

#[test]
fn on_virtual_time_auto_follows_the_load() {
    let traffic = Traffic::new(5_000, SEGMENT_BYTES);
    let rate = |system| virtual_time::rate(system, paper::FRAMES_A_POLL, &traffic).unwrap();
    let paced = crate::xen::plan::LOADS.map(|(system, guest)| {
        virtual_time::paced((system, paper::FRAMES_A_POLL), guest, &traffic).unwrap()
    });
    let figure = load(&[System::Lro, System::Auto].map(rate), &paced);
    assert_eq!(verdicts(&figure), [Some(true); 4], "{figure:?}");
}

#[test]
fn the_papers_rates_of_aggregates_are_in_the_table() {
    let polls = [paper::FRAMES_A_POLL, paper::EARLIER_FRAMES_A_POLL];
    let traffic = Traffic::new(500, SEGMENT_BYTES);
    let of = |system| polls.map(|polls| virtual_time::rate(system, polls, &traffic).unwrap());
    let rates: Vec<_> = System::SWEPT.into_iter().flat_map(of).collect();
    let figure = aggregates(&rates);
    let [.., lro, da, earlier] = &figure.series[..] else { panic!("{:?}", figure.series) };
    assert_eq!(lro.values, [Some(2.55), None]);
    assert_eq!(da.values, [Some(4.71), None]);
    assert_eq!(earlier.values, [None, Some(2.65)]);
    assert!(figure.guides.is_empty());
}

#[test]
fn driver_domain_and_guest_are_judged_together() {
    let judged = |driver, guest| {
        let guests = counted(guest);
        verdicts(&totals::table_v(&costs(driver), [&[], &guests]))
    };
    // Xen costs 5 per byte, so DA may cost 1.98.
    assert_eq!(judged(0.3, 0.4), [Some(true); 2]);
    assert_eq!(judged(0.4, 0.4), [Some(false), Some(true)], "more than the paper's share");
    assert_eq!(judged(0.95, 0.95), [Some(false); 2]);
    assert_eq!(verdicts(&totals::table_v(&costs(0.3), [&counted(0.4), &[]])), [None; 2]);
    let guests = counted(0.4);
    let figure = totals::table_v(&costs(0.3), [&guests, &guests]);
    let paper = figure.series[2].values.iter().map(|value| value.map(|it| (it * 232.0).round()));
    let expected = [175.0, 232.0, 206.0, 206.0, 92.0].map(Some);
    assert_eq!(paper.collect::<Vec<_>>()[..5], expected);
    assert_eq!(
        figure.series[0].values[0],
        Some(3.9 / 5.0),
        "the guest of Linux, counted by itself"
    );
}

#[test]
fn rates_are_in_percent_of_linuxs_and_of_xens() {
    let (as_then, today) = (counted(0.5), counted(1.0));
    let figure = shares(&costs(0.2), [&today, &as_then]);
    let row = |place: usize| -> Vec<_> {
        let of = |series: &Series| series.values[place].map(f64::round);
        figure.series.iter().map(of).collect()
    };
    // A byte costs Linux 3.9, and DA 2.2 without GRO, which is faster than the link, or 4.2 with GRO.
    assert_eq!(row(0), [100.0, 100.0, 100.0, 128.0, 128.0, 135.0].map(Some));
    assert_eq!(row(4), [130.0, 93.0, 104.0, 167.0, 119.0, 139.0].map(Some));
    assert_eq!(row(5)[2], None, "the paper has no BO+DA");
}

#[test]
fn the_rate_is_linuxs_share_of_what_the_link_carries() {
    let (as_then, today) = (counted(0.5), counted(1.0));
    let machine =
        |mbit_per_s| GuestRate { system: System::Da, mbit_per_s, packets_an_aggregate: 5.1 };
    let figure = table_iv(&costs(0.2), [&today, &as_then], &[300.0, 500.0, 100.0].map(machine));
    let rates = |series: usize| -> Vec<_> {
        figure.series[series].values.iter().map(|value| value.unwrap().round()).collect()
    };
    // Cost per byte: Linux 3.9, Xen 5, LRO 2.9, and DA 2.2, which is faster than the link.
    assert_eq!(rates(0), [721.0, 562.0, 941.0, 941.0, 941.0, 941.0, 941.0]);
    // A guest that gains nothing from aggregation: LRO costs 4.9, DA 4.2.
    assert_eq!(rates(1), [721.0, 562.0, 574.0, 574.0, 670.0, 670.0, 670.0]);
    let measured = &figure.series[2];
    assert_eq!((measured.values[4], measured.values[0]), (Some(300.0), None));
    assert_eq!(measured.ranges[4], Some((100.0, 500.0)));
    // Here LRO is faster than Linux, unlike in the paper.
    let (yes, no) = (Some(true), Some(false));
    assert_eq!(verdicts(&figure), [yes, yes, yes, no], "those of the guest without GRO");
    let swapped = table_iv(&costs(0.2), [&as_then, &today], &[]);
    assert_eq!(verdicts(&swapped), [no, no, no, yes]);
    let dear = table_iv(&costs(1.3), [&as_then, &today], &[]);
    assert_eq!(verdicts(&dear), [no, no, no, yes]);
    let quick = table_iv(&costs(0.2), [&as_then, &[]], &[]);
    assert_eq!(verdicts(&quick), [None; 4], "that guest was not measured");
}

#[test]
fn the_papers_points_are_marked_at_its_frames_a_poll() {
    let figure = sweep(&costs(0.2));
    let [.., lro, da] = &figure.series[..] else { panic!("{:?}", figure.series) };
    assert_eq!(lro.name, "the paper's LRO, 2.55 packets an aggregate");
    assert_eq!(da.name, "the paper's DA, 4.71 packets an aggregate");
    assert_eq!((figure.x[0].as_str(), lro.values[1]), ("2.55", None));
    // Xen's cost is 1 here.
    assert!((lro.values[0].unwrap() - 13.4 / 14.5).abs() < 1e-9);
    assert!((da.values[0].unwrap() - 3.3 / 14.5).abs() < 1e-9);
}

fn several(guests: usize, instructions_a_byte: f64) -> Several {
    let share = Share {
        mbit_per_s: 10.0,
        instructions_a_byte,
        is_intact: true,
        packets_an_aggregate: 2.0,
        hold_p99_us: 40.0,
    };
    let each = vec![share; guests];
    let latency = |p99_us| Latency { p50_us: 300.0, p99_us, per_second: 3_000.0 };
    let beside_bulk = (guests > 1).then(|| latency(2_000.0));
    Several { system: System::Auto, guests, each, idle: latency(400.0), beside_bulk }
}

#[test]
fn a_guest_must_not_pay_for_the_others() {
    let verdict = |four| verdicts(&guests::several(&[several(1, 3.0), several(4, four)]));
    assert_eq!((verdict(3.1), verdict(4.0)), (vec![Some(true)], vec![Some(false)]));
    assert_eq!(verdicts(&guests::several(&[several(1, 3.0)])), [None], "there are no others");
    let figure = guests::several_requests(&[several(1, 3.0), several(4, 3.0)]);
    assert_eq!(figure.x, ["auto, 1", "auto, 4"]);
    assert_eq!(figure.series[1].values, [None, Some(2_000.0)]);
    let rate = guests::several_rate(&[several(1, 3.0), several(4, 3.0)]);
    assert_eq!(rate.series[0].values, [Some(10.0), Some(40.0)]);
}

#[test]
fn requests_are_judged_by_the_round_in_the_middle() {
    let latency = |p50_us| Latency { p50_us, p99_us: 2.0 * p50_us, per_second: 1e6 / p50_us };
    // Every system but auto takes as long as Xen. Linux takes 50 us.
    let round = |xen, auto| -> Vec<_> {
        let turn = |system, took: f64| {
            let xen = (system != System::Linux).then(|| latency(xen));
            Turn { system, latency: latency(took), xen }
        };
        let took = |system| match system {
            System::Linux => 50.0,
            System::Auto => auto,
            _ => xen,
        };
        System::RECEIVERS.map(|system| turn(system, took(system))).to_vec()
    };
    let figures = |rounds, auto_held| {
        let requests = Requests { transactions: 10, rounds, auto_held, hold_p99_us: 60.0 };
        guests::requests(&[requests])
    };
    let verdict = |rounds, auto_held| verdicts(&figures(rounds, auto_held)[0]);
    let rounds = |autos: [f64; 7]| autos.map(|auto| round(100.0, auto)).to_vec();
    let alike = rounds([101.0, 100.0, 99.0, 101.0, 100.0, 102.0, 300.0]);
    // With seven values the minimum and maximum bound the median, so a single outlier leaves the verdict
    // open.
    assert_eq!(verdict(alike.clone(), 0), [Some(true), None, Some(true)]);
    let alike = rounds([101.0, 100.0, 99.0, 101.0, 100.0, 101.5, 101.5]);
    assert_eq!(verdict(alike.clone(), 0), [Some(true); 3]);
    assert_eq!(verdict(alike.clone(), 1), [Some(true), Some(true), Some(false)], "one was held");
    let slower = rounds([103.0, 104.0, 105.0, 103.0, 104.0, 105.0, 103.0]);
    assert_eq!(verdict(slower, 0), [Some(true), Some(false), Some(true)]);
    assert_eq!(verdict(alike[..5].to_vec(), 0), [None, None, Some(true)], "too few");
    assert_eq!(verdicts(&guests::requests(&[])[0]), [None; 3]);
    let [_, rates] = figures(alike, 0);
    assert_eq!((rates.x[0].as_str(), rates.series[0].values[0]), ("Linux", Some(20_000.0)));
    assert_eq!(rates.series[1].values[0], Some(6_090.0), "the paper's");
}

#[test]
fn nothing_measured_is_no_figure() {
    assert!(all(&Measured::default()).is_empty());
}
