//! `rxo-lab xen`: Oi and Nakajima, "Optimizations of Large Receive Offload in Xen" (IEEE NCA 2009): measures
//! the saving of aggregation in the driver domain, for that domain and its guest, and Delayed Aggregation.
//!
//! The [`system`]s of the paper's Table III process the same [`traffic`] in the same driver [`domain`]: on
//! [`virtual_time`] for the times of deliveries, and under callgrind with a guest's ring ([`driver`]) for the
//! cost. An emulated Linux measures the cost of a [`guest`]. The paper's values, the figures and the claims stand
//! in `claims/xen.json`.

mod domain;
pub(crate) mod driver;
mod guest;
mod system;
mod traffic;
mod virtual_time;

use anyhow::Result;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use self::driver::Cost;
use self::guest::GuestCost;
use self::guest::exchange::{self, Requests};
use self::guest::rate::{self, GuestRate};
use self::guest::several::{self, Several};
use self::system::System;
use self::traffic::{SEGMENT_BYTES, Traffic};
use self::virtual_time::{Exchange, Paced, Rate, Reader};
use crate::claim::Fact;
use crate::flags::{Part, RunFlags};
use crate::study::{Measured, Rows, Study, Table, by_fields};

/// Tables I and IV; the instructions of driver domain (counted) and guest of Table V; Table VI; Table VII on
/// virtual time; live guests.
pub(crate) const PARTS: &[Part] = &[
    Part::timed("throughput"),
    Part::counted("cost"),
    Part::counted("rate"),
    Part::counted("latency"),
    Part::timed("guests"),
];

/// A system, and its mean or most frames per poll.
#[derive(Clone, Copy, Debug, PartialEq, Deserialize, Serialize)]
pub(crate) struct Case {
    system: System,
    frames_a_poll: f64,
}

/// A system on the faster link, and the load of its guest.
#[derive(Clone, Copy, Serialize)]
struct PacedCase {
    #[serde(flatten)]
    case: Case,
    guest: Reader,
}

/// A system in front of a guest whose instructions are counted.
#[derive(Clone, Copy, Serialize)]
struct GuestCase {
    #[serde(flatten)]
    case: Case,
    /// `true` if the guest's kernel uses GRO; the paper's did not.
    gro: bool,
}

/// A system with several guests.
#[derive(Clone, Copy, Serialize)]
struct SeveralCase {
    system: System,
    guests: usize,
}

/// The extent of a run.
struct Extent {
    polls: &'static [f64],
    /// Systems in front of a guest of today.
    systems: &'static [System],
    /// Systems with several guests, and numbers of guests.
    several: (&'static [System], &'static [usize]),
    counted_frames: usize,
    /// Bytes of the longer of a guest's two transfers; the next is that of a rate.
    guest_bytes: usize,
    machine_bytes: usize,
    /// Bytes that each of several guests receives.
    several_bytes: usize,
    rounds: usize,
    /// Boots of the guests that answer requests.
    boots: usize,
    /// Transactions of each system in a round.
    transactions: usize,
}

const FULL: Extent = Extent {
    polls: &[1.0, FRAMES_A_POLL, 4.0, 8.0, 16.0, 32.0],
    systems: &System::SWEPT,
    several: (&[System::Xen, System::Lro, System::Auto], &[1, 2, 4]),
    counted_frames: 4_000,
    guest_bytes: 16 << 20,
    machine_bytes: 64 << 20,
    several_bytes: 4 << 20,
    rounds: 3,
    // Boots times rounds is odd, so that a middle value exists.
    boots: 7,
    transactions: 200,
};
const QUICK: Extent = Extent {
    polls: &[FRAMES_A_POLL],
    systems: &[System::Xen, System::BoDa],
    several: (&[System::Auto], &[2]),
    counted_frames: 400,
    guest_bytes: 2 << 20,
    machine_bytes: 8 << 20,
    several_bytes: 2 << 20,
    rounds: 1,
    boots: 1,
    transactions: 50,
};

