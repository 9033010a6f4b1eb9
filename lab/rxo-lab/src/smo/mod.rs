//! `rxo-lab smo`: one sender for many receivers (Chan and Cheriton 2013, section 4): the sender's cost of an ACK
//! with and without the fast path, and the growth of transfer time from 88 receivers to 168.
//!
//! The same [`sender`] is measured four times: its instructions under callgrind ([`cost`]); on [`virtual_time`]
//! with these instructions; alone on a core ([`knee`]); and as `rxo cast send` in namespaces ([`real`]). The
//! receivers are modelled ([`model`]) except in namespaces. The paper's values, the figures and the claims stand in
//! `claims/smo.json`.

mod card;
pub(crate) mod cost;
mod knee;
mod model;
pub(crate) mod real;
mod sender;
mod virtual_time;

use std::cell::{OnceCell, RefCell};
use std::rc::Rc;

use anyhow::{Context, Result};
use rxo_demo::limits::within;
use rxo_demo::machine::Cores;
use rxo_demo::stats::Spread;

use self::cost::Cost;
use self::knee::Timed;
use self::model::{least_time, return_share};
use self::real::{Fate, Sample};
use self::sender::{Case, FEWEST, MOST, Way};
use self::virtual_time::{Cast, Costs};
use crate::callgrind;
use crate::claim::Fact;
use crate::flags::{Part, RunFlags};
use crate::study::{Measured, Rows, Study, Table, by_fields, rows_of};

/// Figures 6 and 8 by callgrind, and figure 5 on virtual time from these counts; figure 5 with the sender alone
/// on a core; casts to 168 receivers in eight namespaces.
pub(crate) const PARTS: &[Part] =
    &[Part::counted("cost"), Part::counted("simulation"), Part::timed("knee"), Part::timed("real")];

/// The costs that were counted, from which a simulation takes those of its sender.
type Ledger = Rc<RefCell<Vec<(Case, Cost)>>>;

/// Makes the experiment from the flags.
pub(crate) fn study(flags: &RunFlags) -> Result<Study> {
    let (parts, quick) = (flags.chosen(PARTS)?, flags.is_quick());
    let rounds = flags.rounds.unwrap_or(if quick { 1 } else { ROUNDS });
    within("--rounds", rounds, 1..=MOST_ROUNDS)?;
    let of = |part, quick_ones: &[usize], all: &[usize]| {
        let receivers = if quick { quick_ones } else { all }.iter().filter(|_| parts.has(part));
        receivers.flat_map(|count| Way::TIMED.map(|way| Case { way, receivers: *count })).collect()
    };
    let many: Vec<usize> = (FEWEST..=MOST).step_by(8).collect();
    let simulated: Vec<Case> = of("simulation", &QUICK_RECEIVERS, &many);
    let counted: &[usize] = match (parts.has("cost"), simulated.is_empty()) {
        (true, _) if !quick => &COUNTED,
        (false, false) if !quick => &[MOST],
        (false, true) => &[],
        _ => &QUICK_RECEIVERS,
    };
    let counted =
        counted.iter().flat_map(|count| Way::ALL.map(|way| Case { way, receivers: *count }));
    let bytes = |full| if quick { QUICK_BYTES } else { full };
    let ledger = Ledger::default();
    let counted_rounds = if quick { 10 } else { 60 };
    let costs = costs(counted.collect(), counted_rounds, Rc::clone(&ledger));
    let knee = of("knee", &QUICK_RECEIVERS, &[88, 128, 168]);
    let real = of("real", &QUICK_RECEIVERS[..1], &[FEWEST, MOST]);
    let hardship = of("real", &QUICK_RECEIVERS[..1], &[MOST]);
    let is_counted = costs.steps() > 0;
    let tables: Vec<Box<dyn Measured>> = vec![
        Box::new(costs),
        Box::new(simulation(simulated, bytes(SIMULATED_BYTES), ledger)),
        Box::new(at_knee(knee, bytes(KNEE_BYTES), rounds)),
        Box::new(in_namespaces(("real", real), bytes(REAL_BYTES), (rounds, Fate::Nothing))),
        Box::new(in_namespaces(("hardship", hardship), bytes(REAL_BYTES), (1, Fate::Hardship))),
    ];
    Ok(Study {
        prepare: Box::new(move || if is_counted { callgrind::check() } else { Ok(()) }),
        facts: Box::new(move |rows| facts(rows, is_counted.then_some(counted_rounds))),
        ..Study::of("smo", tables)
    })
}

/// Returns what the notes say of the rows, and the rounds of the counts, if there are any.
fn facts(rows: &Rows, counted_rounds: Option<usize>) -> Vec<Fact> {
    let most = |table: &str, field: &str| {
        let rows = rows_of(rows, table).iter();
        rows.filter_map(|row| row[field].as_f64()).reduce(f64::max)
    };
    let mbit = |table| Some(format!("{:.1}", most(table, "bits_per_s")? / 1e6));
    let acks = most("knee", "acks_a_segment");
    let all = [
        ("counted_rounds", counted_rounds.map(|rounds| rounds.to_string())),
        ("simulated_mbit", mbit("simulated")),
        ("knee_mbit", mbit("knee")),
        ("acks", acks.map(|acks| format!("{acks:.1}"))),
        ("return_percent", acks.map(|acks| format!("{:.0}", 100.0 * return_share(acks)))),
        ("real_acks", most("real", "acks_a_segment").map(|acks| format!("{acks:.3}"))),
    ];
    all.into_iter().filter_map(|(name, fact)| Some((name, fact?))).collect()
}

