//! `rxo-lab cast`: a file for many receivers by one cast, beside as many downloads, under independent losses and on
//! virtual time.
//!
//! The network is that of the endpoint's own tests, whose receivers compare every byte. [`live`] measures casts of
//! real processes beside `udpcast`.

#[path = "../../../../crates/rxo-tcp/tests/multicast/costs.rs"]
mod costs;
#[path = "../../../../crates/rxo-tcp/tests/multicast/links.rs"]
#[expect(dead_code, reason = "the stories use all of it")]
mod links;
pub(crate) mod live;
#[path = "../../../../crates/rxo-tcp/tests/multicast/receivers.rs"]
#[expect(dead_code, reason = "the stories use all of it")]
mod receivers;
#[path = "../../../../crates/rxo-tcp/tests/multicast/room.rs"]
#[expect(dead_code, reason = "the stories use all of it")]
mod room;
#[path = "../../../../crates/rxo-tcp/tests/multicast/settings.rs"]
mod settings;
#[path = "../../../../crates/rxo-tcp/tests/multicast/unicasts.rs"]
#[expect(dead_code, reason = "the stories use all of it")]
mod unicasts;
#[path = "../../../../crates/rxo-tcp/tests/harness/wire.rs"]
mod wire;

use anyhow::Result;
use serde::Serialize;

use self::room::{group_config, parity_config};
use crate::claim::{Basis, Claim};
use crate::figure::Shape;
use crate::flags::{Part, RunFlags};
use crate::runner::Experiment;
use crate::scenario::{Cells, Chart, Scenario};

pub(crate) const PARTS: &[Part] = &[Part::counted("loss")];

/// The way to the receivers.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
#[serde(rename_all = "lowercase")]
enum Way {
    /// A cast that repairs losses by parity packets: the default of `rxo cast`.
    Parity,
    /// A cast that repeats lost segments to the group.
    Repeats,
    Unicasts,
    /// A cast with parity, whose first receiver, the leader, stops for ever.
    Stopped,
}

/// A way, the number of receivers, the lost segments per 1000, and the megabytes of the file.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
struct Case(Way, u16, u64, usize);

/// The cost of a file.
#[derive(Serialize)]
struct Cost {
    ms: f64,
    /// Bytes on the sender's link for a byte of the file.
    copies: f64,
    /// Time for joins and farewells.
    around_ms: f64,
}

const RECEIVERS: [(u16, [&str; 2]); 3] = [
    (5, ["cast.time.5", "cast.bytes.5"]),
    (20, ["cast.time.20", "cast.bytes.20"]),
    (168, ["cast.time.168", "cast.bytes.168"]),
];
const LOSSES: [u64; 4] = [0, 1, 10, 30];

/// Makes the experiment from the flags.
///
/// # Errors
/// If `--only` names no part.
pub(crate) fn scenario(flags: &RunFlags) -> Result<impl Experiment + use<>> {
    flags.chosen(PARTS)?;
    let mb = if flags.is_quick() { QUICK_MB } else { MB };
    let all = RECEIVERS.into_iter().flat_map(|(count, _)| LOSSES.map(|loss| (count, loss)));
    let ways = |(count, loss)| {
        [Way::Parity, Way::Repeats, Way::Unicasts].map(|way| Case(way, count, loss, mb))
    };
    let mut cases: Vec<Case> = all.flat_map(ways).collect();
    for (count, mb) in SIZES {
        let stops = [Way::Parity, Way::Stopped].map(|way| Case(way, count, 0, mb));
        cases.extend(stops.into_iter().filter(|case| !cases.contains(case)).collect::<Vec<_>>());
    }
    Ok(Scenario {
        basis: Basis::VirtualTime,
        cases,
        rounds: 1,
        rotated: 1,
        name: |case| format!("{}, {}", line(case), x(case)),
        measure: Box::new(|case| Ok(measure(case))),
        line: |cost| format!("{:.1} ms, {:.2} copies", cost.ms, cost.copies),
        charts: &[TIME, BYTES_SENT],
        claims,
        is_intact: |_| true,
        facts: vec![("mb", mb.to_string())],
    })
}