/// Makes the experiment from the flags.
pub(crate) fn study(flags: &RunFlags) -> Result<Study> {
    let parts = flags.chosen(PARTS)?;
    let extent = if flags.is_quick() { &QUICK } else { &FULL };
    let counts = parts.has("cost") || parts.has("throughput");
    let counted: [Box<dyn Measured>; 4] = [
        Box::new(rates().only_if(parts.has("rate"))),
        Box::new(paced().only_if(parts.has("rate"))),
        Box::new(exchanges().only_if(parts.has("latency"))),
        Box::new(costs(extent).only_if(counts)),
    ];
    let with_guests: [Box<dyn Measured>; 4] = [
        Box::new(guests(extent, flags.is_quick()).only_if(counts && !flags.counted)),
        Box::new(machines(extent).only_if(parts.has("throughput"))),
        Box::new(requests(extent).only_if(parts.has("guests"))),
        Box::new(several(extent).only_if(parts.has("guests"))),
    ];
    let needs_guests = with_guests.iter().any(|table| table.steps() > 0);
    Ok(Study {
        // Installs what guests need while the network is still reachable. A failure is reported once a guest is to
        // start.
        prepare: Box::new(move || {
            _ = needs_guests.then(crate::guests::image);
            Ok(())
        }),
        derive: Box::new(alignments),
        facts: Box::new(|_| facts(extent)),
        ..Study::of("xen", counted.into_iter().chain(with_guests).collect())
    })
}

fn each(systems: &[System], polls: &[f64]) -> Vec<Case> {
    let of = |&system| polls.iter().map(move |&frames_a_poll| Case { system, frames_a_poll });
    systems.iter().flat_map(of).collect()
}

/// Table VI.
fn rates() -> Table<Case, Rate> {
    let traffic = Traffic::new(FRAMES, SEGMENT_BYTES);
    let measure = move |case| virtual_time::rate(case, &traffic);
    Table::counted("rates", each(&System::SWEPT, &POLLS), by_fields, measure, AGGREGATES)
}

/// `auto` on a link that is ten times as fast.
fn paced() -> Table<PacedCase, Paced> {
    let loads =
        [(System::Lro, Reader::Busy), (System::Auto, Reader::Busy), (System::Auto, Reader::Idle)];
    let of = |(system, guest)| {
        each(&[system], &PACED_POLLS).into_iter().map(move |case| PacedCase { case, guest })
    };
    let traffic = Traffic::new(FRAMES, SEGMENT_BYTES);
    let measure = move |it: PacedCase| virtual_time::paced(it.case, it.guest, &traffic);
    Table::counted(
        "paced",
        loads.into_iter().flat_map(of).collect(),
        by_fields,
        measure,
        AGGREGATES,
    )
}

/// Requests, on virtual time.
fn exchanges() -> Table<System, Exchange> {
    let requests = Traffic::new(REQUESTS, 1);
    let measure = move |system| virtual_time::exchange(system, &requests);
    let shown = ("per_second", "a second");
    Table::counted("exchanges", System::DOMAINS.to_vec(), by_fields, measure, shown).by("system")
}

fn costs(extent: &'static Extent) -> Table<Case, Cost> {
    let measure = |case| driver::count(case, extent.counted_frames);
    let cases = each(&System::COUNTED, extent.polls);
    Table::counted("costs", cases, by_fields, measure, INSTRUCTIONS).optional()
}

/// Guests whose instructions are counted: with GRO as today's kernels use it, at the paper's frames per poll
/// also without it; each time with the guest that owns the card.
fn guests(extent: &'static Extent, is_quick: bool) -> Table<GuestCase, GuestCost> {
    let case = |gro| move |case| GuestCase { case, gro };
    let by_poll = extent.polls.iter().flat_map(|polls| each(extent.systems, &[*polls]));
    let linux = || each(&[System::Linux], &[FRAMES_A_POLL]);
    let today = by_poll.chain(linux()).map(case(true));
    let as_then = each(&System::DOMAINS, &[FRAMES_A_POLL]).into_iter().chain(linux());
    let cases = today.chain(as_then.filter(|_| !is_quick).map(case(false))).collect();
    let measure = |case, _| guest::cost(case, extent.guest_bytes);
    Table::timed(("guests", cases), 1, by_fields, measure, INSTRUCTIONS).row_by_row().optional()
}

/// The rates on the paper's machine.
fn machines(extent: &'static Extent) -> Table<System, GuestRate> {
    let cases = ("machines", System::RECEIVERS.to_vec());
    let measure = |system, _| rate::measure(system, extent.machine_bytes);
    let table = Table::timed(cases, extent.rounds, by_fields, measure, ("mbit_per_s", "Mbit/s"));
    table.by("system").rotated().row_by_row().optional()
}

