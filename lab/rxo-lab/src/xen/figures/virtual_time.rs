//! Figures on virtual time: packets per aggregate, hold times of segments, and requests.

use rxo_console::numbers::grouped;

use super::{at, colour, frames, lines, points, polls, shown};
use crate::claim::Claim;
use crate::figure::{Figure, Series};
use crate::xen::paper;
use crate::xen::plan::LOADS;
use crate::xen::system::System;
use crate::xen::virtual_time::{Exchange, Paced, Rate, Reader};

/// Draws Table VI and its sweep over frames per poll.
pub(super) fn aggregates(rates: &[Rate]) -> Figure {
    let value = |rate: &Rate| rate.packets_an_aggregate;
    let da = at(rates, System::Da, paper::FRAMES_A_POLL).map(value);
    let lro = at(rates, System::Lro, paper::FRAMES_A_POLL).map(value);
    Figure {
        number: "Table VI",
        x: polls(rates),
        series: lines(rates, &SHOWN, value)
            .into_iter()
            .chain(points(rates, value, paper::packets_an_aggregate))
            .chain([earlier(rates)])
            .collect(),
        claims: vec![
            Claim::new("xen.table-vi.lro", lro, None),
            Claim::new("xen.table-vi.da", da, None),
        ],
        ..Figure::default()
    }
}

/// Returns the median hold time of segments, with a range up to the 99th percentile.
fn held(rates: &[Rate], systems: &[System]) -> Vec<Series> {
    let medians = lines(rates, systems, |rate| rate.hold_p50_us);
    let p99s = lines(rates, systems, |rate| rate.hold_p99_us);
    let ranged = |(median, p99): (Series, Series)| {
        let ends = median.values.iter().zip(&p99.values);
        Series { ranges: ends.map(|(from, to)| from.zip(*to)).collect(), ..median }
    };
    medians.into_iter().zip(p99s).map(ranged).collect()
}

/// Returns the paper's point of LRO on its earlier machine (Table I).
fn earlier(rates: &[Rate]) -> Series {
    let value = paper::earlier_packets_an_aggregate(System::Lro);
    let is_here = |frames: &f64| *frames == paper::EARLIER_FRAMES_A_POLL;
    let values = frames(rates).iter().map(|frames| value.filter(|_| is_here(frames))).collect();
    Series::reference("the paper's LRO, Table I", values).colour(colour(System::Lro))
}

/// Draws the hold time of an aggregate's first segment.
pub(super) fn holds(rates: &[Rate]) -> Figure {
    let [lro, da] = [System::Lro, System::Da].map(|system| at(rates, system, paper::FRAMES_A_POLL));
    Figure {
        number: "hold",
        x: polls(rates),
        series: held(rates, &[System::Lro, System::Da, System::Da4, System::Auto]),
        claims: vec![Claim::new(
            "xen.hold.da",
            lro.zip(da).map(|(lro, da)| da.hold_p50_us - lro.hold_p50_us),
            format!(
                "The median at 2.55 frames a poll is {} us under LRO and {} us under Delayed Aggregation. It \
                 includes the frames of the segment's own poll.",
                shown(lro.map(|rate| rate.hold_p50_us)),
                shown(da.map(|rate| rate.hold_p50_us)),
            ),
        )],
        ..Figure::default()
    }
}

/// Draws auto's aggregates on a link that is ten times as fast, for a busy and an idle guest.
pub(super) fn load(rates: &[Rate], paced: &[Paced]) -> Figure {
    let of = |system, guest| {
        let is_it = move |one: &&Paced| one.rate.system == system && one.guest == guest;
        paced.iter().filter(is_it).copied().collect::<Vec<_>>()
    };
    let series = LOADS.map(|(system, guest)| {
        let packets = of(system, guest);
        let packets = packets.iter().map(|one| Some(one.rate.packets_an_aggregate)).collect();
        let name = format!("{}, a guest that is {}", system.name(), guest.name());
        Series::new(name, packets).bars()
    });
    let [busy, idle] = [Reader::Busy, Reader::Idle].map(|guest| of(System::Auto, guest));
    let x = busy.iter().map(|one| one.rate.frames_a_poll.to_string()).collect();
    Figure {
        number: "auto",
        x,
        series: series.to_vec(),
        claims: [follows(rates, &of(System::Lro, Reader::Busy), &busy), rests(&busy, &idle)]
            .concat(),
        ..Figure::default()
    }
}

