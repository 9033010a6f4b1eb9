//! Parts of a capture, merged in any order, give what one pass gives.

use std::collections::BTreeSet;

use rxo_capture::{Interface, LinkType, Record};
use rxo_coalesce::Policy;
use rxo_frame::Duration;
use rxo_testkit::{Random, Workload};
use rxo_trace::report::{Protocol, Report, Traffic};
use rxo_trace::study::{MergeError, Part, PartError, Settings, Span, Study, Terms};
use rxo_trace::sweep::Grid;

use crate::traffic::{generated, point, settings};

/// Returns settings of every kind: some have a known reach, and some do not.
fn everything() -> Settings {
    let chosen = point("linux-gro", "time:50us");
    let axes = [
        "poll=time:50us,time:200us,host:300ns,packets:64,packets:5",
        "hold=end-of-poll,30us,packets:8,auto",
    ];
    let axes = axes.iter().map(|axis| axis.parse().unwrap()).collect();
    let sweep = Some(Grid::new(&chosen, axes).unwrap());
    Settings { sweep, top: usize::MAX, ..settings(chosen) }
}

/// Returns traffic on two interfaces in bursts, separated by pauses that are longer than every reach. Several
/// kinds alternate in stretches.
fn traffic(kinds: &[Workload], seed: u64) -> Vec<Record> {
    let mut random = Random::new(seed);
    let mut shift_ns = 0;
    let mut records = generated(kinds[0], 3_000);
    let mut streams: Vec<_> =
        kinds.iter().map(|kind| generated(*kind, 3_000).into_iter()).collect();
    let mut kind = 0;
    for record in &mut records {
        if random.below(20) == 0 {
            kind = random.below(kinds.len() as u64) as usize;
        }
        *record = Record { at: record.at, ..streams[kind].next().unwrap() };
        if random.below(150) == 0 {
            shift_ns += 3_000_000 + random.below(30_000_000);
        }
        record.at = record.at + Duration::from_nanos(shift_ns);
        record.interface = u32::from(random.below(5) == 0);
    }
    records
}

fn interfaces() -> Vec<Interface> {
    ["a", "b"]
        .map(|name| Interface {
            link: LinkType::ETHERNET,
            snap_bytes: None,
            name: Some(name.to_owned()),
        })
        .to_vec()
}

/// Studies the records `from` to `to` of one file of a series; the file has `of` records.
fn part(
    settings: &Settings,
    records: &[Record],
    from: usize,
    to: usize,
    file: (u32, bool),
) -> Part {
    let mut study = Study::new(settings.clone()).unwrap();
    study.begin_source(&format!("file {}", file.0));
    for batch in records[from..to].chunks(333) {
        study.take(&interfaces(), &mut batch.to_vec());
    }
    study.end_source("none", None);
    let (number, is_last) = file;
    let is_end = to == records.len();
    let end = if is_end { (number + 1, 0) } else { (number, to as u64) };
    let span = Span { series: 7, from: (number, from as u64), to: end, is_last: is_end && is_last };
    study.into_part(Some(span), None)
}

fn one_pass(settings: &Settings, files: &[Vec<Record>]) -> Report {
    let mut study = Study::new(settings.clone()).unwrap();
    for (number, records) in files.iter().enumerate() {
        study.begin_source(&format!("file {number}"));
        for batch in records.chunks(777) {
            study.take(&interfaces(), &mut batch.to_vec());
        }
        study.end_source("none", None);
    }
    study.finish(None)
}

/// Returns the positions at which the files are cut: at pauses longer than `reach`, or anywhere.
fn cuts(records: &[Record], at_pauses: bool, random: &mut Random) -> Vec<usize> {
    let mut cuts: Vec<usize> = (1..records.len())
        .filter(|index| {
            let pause = records[*index].at.nanos_since(records[*index - 1].at);
            let is_pause = pause > 2_000_000;
            if at_pauses { is_pause && random.below(2) == 0 } else { random.below(300) == 0 }
        })
        .collect();
    cuts.insert(0, 0);
    cuts.push(records.len());
    cuts
}

fn parts(settings: &Settings, files: &[Vec<Record>], at_pauses: bool, seed: u64) -> Vec<Part> {
    let mut random = Random::new(seed);
    let mut parts = Vec::new();
    for (number, records) in files.iter().enumerate() {
        let cuts = cuts(records, at_pauses, &mut random);
        let file = (number as u32, number + 1 == files.len());
        parts.extend(cuts.windows(2).map(|cut| part(settings, records, cut[0], cut[1], file)));
    }
    parts
}

/// Merges parts in a random order and grouping.
fn merged(mut parts: Vec<Part>, random: &mut Random) -> Part {
    while parts.len() > 1 {
        let a = parts.swap_remove(random.below(parts.len() as u64) as usize);
        let b = parts.swap_remove(random.below(parts.len() as u64) as usize);
        // Some of the parts are encoded and decoded, as on the wire.
        let a = if random.percent(30) { Part::from_bytes(&a.to_bytes()).unwrap() } else { a };
        parts.push(a.merge(b).unwrap());
    }
    parts.pop().unwrap()
}

