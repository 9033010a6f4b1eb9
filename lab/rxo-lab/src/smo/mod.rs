//! `rxo-lab smo`: one sender for many receivers (Chan and Cheriton 2013, section 4): the sender's cost of an ACK
//! with and without the fast path, and the growth of transfer time from 88 receivers to 168.
//!
//! The same [`sender`] is measured four times: its instructions under callgrind ([`cost`]); on [`virtual_time`]
//! with these instructions; alone on a core ([`knee`]); and as `rxo cast send` in namespaces ([`real`]). The
//! receivers are modelled ([`model`]) except in namespaces. The [`figures`] show the paper's values beside ours.

mod card;
pub(crate) mod cost;
mod figures;
mod knee;
mod model;
pub(crate) mod real;
mod sender;
mod virtual_time;

use std::cell::{OnceCell, RefCell};
use std::rc::Rc;
use std::sync::atomic::AtomicBool;

use anyhow::{Context, Result};
use rxo_demo::limits::within;
use rxo_demo::machine::Cores;
use rxo_demo::stats::Spread;

use self::cost::Cost;
use self::figures::GROWTH;
use self::knee::Timed;
use self::model::{least_time, return_share};
use self::real::{Fate, Sample};
use self::sender::{Case, FEWEST, MOST, Way};
use self::virtual_time::{Cast, Costs};
use crate::callgrind;
use crate::claim::Fact;
use crate::flags::{Part, RunFlags};
use crate::runner::Outcome;
use crate::scenario::Cells;
use crate::study::{Measured, Study, Table};

/// Figures 6 and 8 by callgrind, and figure 5 on virtual time from these counts; figure 5 with the sender alone
/// on a core; casts to 168 receivers in eight namespaces.
pub(crate) const PARTS: &[Part] =
    &[Part::counted("cost"), Part::counted("simulation"), Part::timed("knee"), Part::timed("real")];

/// The costs that were counted, from which a simulation takes those of its sender.
type Ledger = Rc<RefCell<Vec<(Case, Cost)>>>;

/// Makes the experiment from the flags.
///
/// # Errors
/// If a number is invalid, or `--only` names no part.
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
    let costs = costs(counted.collect(), if quick { 10 } else { 60 }, Rc::clone(&ledger));
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
    let prepare = move || if is_counted { callgrind::check() } else { Ok(()) };
    Ok(Study { prepare: Box::new(prepare), ..Study::of("smo", tables) })
}

/// Counts an ACK of each case.
fn costs(cases: Vec<Case>, rounds: usize, ledger: Ledger) -> Table<Case, Cost> {
    let measure = move |case, _, _: &AtomicBool| -> Result<Cost> {
        let cost = cost::count(case, rounds)?;
        ledger.borrow_mut().push((case, cost.clone()));
        Ok(cost)
    };
    let line = |cost: &Cost| format!("{:.0} instructions an ACK", cost.ack);
    let outcome = move |costs: &Cells<Case, Cost>| -> Result<Outcome> {
        let facts = vec![("counted_rounds", rounds.to_string())];
        let (figures, claims) = (figures::of_costs(costs), vec![figures::many(costs)]);
        Ok(Outcome { figures, claims, facts, ..Outcome::default() })
    };
    Table::new(("costs", cases), None, Case::name, measure, line).concluded(outcome)
}

/// Simulates figure 5 on virtual time, at the knee of the sender without the fast path.
fn simulation(cases: Vec<Case>, bytes: u64, ledger: Ledger) -> Table<Case, Cast> {
    let knee = Knee::of(&cases);
    let rate = Rc::clone(&knee.rate);
    let measure = move |case: Case, _, _: &AtomicBool| -> Result<Cast> {
        let ledger = ledger.borrow();
        let costs = |case| costs_of(&ledger, case).context("no ACK was counted");
        let rate = knee.rate(bytes, |most, rate| {
            let cast = virtual_time::cast(most, rate.unwrap_or(UNLIMITED), bytes, costs(most)?)?;
            Ok(if rate.is_none() { cast.busy_seconds } else { cast.seconds })
        })?;
        virtual_time::cast(case, rate, bytes, costs(case)?)
    };
    let line = |cast: &Cast| format!("{:.3} s", cast.seconds);
    let outcome = move |casts: &Cells<Case, Cast>| -> Result<Outcome> {
        let figures = figures::simulated(&casts.map(|cast| Some(cast.percent())));
        let facts = mbit("simulated_mbit", &rate).into_iter().collect();
        Ok(Outcome { figures, facts, ..Outcome::default() })
    };
    let name = |case: Case| format!("virtual time, {}", case.name());
    Table::new(("simulated", cases), None, name, measure, line).concluded(outcome)
}