/// Requests to live guests.
fn requests(extent: &'static Extent) -> Table<(), Requests> {
    let label = |()| format!("{REQUEST_ROUNDS} rounds of requests to guests");
    let measure = |(), boot| exchange::rounds(REQUEST_ROUNDS, extent.transactions, boot);
    let shown = ("hold_p99_us", "us in the driver domain (p99)");
    let table = Table::timed(("requests", vec![()]), extent.boots, label, measure, shown);
    table.row_by_row().optional()
}

fn several(extent: &'static Extent) -> Table<SeveralCase, Several> {
    let (systems, counts) = extent.several;
    let of = |&system| counts.iter().map(move |&guests| SeveralCase { system, guests });
    let cases = ("several", systems.iter().flat_map(of).collect());
    let measure = |it, _| several::measure(it, extent.several_bytes, extent.transactions);
    Table::timed(cases, 1, by_fields, measure, ("each", "")).row_by_row().optional()
}

/// Adds the payload's places in the guest's memory, by the path of packets into it: the percent of the payload at
/// each address modulo a cache line, and the percent that lies elsewhere on the other path.
fn alignments(rows: &mut Rows) -> Result<()> {
    let shares = |system: &str| -> Option<[f64; 64]> {
        let of = |row: &&Value| {
            row["system"] == system && row["frames_a_poll"] == FRAMES_A_POLL && row["gro"] == true
        };
        let row = rows.get("guests")?.as_array()?.iter().find(of)?;
        let bytes = |place: usize| row["alignment"][place.to_string()].as_f64().unwrap_or(0.0);
        let all: f64 = (0..64).map(bytes).sum::<f64>().max(1.0);
        Some(std::array::from_fn(|place| 100.0 * bytes(place) / all))
    };
    let both = shares("lro").zip(shares("bo"));
    let is_drawn = |[lro, bo]: &[f64; 2]| lro.max(*bo) >= LEAST_PERCENT;
    let place =
        |(place, [lro, bo]): (usize, [f64; 2])| json!({ "place": place, "lro": lro, "bo": bo });
    let pairs = both.map(|(lro, bo)| std::array::from_fn::<_, 64, _>(|at| [lro[at], bo[at]]));
    let drawn = pairs.into_iter().flatten().enumerate().filter(|(_, pair)| is_drawn(pair));
    rows.insert("places".to_owned(), drawn.map(place).collect());
    let apart =
        |pairs: [[f64; 2]; 64]| pairs.iter().map(|[lro, bo]| (lro - bo).abs()).sum::<f64>() / 2.0;
    rows.insert("elsewhere".to_owned(), pairs.map(apart).into());
    Ok(())
}

fn facts(extent: &Extent) -> Vec<Fact> {
    let numbers = [
        ("frames", extent.counted_frames),
        ("short_kib", extent.guest_bytes / 4_096),
        ("long_kib", extent.guest_bytes / 1_024),
        ("short_mib", extent.machine_bytes / (4 << 20)),
        ("long_mib", extent.machine_bytes >> 20),
        ("transactions", extent.transactions),
        ("boots", extent.boots),
        ("several_kib", extent.several_bytes / 1_024),
    ];
    let numbers = numbers.map(|(name, number)| (name, number.to_string()));
    [("systems", System::list())].into_iter().chain(numbers).collect()
}

/// Frames per poll in the paper, derived from LRO's packets per aggregate.
const FRAMES_A_POLL: f64 = 2.55;
/// Frames per poll on virtual time, with the paper's value, and that of its earlier machine (Table I).
const POLLS: [f64; 12] =
    [1.0, 2.0, FRAMES_A_POLL, 2.65, 3.0, 4.0, 6.0, 8.0, 12.0, 16.0, 24.0, 32.0];
/// Frames per poll on the faster link. At least two: a poll of one frame leaves at once, whatever the guest
/// has read.
const PACED_POLLS: [f64; 4] = [2.0, FRAMES_A_POLL, 4.0, 8.0];
const FRAMES: usize = 20_000;
const REQUESTS: usize = 1_000;
/// Rounds of requests with one set of guests.
const REQUEST_ROUNDS: usize = 3;
/// Smallest share of the payload that is drawn.
const LEAST_PERCENT: f64 = 0.5;
const AGGREGATES: (&str, &str) = ("packets_an_aggregate", "packets an aggregate");
const INSTRUCTIONS: (&str, &str) = ("instructions_a_byte", "instructions a byte");

#[cfg(test)]
mod tests;