/// Counts an ACK of each case.
fn costs(cases: Vec<Case>, rounds: usize, ledger: Ledger) -> Table<Case, Cost> {
    let measure = move |case| -> Result<Cost> {
        let cost = cost::count(case, rounds)?;
        ledger.borrow_mut().push((case, cost.clone()));
        Ok(cost)
    };
    Table::counted("costs", cases, by_fields, measure, ("ack", "instructions an ACK"))
}

/// Simulates figure 5 on virtual time, at the knee of the sender without the fast path.
fn simulation(cases: Vec<Case>, bytes: u64, ledger: Ledger) -> Table<Case, Cast> {
    let knee = Knee::of(&cases);
    let measure = move |case: Case| -> Result<Cast> {
        let ledger = ledger.borrow();
        let costs = |case| costs_of(&ledger, case).context("no ACK was counted");
        let rate = knee.rate(bytes, |most, rate| {
            let cast = virtual_time::cast(most, rate.unwrap_or(UNLIMITED), bytes, costs(most)?)?;
            Ok(if rate.is_none() { cast.busy_seconds } else { cast.seconds })
        })?;
        virtual_time::cast(case, rate, bytes, costs(case)?)
    };
    Table::counted("simulated", cases, by_fields, measure, SECONDS)
}

/// Measures figure 5 between cores, at the knee's rate, which the first cast finds.
fn at_knee(cases: Vec<Case>, bytes: u64, rounds: usize) -> Table<Case, Timed> {
    let (knee, cores) = (Knee::of(&cases), Cores::choose());
    let measure = move |case: Case, _| -> Result<Timed> {
        let rate = knee.rate(bytes, |most, rate| {
            let casts = 0..if rate.is_none() { CALIBRATIONS } else { 1 };
            let rate = rate.unwrap_or(UNLIMITED);
            let casts = casts.map(|_| knee::cast(most, rate, bytes, cores));
            let casts = casts.collect::<Result<Vec<_>>>()?;
            Spread::over(&casts, |cast| cast.seconds).map(|it| it.median).context("no cast")
        })?;
        knee::cast(case, rate, bytes, cores)
    };
    Table::timed(("knee", cases), rounds, by_fields, measure, SECONDS).rotated().row_by_row()
}

/// Measures casts in namespaces.
fn in_namespaces(
    cases: (&'static str, Vec<Case>),
    bytes: u64,
    (rounds, fate): (usize, Fate),
) -> Table<Case, Sample> {
    let measure = move |case, _| real::cast(case, fate, bytes);
    Table::timed(cases, rounds, by_fields, measure, SECONDS).rotated().row_by_row()
}

const SECONDS: (&str, &str) = ("seconds", "s");

/// Returns the costs that were counted for the nearest number of receivers; `None` if none were.
fn costs_of(ledger: &[(Case, Cost)], Case { way, receivers }: Case) -> Option<Costs> {
    let of_way = ledger.iter().filter(|(case, _)| case.way == way);
    let (_, nearest) = of_way.min_by_key(|(case, _)| case.receivers.abs_diff(receivers))?;
    // The simulated processor executes an instruction in a nanosecond.
    Some(Costs { ack_ns: nearest.ack, segment_ns: nearest.segment })
}

/// The link rate at which the sender without the fast path takes longer than the link, by the ratio between 168
/// and 88 receivers without TCP-PARO in the paper.
struct Knee {
    /// The cast to the most receivers, without the fast path.
    most: Case,
    /// The rate in bits per second, once it is found.
    rate: OnceCell<f64>,
}

impl Knee {
    fn of(cases: &[Case]) -> Self {
        let receivers = cases.iter().map(|case| case.receivers).max().unwrap_or_default();
        Self { most: Case { way: Way::Stack, receivers }, rate: OnceCell::new() }
    }

    /// Returns the rate; the first call finds it. `seconds` returns the time of the cast over a link of a rate, or
    /// of the sender alone. A sender on an unlimited link may wait for its window, so the first estimate can be
    /// too low, and is raised.
    fn rate(&self, bytes: u64, seconds: impl Fn(Case, Option<f64>) -> Result<f64>) -> Result<f64> {
        if let Some(rate) = self.rate.get() {
            return Ok(*rate);
        }
        let longer = 1.0 + GROWTH / 100.0;
        let mut rate = least_time(bytes, 1.0).as_secs_f64() / seconds(self.most, None)? * longer;
        for _ in 0..MOST_RAISES {
            let least_s = least_time(bytes, rate).as_secs_f64();
            if seconds(self.most, Some(rate))? >= longer * least_s {
                break;
            }
            rate *= longer;
        }
        Ok(*self.rate.get_or_init(|| rate))
    }
}

/// Growth of the transfer time from 88 to 168 receivers without TCP-PARO, in percent (section 4.1).
const GROWTH: f64 = 12.6;
/// Rate of a link that limits nothing, in bits per second.
const UNLIMITED: f64 = 1e12;
/// Number of measurements of the sender alone.
const CALIBRATIONS: usize = 3;
/// Most increases of the rate.
const MOST_RAISES: usize = 12;
/// Numbers of receivers whose ACKs are counted; the last is that of the project's own aim.
const COUNTED: [usize; 4] = [8, FEWEST, MOST, 1_000];
/// Numbers of receivers of a quick run; 8 is the number of the paper's machines.
const QUICK_RECEIVERS: [usize; 2] = [8, 24];
/// Bytes of a simulated cast, one fifth of the paper's 2.7 s of link time.
const SIMULATED_BYTES: u64 = 64_000_000;
const KNEE_BYTES: u64 = 320_000_000;
const REAL_BYTES: u64 = 13_000_000;
const QUICK_BYTES: u64 = 1_500_000;
const ROUNDS: usize = 10;
const MOST_ROUNDS: usize = 100;

#[cfg(test)]
mod tests;