const TIME: Chart<Case, Cost> =
    Chart { number: "time", x, line, value: |cost| cost.ms, paper: |_| None, shape: Shape::Bars };
const BYTES_SENT: Chart<Case, Cost> = Chart { number: "bytes", value: |cost| cost.copies, ..TIME };

fn x(Case(_, receivers, loss, mb): Case) -> String {
    format!("{receivers}, {mb} MB, {} %", loss as f64 / 10.0)
}

fn line(Case(way, ..): Case) -> &'static str {
    match way {
        Way::Parity => "cast, parity",
        Way::Repeats => "cast, repeated segments",
        Way::Unicasts => "downloads",
        Way::Stopped => "cast, one receiver stops",
    }
}

fn measure(Case(way, receivers, loss, mb): Case) -> Cost {
    let bytes = mb * 1_000_000;
    let stops = (way == Way::Stopped).then_some(0);
    let case = costs::Case { receivers, bytes, loss, stops };
    let cost = match way {
        Way::Unicasts => case.unicasts(),
        Way::Repeats => case.cast(group_config()),
        Way::Parity | Way::Stopped => case.cast(parity_config()),
    };
    let ms = |time: core::time::Duration| time.as_secs_f64() * 1e3;
    Cost { ms: ms(cost.time), copies: cost.bytes as f64 / bytes as f64, around_ms: ms(cost.around) }
}

fn claims(chart: &'static str, cells: &Cells<Case, Cost>) -> Vec<Claim> {
    let median = |case, of: fn(&Cost) -> f64| cells.median(case, of);
    let mb = cells.cases().next().map_or(0, |Case(.., mb)| mb);
    // The loss at which a cast is worst decides.
    let worst = |count, of: fn(&Cost) -> f64| {
        let share = |loss| {
            let [cast, unicasts] =
                [Way::Parity, Way::Unicasts].map(|way| median(Case(way, count, loss, mb), of));
            Some(cast? / unicasts?)
        };
        LOSSES.into_iter().filter_map(share).reduce(f64::max)
    };
    let (at, of): (usize, fn(&Cost) -> f64) =
        if chart == "time" { (0, |cost| cost.ms) } else { (1, |cost| cost.copies) };
    let mut all: Vec<Claim> =
        RECEIVERS.iter().map(|(count, ids)| Claim::new(ids[at], worst(*count, of), None)).collect();
    if chart == "time" {
        let casts = cells.cases().filter(|Case(way, ..)| *way == Way::Parity);
        let around = casts.filter_map(|case| median(case, |cost| cost.around_ms)).reduce(f64::max);
        all.push(Claim::new("cast.around", around, None));
        all.push(stopped(&|case| median(case, of)));
    }
    all
}

/// Returns the claim about the time that a stopped receiver costs the others, where that is most.
fn stopped(time: &dyn Fn(Case) -> Option<f64>) -> Claim {
    let costs = SIZES.into_iter().filter_map(|(receivers, mb)| {
        let whole = time(Case(Way::Parity, receivers, 0, mb))?;
        let stopped = time(Case(Way::Stopped, receivers, 0, mb))?;
        Some((100.0 * (stopped / whole - 1.0), whole, stopped))
    });
    let most = costs.max_by(|one, other| one.0.total_cmp(&other.0));
    let detail = most.map(|(_, whole, stopped)| format!("{whole:.0} and {stopped:.0} ms."));
    Claim::new("cast.stopped", most.map(|(percent, ..)| percent), detail)
}

const MB: usize = 10;
const QUICK_MB: usize = 2;
/// Casts in which one receiver stops: the number of receivers, and the size of the file in megabytes.
const SIZES: [(u16, usize); 4] = [(5, 10), (5, 60), (20, 10), (20, 60)];