/// Measures figure 5 between cores, at the knee's rate, which the first cast finds.
fn at_knee(cases: Vec<Case>, bytes: u64, rounds: usize) -> Table<Case, Timed> {
    let (knee, cores) = (Knee::of(&cases), Cores::choose());
    let rate = Rc::clone(&knee.rate);
    let measure = move |case: Case, _, _: &AtomicBool| -> Result<Timed> {
        let rate = knee.rate(bytes, |most, rate| {
            let casts = 0..if rate.is_none() { CALIBRATIONS } else { 1 };
            let rate = rate.unwrap_or(UNLIMITED);
            let casts = casts.map(|_| knee::cast(most, rate, bytes, cores));
            let casts = casts.collect::<Result<Vec<_>>>()?;
            Spread::over(&casts, |cast| cast.seconds).map(|it| it.median).context("no cast")
        })?;
        knee::cast(case, rate, bytes, cores)
    };
    let line = |timed: &Timed| format!("{:.3} s", timed.seconds);
    let outcome = move |casts: &Cells<Case, Timed>| -> Result<Outcome> {
        let acks = casts.samples().map(|(_, timed)| timed.acks_a_segment).reduce(f64::max);
        let facts = [
            mbit("knee_mbit", &rate),
            acks.map(|acks| ("acks", format!("{acks:.1}"))),
            acks.map(|acks| ("return_percent", format!("{:.0}", 100.0 * return_share(acks)))),
        ];
        let facts = facts.into_iter().flatten().collect();
        let figures = figures::at_knee(&casts.map(|timed| Some(timed.percent)));
        Ok(Outcome { figures, facts, ..Outcome::default() })
    };
    let name = |case: Case| format!("knee, {}", case.name());
    let table = Table::new(("knee", cases), Some(rounds), name, measure, line);
    table.rotated().concluded(outcome)
}

/// Measures casts in namespaces.
fn in_namespaces(
    cases: (&'static str, Vec<Case>),
    bytes: u64,
    (rounds, fate): (usize, Fate),
) -> Table<Case, Sample> {
    let is_hard = fate == Fate::Hardship;
    let kind = if is_hard { "hardship, " } else { "" };
    let line = |cast: &Sample| format!("{:.3} s, {} right files", cast.seconds, cast.right);
    let outcome = move |casts: &Cells<Case, Sample>| -> Result<Outcome> {
        // Under hardship one receiver more is stopped, and one is killed.
        let more = usize::from(is_hard);
        let is_intact = casts.samples().all(|(case, it)| it.right >= case.receivers + more);
        if is_hard {
            let claims = casts.samples().map(|(case, sample)| figures::hardship(case, sample));
            return Ok(Outcome::default().claims(claims.collect()).intact(is_intact));
        }
        let acks = casts.samples().map(|(_, sample)| sample.acks_a_segment).reduce(f64::max);
        let facts = acks.map(|acks| ("real_acks", format!("{acks:.3}"))).into_iter().collect();
        let figures = figures::in_namespaces(&casts.map(|sample| Some(sample.percent)));
        Ok(Outcome { figures, facts, ..Outcome::default() }.intact(is_intact))
    };
    let name = move |case: Case| format!("namespaces, {kind}{}", case.name());
    let measure = move |case, _, _: &AtomicBool| real::cast(case, fate, bytes);
    Table::new(cases, Some(rounds), name, measure, line).rotated().concluded(outcome)
}

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
    rate: Rc<OnceCell<f64>>,
}

impl Knee {
    fn of(cases: &[Case]) -> Self {
        let receivers = cases.iter().map(|case| case.receivers).max().unwrap_or_default();
        Self { most: Case { way: Way::Stack, receivers }, rate: Rc::default() }
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

fn mbit(name: &'static str, rate: &OnceCell<f64>) -> Option<Fact> {
    rate.get().map(|rate| (name, format!("{:.1}", rate / 1e6)))
}

/// Rate of a link that limits nothing, in bits per second.
const UNLIMITED: f64 = 1e12;
/// Number of measurements of the sender alone.
const CALIBRATIONS: usize = 3;
/// Most increases of the rate.
const MOST_RAISES: usize = 12;
const COUNTED: [usize; 4] = [8, FEWEST, MOST, figures::MANY];
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
mod tests {
    use super::*;
    use crate::flags::typed;

    #[test]
    fn parts_are_measured_alone_and_all_without_flags() {
        let of = |line: &str| study(&typed(line).unwrap());
        let steps = |line: &str| of(line).unwrap().each_step();
        assert_eq!(steps("--rounds 1"), [12, 22, 6, 4, 2]);
        assert_eq!(steps("--only cost"), [12, 0, 0, 0, 0]);
        assert_eq!(steps("--only simulation"), [3, 22, 0, 0, 0], "it needs the costs");
        assert_eq!(steps("--only knee,real"), [0, 0, 60, 40, 2]);
        assert_eq!(steps("--quick"), [6, 4, 4, 2, 2]);
        assert_eq!(steps("--counted"), [6, 4, 0, 0, 0]);
        assert!(!of("--only cost,simulation").unwrap().needs_networks);
        assert!(of("--only knee").unwrap().needs_networks);
        let error = of("--rounds 0").err().unwrap().to_string();
        assert_eq!(error, "--rounds 0: choose 1 to 100");
    }

    /// A wrong copy must change the exit code.
    #[test]
    fn a_wrong_copy_is_damage() {
        let case = Case { way: Way::Fast, receivers: 168 };
        let damage = |fate, right| {
            let cells = Cells::of(vec![(case, vec![Sample { right, ..Sample::default() }])]);
            in_namespaces(("real", vec![case]), 1, (1, fate)).conclude(&cells).unwrap().damage
        };
        assert!(damage(Fate::Nothing, 168).is_none() && damage(Fate::Nothing, 167).is_some());
        assert!(damage(Fate::Hardship, 169).is_none(), "all but the one that was killed");
        assert!(damage(Fate::Hardship, 168).is_some());
    }
}
