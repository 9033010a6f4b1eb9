//! `rxo-lab paro`: Chan and Cheriton, "Improving Server Application Performance via Pure TCP ACK Receive
//! Optimization" (2013): what the fast path for pure ACKs saves a file server.
//!
//! The saving is measured twice. *Counted*: the host and the HTTP server run on a ring in shared memory
//! ([`server`]), with modelled [`clients`] at its other end, under callgrind ([`cost`]); the count is exact on
//! any machine. *Live*: `rxo serve` runs behind `rxo card` with Linux clients ([`live`]). A [`case`] is a way of
//! ACKs, a file size and an ACK rate. The [`figures`] show the paper's values beside ours.

mod app;
mod case;
mod clients;
mod cost;
mod figures;
mod live;
pub(crate) mod server;
mod stamped;

use std::cell::RefCell;
use std::rc::Rc;
use std::sync::atomic::AtomicBool;

use anyhow::Result;
use rxo_demo::limits::within;

use self::case::{AckRate, Case, PROFILED_BYTES, TABLE_1, Way};
use self::cost::Cost;
use self::live::{Live, LiveScale, Window};
use self::server::Scale;
use crate::callgrind;
use crate::claim::if_so;
use crate::flags::{Part, RunFlags};
use crate::runner::Outcome;
use crate::scenario::Cells;
use crate::study::{Measured, Study, Table};

/// Table 1, figures 1 and 4: instructions of requests; figure 3: cycles, as callgrind estimates them with
/// simulated caches; a live server with Linux clients.
pub(crate) const PARTS: &[Part] =
    &[Part::counted("requests"), Part::counted("cycles"), Part::timed("live")];

/// Makes the experiment from the flags.
///
/// # Errors
/// If a number is invalid; the message describes valid values.
pub(crate) fn study(flags: &RunFlags) -> Result<Study> {
    let (parts, quick) = (flags.chosen(PARTS)?, flags.is_quick());
    let rounds = flags.rounds.unwrap_or(if quick { 1 } else { ROUNDS });
    within("--rounds", rounds, 1..=MOST_ROUNDS)?;
    let rates: &[AckRate] = if quick { &[AckRate::Second] } else { &AckRate::ALL };
    let sizes = TABLE_1.map(|row| row.file_bytes).into_iter();
    let sizes = sizes.filter(|bytes| !quick || *bytes == PROFILED_BYTES);
    let requests = rates.iter().flat_map(|acks| sizes.clone().flat_map(|bytes| ways(*acks, bytes)));
    let requests: Vec<Case> = requests.filter(|_| parts.has("requests")).collect();
    // Simulated caches take minutes, so a quick run has them only if they are named.
    let is_simulated = parts.has("cycles") && (parts.is_named("cycles") || !quick);
    let cycles = ways(AckRate::Second, PROFILED_BYTES).into_iter().filter(|_| is_simulated);
    let scale = if quick { QUICK } else { FULL };
    let windows = live::WAYS.into_iter().filter(|_| parts.has("live")).collect();
    let live_scale = if quick { QUICK_LIVE } else { FULL_LIVE };
    let is_counted = is_simulated || !requests.is_empty();
    let tables: Vec<Box<dyn Measured>> = vec![
        Box::new(count(("costs", requests), scale, false)),
        Box::new(count(("cycles", cycles.collect()), scale, true)),
        Box::new(measure_live(windows, rounds, live_scale)),
    ];
    let prepare = move || if is_counted { callgrind::check() } else { Ok(()) };
    Ok(Study { prepare: Box::new(prepare), ..Study::of("paro", tables) })
}

fn ways(acks: AckRate, file_bytes: u64) -> [Case; 4] {
    Way::ALL.map(|way| Case { way, file_bytes, acks })
}

/// Counts instructions or, with `is_simulated`, estimated cycles.
fn count(cases: (&'static str, Vec<Case>), scale: Scale, is_simulated: bool) -> Table<Case, Cost> {
    let measure = move |case, _, _: &AtomicBool| cost::count(case, scale, is_simulated);
    let line = |cost: &Cost| format!("{:.2} million a request", cost.total() / 1e6);
    let figures = if is_simulated { figures::of_cycles } else { figures::of_requests };
    let outcome = move |costs: &Cells<Case, Cost>| -> Result<Outcome> {
        let mut facts = vec![
            ("files", scale.files.to_string()),
            ("clients", scale.clients.to_string()),
            ("counted_mb", (scale.counted_bytes >> 20).to_string()),
            ("warm_mb", (scale.warm_bytes >> 20).to_string()),
        ];
        facts.extend(if_so("is_simulated", is_simulated));
        Ok(Outcome { figures: figures(costs), facts, ..Outcome::default() })
    };
    Table::new(cases, None, Case::name, measure, line).concluded(outcome)
}

/// Measures all ways with one server, which starts with the first window.
fn measure_live(cases: Vec<Way>, rounds: usize, scale: LiveScale) -> Table<Way, Window> {
    let live = Rc::new(RefCell::new(None::<Live>));
    let ended = Rc::clone(&live);
    let measure = move |way, _, _: &AtomicBool| -> Result<Window> {
        match &mut *live.borrow_mut() {
            Some(live) => live.measure(way),
            none => none.insert(Live::start(scale)?).measure(way),
        }
    };
    let line = |window: &Window| format!("{:.0} us a request", window.us_a_request);
    let outcome = move |windows: &Cells<Way, Window>| -> Result<Outcome> {
        ended.take().map_or(Ok(()), Live::finish)?;
        let facts = vec![
            ("live_clients", scale.clients.to_string()),
            ("live_files", scale.files.to_string()),
            ("window_ms", scale.window_ms.to_string()),
            ("rounds", rounds.to_string()),
        ];
        let figures = figures::of_windows(windows).into_iter().collect();
        Ok(Outcome { figures, facts, ..Outcome::default() })
    };
    let name = |way: Way| format!("live, {}", way.title());
    let table = Table::new(("windows", cases), Some(rounds), name, measure, line);
    table.by("way").rotated().concluded(outcome)
}

/// Number and size of the paper's files. The paper has 400 clients, but 50 saturate the link too, and either
/// way a turn has the ACKs of one or two clients. A few hundred kilobytes open each client's window.
const FULL: Scale =
    Scale { clients: 50, files: 100, warm_bytes: 24 << 20, counted_bytes: 32 << 20 };
const QUICK: Scale = Scale { clients: 8, files: 4, warm_bytes: 3 << 20, counted_bytes: 4 << 20 };
const FULL_LIVE: LiveScale = LiveScale { clients: 400, files: 100, window_ms: 1_000 };
const QUICK_LIVE: LiveScale = LiveScale { clients: 16, files: 4, window_ms: 300 };
const ROUNDS: usize = 7;
const MOST_ROUNDS: usize = 100;

#[cfg(test)]
mod tests {
    use super::*;
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
}