fn terms() -> Terms {
    Terms { top: usize::MAX, ..Terms::default() }
}

fn json(value: &impl serde::Serialize) -> String {
    serde_json::to_string_pretty(value).unwrap()
}

fn files(seed: u64) -> Vec<Vec<Record>> {
    let kinds: [&[Workload]; 4] = [
        &[Workload::Mixed, Workload::U2],
        &[Workload::W3, Workload::U1, Workload::U2],
        &[Workload::W8],
        &[Workload::U2, Workload::Mixed, Workload::BadCase],
    ];
    let mut files: Vec<Vec<Record>> =
        kinds.iter().zip(seed..).map(|(kinds, seed)| traffic(kinds, seed)).collect();
    // The second file continues the first after a long pause; the third was taken two hours later; the last
    // began before the third had ended.
    let end = files[0].last().unwrap().at;
    let later = end + Duration::from_millis(400);
    let shift = later.nanos_since(files[1][0].at);
    files[1].iter_mut().for_each(|record| record.at = record.at + Duration::from_nanos(shift));
    for record in &mut files[1][1_500..] {
        record.at = record.at + Duration::from_secs(5);
    }
    let before = Duration::from_nanos(files[2].last().unwrap().at.nanos_since(files[3][0].at));
    files[3].iter_mut().for_each(|record| record.at = record.at + before);
    let back = Duration::from_micros(700);
    files[2].iter_mut().for_each(|record| record.at = record.at + back);
    let hours = Duration::from_secs(7_200);
    files[2..].iter_mut().flatten().for_each(|record| record.at = record.at + hours);
    files
}

#[test]
fn cut_at_pauses_they_are_the_whole() {
    let settings = everything();
    let points = settings.sweep.clone().unwrap().points;
    for seed in [1, 2] {
        let files = files(seed);
        let whole = one_pass(&settings, &files);
        let sum = merged(parts(&settings, &files, true, seed), &mut Random::new(seed));
        assert!(sum.is_complete());
        let sum = sum.report(&terms());
        let (a, b) = (whole.sweep.as_ref().unwrap(), sum.sweep.as_ref().unwrap());
        for (number, (a, b)) in a.outcomes.iter().zip(&b.outcomes).enumerate() {
            let point = &points[number];
            if point.reach().is_some() {
                assert_eq!(json(a), json(b), "{:?}", point.poll);
                assert_eq!(a.hold_ns.buckets, b.hold_ns.buckets);
            } else {
                let error = a.eliminated.abs_diff(b.eliminated);
                assert!(error <= b.eliminated_error, "{} {error}: {}", a.poll, b.eliminated_error);
            }
        }
        for (a, b) in [
            (json(&whole.traffic), json(&sum.traffic)),
            (json(&whole.flows), json(&sum.flows)),
            (json(&whole.course), json(&sum.course)),
            (json(&whole.outcome), json(&sum.outcome)),
            (json(&whole.sources), json(&sum.sources)),
        ] {
            assert_eq!(a, b);
        }
        assert_eq!(sum.outcome.eliminated_error, 0);
        assert!(sum.traffic.udp_packets > 2_000);
        let trains = sum.flows.iter().filter(|flow| flow.protocol == Protocol::Udp);
        assert!(trains.map(|flow| flow.aggregates).sum::<u64>() > 100);
    }
}

#[test]
fn a_flow_names_the_files_in_which_it_begins_and_ends() {
    let settings = everything();
    let files = files(4);
    let merged = merged(parts(&settings, &files, false, 4), &mut Random::new(9));
    let report = merged.report(&terms());
    let pairs: BTreeSet<[&str; 2]> =
        report.flows.iter().map(|flow| [&*flow.first_file, &*flow.last_file]).collect();
    assert_eq!(
        pairs.iter().collect::<Vec<_>>(),
        [&["file 0", "file 0"], &["file 0", "file 3"], &["file 1", "file 3"]]
    );
}

/// The bound holds for every policy, with few flows and with many.
#[test]
fn polls_by_packets_bound_the_error() {
    for (policy, seed) in Policy::all().iter().zip(1..) {
        let chosen = point(policy.name, "packets:64");
        let axes = ["poll=packets:3,packets:64,packets:300", "flows=1,5,64"];
        let axes = axes.iter().map(|axis| axis.parse().unwrap()).collect();
        let Ok(grid) = Grid::new(&chosen, axes) else { continue };
        let settings = Settings { sweep: Some(grid), ..settings(chosen) };
        let files = &files(seed)[..2];
        let whole = one_pass(&settings, files);
        let sum = merged(parts(&settings, files, false, seed), &mut Random::new(seed));
        let sum = sum.report(&terms());
        let (a, b) = (whole.sweep.unwrap(), sum.sweep.unwrap());
        for (place, (a, b)) in a.outcomes.iter().zip(&b.outcomes).enumerate() {
            let error = a.eliminated.abs_diff(b.eliminated);
            let what = format!("{} {} {place}", policy.name, a.poll);
            assert!(error <= b.eliminated_error, "{what} {error} {}", b.eliminated_error);
        }
    }
}

