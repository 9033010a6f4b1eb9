//! `rxo-lab paro`: Chan and Cheriton, "Improving Server Application Performance via Pure TCP ACK Receive
//! Optimization" (2013): what the fast path for pure ACKs saves a file server.
//!
//! The saving is measured twice. *Counted*: the host and the HTTP server run on a ring in shared memory
//! ([`server`]), with modelled [`clients`] at its other end, under callgrind ([`cost`]); the count is exact on
//! any machine. *Live*: `rxo serve` runs behind `rxo card` with Linux clients ([`live`]). A [`case`] is a way of
//! ACKs, a file size and an ACK rate. The paper's values, the figures and the claims stand in `claims/paro.json`.

mod app;
mod case;
mod clients;
mod cost;
mod live;
pub(crate) mod server;

use std::cell::RefCell;
use std::rc::Rc;

use anyhow::Result;
use rxo_demo::limits::within;

pub(crate) use self::case::{AckRate, Case, Way};
use self::case::{FILE_BYTES, PROFILED_BYTES};
pub(crate) use self::cost::Cost;
use self::live::{Live, LiveScale, Window};
pub(crate) use self::server::Scale;
use crate::callgrind;
use crate::claim::{Fact, if_so};
use crate::flags::{Part, RunFlags};
use crate::study::{Measured, Study, Table, by_fields};

/// Table 1, figures 1 and 4: instructions of requests; figure 3: cycles, as callgrind estimates them with
/// simulated caches; a live server with Linux clients.
pub(crate) const PARTS: &[Part] =
    &[Part::counted("requests"), Part::counted("cycles"), Part::timed("live")];

/// Makes the experiment from the flags.
pub(crate) fn study(flags: &RunFlags) -> Result<Study> {
    let (parts, quick) = (flags.chosen(PARTS)?, flags.is_quick());
    let rounds = flags.rounds.unwrap_or(if quick { 1 } else { ROUNDS });
    within("--rounds", rounds, 1..=MOST_ROUNDS)?;
    let rates: &[AckRate] = if quick { &[AckRate::Second] } else { &AckRate::ALL };
    let sizes = FILE_BYTES.into_iter().filter(|bytes| !quick || *bytes == PROFILED_BYTES);
    let requests = rates.iter().flat_map(|acks| sizes.clone().flat_map(|bytes| ways(*acks, bytes)));
    let requests: Vec<Case> = requests.filter(|_| parts.has("requests")).collect();
    // Simulated caches take minutes, so a quick run has them only if they are named.
    let is_simulated = parts.has("cycles") && (parts.is_named("cycles") || !quick);
    let cycles = ways(AckRate::Second, PROFILED_BYTES).into_iter().filter(|_| is_simulated);
    let scale = if quick { QUICK } else { FULL };
    let windows: Vec<Way> = live::WAYS.into_iter().filter(|_| parts.has("live")).collect();
    let live_scale = if quick { QUICK_LIVE } else { FULL_LIVE };
    let is_counted = is_simulated || !requests.is_empty();
    let mut facts = Vec::new();
    facts.extend(is_counted.then(|| scale.facts()).into_iter().flatten());
    facts.extend(if_so("is_simulated", is_simulated));
    facts.extend((!windows.is_empty()).then(|| live_scale.facts(rounds)).into_iter().flatten());
    let live = Rc::new(RefCell::new(None::<Live>));
    let tables: Vec<Box<dyn Measured>> = vec![
        Box::new(count(("costs", requests), scale, false)),
        Box::new(count(("cycles", cycles.collect()), scale, true)),
        Box::new(measure_live(windows, rounds, live_scale, Rc::clone(&live))),
    ];
    Ok(Study {
        prepare: Box::new(move || if is_counted { callgrind::check() } else { Ok(()) }),
        // The server has sent its last byte.
        derive: Box::new(move |_| live.take().map_or(Ok(()), Live::finish)),
        facts: Box::new(move |_| facts.clone()),
        ..Study::of("paro", tables)
    })
}

fn ways(acks: AckRate, file_bytes: u64) -> [Case; 4] {
    Way::ALL.map(|way| Case { way, file_bytes, acks })
}

/// Counts instructions or, with `is_simulated`, estimated cycles.
pub(crate) fn count(
    (name, cases): (&'static str, Vec<Case>),
    scale: Scale,
    is_simulated: bool,
) -> Table<Case, Cost> {
    let measure = move |case| cost::count(case, scale, is_simulated);
    Table::counted(name, cases, by_fields, measure, ("total", "instructions or cycles a request"))
}

/// Measures all ways with one server, which starts with the first window.
fn measure_live(
    cases: Vec<Way>,
    rounds: usize,
    scale: LiveScale,
    live: Rc<RefCell<Option<Live>>>,
) -> Table<Way, Window> {
    let measure = move |way, _| -> Result<Window> {
        match &mut *live.borrow_mut() {
            Some(live) => live.measure(way),
            none => none.insert(Live::start(scale)?).measure(way),
        }
    };
    let shown = ("us_a_request", "us a request");
    let table = Table::timed(("windows", cases), rounds, by_fields, measure, shown);
    table.by("way").rotated().row_by_row()
}

impl Scale {
    fn facts(self) -> [Fact; 4] {
        [
            ("files", self.files.to_string()),
            ("clients", self.clients.to_string()),
            ("counted_mb", (self.counted_bytes >> 20).to_string()),
            ("warm_mb", (self.warm_bytes >> 20).to_string()),
        ]
    }
}

impl LiveScale {
    fn facts(self, rounds: usize) -> [Fact; 4] {
        [
            ("live_clients", self.clients.to_string()),
            ("live_files", self.files.to_string()),
            ("window_ms", self.window_ms.to_string()),
            ("rounds", rounds.to_string()),
        ]
    }
}

/// Number and size of the paper's files. The paper has 400 clients, but 50 saturate the link too, and either
/// way a turn has the ACKs of one or two clients. A few hundred kilobytes open each client's window.
const FULL: Scale =
    Scale { clients: 50, files: 100, warm_bytes: 24 << 20, counted_bytes: 32 << 20, turn_us: 50 };
const QUICK: Scale =
    Scale { clients: 8, files: 4, warm_bytes: 3 << 20, counted_bytes: 4 << 20, turn_us: 50 };
const FULL_LIVE: LiveScale = LiveScale { clients: 400, files: 100, window_ms: 1_000 };
const QUICK_LIVE: LiveScale = LiveScale { clients: 16, files: 4, window_ms: 300 };
const ROUNDS: usize = 7;
const MOST_ROUNDS: usize = 100;

#[cfg(test)]
mod tests;