/// Makes the claims that auto's hold is bounded at every rate, and gains as much for a busy guest as Delayed
/// Aggregation in the paper.
fn follows(rates: &[Rate], lro: &[Paced], busy: &[Paced]) -> Vec<Claim> {
    let at_papers = |paced: &[Paced]| {
        let mut rates = paced.iter().map(|one| one.rate);
        rates.find(|rate| rate.frames_a_poll == paper::FRAMES_A_POLL)
    };
    let Some((lro_fast, auto_fast)) = at_papers(lro).zip(at_papers(busy)) else {
        return Vec::new();
    };
    let fast: Vec<Rate> = lro.iter().chain(busy).map(|one| one.rate).collect();
    let beyond = beyond(rates).into_iter().chain(beyond(&fast)).reduce(f64::max);
    let slow = at(rates, System::Auto, paper::FRAMES_A_POLL).map(|rate| rate.packets_an_aggregate);
    let detail = format!(
        "At 600,000 frames a second and 2.55 frames a poll auto has {:.2} packets an aggregate for a busy guest, LRO \
         {:.2}; the first segment is held for {:.1} us (p99). At 60,000 a second the next poll would come after its \
         50 us, so there it ends with the poll, with {} packets.",
        auto_fast.packets_an_aggregate,
        lro_fast.packets_an_aggregate,
        auto_fast.hold_p99_us,
        shown(slow)
    );
    let gained = auto_fast.packets_an_aggregate / lro_fast.packets_an_aggregate;
    vec![
        Claim::new("xen.auto.bounded", beyond, None),
        Claim::new("xen.auto.follows", Some(gained), detail),
    ]
}

/// Returns the longest time in microseconds for which auto holds beyond [`MOST_AUTO_US`] and beyond the end
/// of the segment's own poll, as LRO does; `None` if not both were measured at every rate.
fn beyond(rates: &[Rate]) -> Option<f64> {
    let auto = rates.iter().filter(|rate| rate.system == System::Auto);
    let beyond = auto.map(|rate| {
        let lro = at(rates, System::Lro, rate.frames_a_poll)?;
        Some((rate.hold_p99_us - lro.hold_p99_us.max(MOST_AUTO_US)).max(0.0))
    });
    let all: Option<Vec<f64>> = beyond.collect();
    all?.into_iter().reduce(f64::max)
}

/// Makes the claims that auto holds nothing for a guest that has read everything, but does hold for a busy
/// one, at every number of frames a poll.
fn rests(busy: &[Paced], idle: &[Paced]) -> Vec<Claim> {
    if busy.is_empty() || idle.is_empty() {
        return Vec::new();
    }
    let sum = |paced: &[Paced], of: fn(&Paced) -> u64| paced.iter().map(of).sum::<u64>();
    let [held, held_idle] = [busy, idle].map(|paced| sum(paced, |one| one.holding_polls));
    let all = |paced| grouped(sum(paced, |one| one.polls));
    let detail = format!(
        "Of {} polls of two frames and more {} ended with something held for an idle guest, and {} of {} for a busy one.",
        all(idle),
        grouped(held_idle),
        grouped(held),
        all(busy)
    );
    let fewest = busy.iter().map(|one| one.holding_polls).min();
    vec![
        Claim::new("xen.auto.idle", Some(held_idle as f64), detail),
        Claim::new("xen.auto.busy", fewest.map(|polls| polls as f64), None),
    ]
}

/// Draws Table VII.
pub(super) fn table_vii(exchanges: &[Exchange]) -> Figure {
    let of = |system| exchanges.iter().find(|exchange| exchange.system == system);
    let systems = System::DOMAINS;
    let waits = systems.iter().filter_map(|system| of(*system)).map(|e| e.held_p99_us);
    let longest = waits.fold(0.0, f64::max);
    Figure {
        number: "Table VII",
        x: systems.map(|system| system.name().to_owned()).to_vec(),
        series: vec![
            Series::new("here", systems.map(|system| of(system).map(|e| e.per_second)).to_vec())
                .bars(),
            Series::reference("the paper", systems.map(paper::transactions).to_vec()).bars(),
        ],
        claims: vec![Claim::new("xen.table-vii.wait", Some(longest), None)],
        ..Figure::default()
    }
}

/// Systems with different aggregates.
const SHOWN: [System; 5] = [System::Xen, System::Lro, System::Da, System::Da4, System::Auto];
/// Largest hold time of auto, in microseconds.
const MOST_AUTO_US: f64 = 50.0;