#[test]
fn cut_anywhere_they_say_by_how_much_they_may_be_wrong() {
    let settings = everything();
    let mut doubtful = 0;
    for seed in 1..6 {
        let files = files(seed);
        let whole = one_pass(&settings, &files);
        let sum = merged(parts(&settings, &files, false, seed), &mut Random::new(seed));
        let sum = sum.report(&terms());
        // A part does not know the packets of the other, so duplicates across a cut are not found.
        let duplicate_packets = whole.traffic.duplicate_packets;
        let sum_traffic = Traffic { duplicate_packets, ..sum.traffic };
        assert_eq!(json(&whole.traffic), json(&sum_traffic));
        let (a, b) = (whole.sweep.unwrap(), sum.sweep.unwrap());
        for (a, b) in a.outcomes.iter().zip(&b.outcomes) {
            let error = a.eliminated.abs_diff(b.eliminated);
            assert!(error <= b.eliminated_error, "{} {error}: {}", a.poll, b.eliminated_error);
            doubtful += u64::from(error > 0);
        }
    }
    assert!(doubtful > 20, "{doubtful}");
}

#[test]
fn the_same_parts_give_the_same_bytes_whatever_the_order() {
    let settings = everything();
    let files = files(3);
    let bytes = |seed| {
        let parts = parts(&settings, &files, true, 3);
        assert!(parts.len() > 10);
        merged(parts, &mut Random::new(seed)).to_bytes()
    };
    let first = bytes(1);
    assert!((2..6).all(|seed| bytes(seed) == first));
    let again = Part::from_bytes(&first).unwrap();
    assert_eq!(again.to_bytes(), first);
}

#[test]
fn captures_of_their_own_are_added_in_any_order() {
    let settings = everything();
    let alone = |number: u64| {
        let mut study = Study::new(settings.clone()).unwrap();
        study.begin_source(&format!("capture {number}"));
        study.take(&interfaces(), &mut traffic(&[Workload::Mixed, Workload::U2], number));
        study.end_source("none", None);
        study.into_part(None, None)
    };
    let sum = |seed| merged((0..5).map(alone).collect(), &mut Random::new(seed));
    let report = sum(1).report(&terms());
    assert_eq!(report.traffic.packets, 15_000);
    assert_eq!(report.sources.len(), 5);
    assert!(report.partial.is_none());
    assert_eq!(sum(1).to_bytes(), sum(2).to_bytes());
    assert_eq!(alone(1).merge(alone(1)).unwrap_err(), MergeError::Overlap);
}

#[test]
fn what_does_not_belong_together_is_refused() {
    let records = traffic(&[Workload::Mixed], 1);
    let all = everything();
    let other = settings(point("linux-gro", "time:60us"));
    let of = |settings, from, to| part(settings, &records, from, to, (0, true));
    assert_eq!(of(&all, 0, 9).merge(of(&other, 9, 20)).unwrap_err(), MergeError::Settings);
    assert_eq!(of(&all, 0, 9).merge(of(&all, 0, 9)).unwrap_err(), MergeError::Overlap);
    assert_eq!(of(&all, 0, 9).merge(of(&all, 8, 20)).unwrap_err(), MergeError::Overlap);
    let some = of(&all, 0, 9).merge(of(&all, 9, 20)).unwrap();
    assert!(!some.is_complete());
    let why = some.report(&terms()).partial.unwrap();
    assert_eq!(why, "parts of the captures are missing");
}

#[test]
fn damaged_bytes_are_told_from_foreign_ones() {
    let records = traffic(&[Workload::Mixed], 1);
    let bytes = part(&everything(), &records, 0, 500, (0, true)).to_bytes();
    let error = |bytes: &[u8]| Part::from_bytes(bytes).unwrap_err();
    assert_eq!(error(b""), PartError::Foreign);
    assert_eq!(error(b"\xd4\xc3\xb2\xa1 and so on"), PartError::Foreign);
    for length in [8, 12, 30, bytes.len() - 1] {
        assert_eq!(error(&bytes[..length]), PartError::Damaged, "{length}");
    }
    let mut other = bytes.clone();
    other[8] += 1;
    assert_eq!(error(&other), PartError::Version);
    let mut random = Random::new(1);
    for _ in 0..500 {
        let mut changed = bytes.clone();
        let at = 18 + random.below(changed.len() as u64 - 18) as usize;
        changed[at] ^= 1 << random.below(8);
        assert_eq!(error(&changed), PartError::Damaged);
        // Even without the check that detects all of these changes, nothing panics.
        if let Ok(part) = Part::from_fields(&changed[18..changed.len() - 4]) {
            _ = part.to_bytes();
            _ = part.report(&terms());
        }
    }
}
