//! The findings: text for people, JSON for programs.

use rxo_demo::experiment::Findings;
use rxo_demo::load::Timed;
use rxo_demo::wrap::count;
use serde::{Serialize, Serializer};

use super::case::Way;
use super::count::Cost;
use super::figures;
use super::live::Window;
use super::plan::Plan;
use super::table;
use crate::figure::Figure;

/// The results of all measurements.
#[derive(Clone, Debug, Default, Serialize)]
pub(super) struct Measured {
    /// Instructions of requests, for each counted case.
    pub(super) costs: Vec<Cost>,
    /// Estimated cycles of requests, for each simulated case.
    pub(super) cycles: Vec<Cost>,
    /// Windows of the live server, by way.
    #[serde(serialize_with = "by_way")]
    pub(super) windows: Vec<(Way, Vec<Window>)>,
}

fn by_way<S: Serializer>(windows: &[(Way, Vec<Window>)], serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_map(windows.iter().map(|(way, windows)| (way, windows)))
}

/// The repeated experiments of the paper.
#[derive(Debug, Serialize)]
pub(crate) struct Found {
    figures: Vec<Figure>,
    #[serde(flatten)]
    measured: Measured,
}

impl Found {
    pub(super) fn new(measured: Measured) -> Self {
        Self { figures: figures::all(&measured), measured }
    }
}

impl Findings for Found {
    fn paragraphs(&self) -> Vec<String> {
        let Measured { costs, windows, .. } = &self.measured;
        let mut parts = Vec::new();
        if !costs.is_empty() {
            parts.push(format!("Requests, counted\n\n{}", table::requests(costs)));
            let title = "Where the instructions of a request are, in thousands";
            parts.push(format!("{title}\n\n{}", table::components(costs)));
        }
        if windows.iter().any(|(_, windows)| !windows.is_empty()) {
            parts.push(format!("Requests of 2 MB, live\n\n{}", table::live(windows)));
        }
        parts.extend(self.figures.iter().map(Figure::text));
        parts
    }

    /// Withholds only the live figure: callgrind's counts do not change on a busy machine.
    fn withhold(&mut self) {
        let is_live = |figure: &&mut Figure| figure.number == figures::LIVE;
        self.figures.iter_mut().filter(is_live).for_each(Figure::withhold);
    }

    fn timed(&self) -> Timed {
        match self.measured.windows.is_empty() {
            true => Timed::Nothing,
            false => Timed::Only("processor time"),
        }
    }

    fn drawings(&self) -> Vec<(String, String)> {
        self.figures.iter().map(|figure| (figure.file_name(), figure.svg())).collect()
    }
}

/// Returns notes on the method.
pub(super) fn notes(plan: &Plan) -> Vec<String> {
    let mut notes = vec![
        "Ways of an ACK: stack, each for itself through the engine (--set pure_acks=bypass; the paper's Copybreak); fast \
         path, each looked up and given by itself (TCP-PARO); records, aggregated by the engine with a record of each; \
         fast path in batches, one call for a connection's ACKs (--fast-path on)."
            .to_owned(),
    ];
    if !plan.counted.is_empty() || !plan.simulated.is_empty() {
        let scale = plan.scale;
        notes.push(format!(
            "Counted: rxo's host and a small HTTP server, which lends pages of files in memory, on one thread, {} with {} and a \
             link of 10 Gbit/s on virtual time, a ring in shared memory between them. Callgrind counts while clients take \
             {} MB, after {} MB in which windows open. A request is so many bytes as its file has. What a client acknowledges \
             at once arrives at once, as behind a card that moderates.",
            count(scale.clients.into(), "modelled client"),
            count(scale.files as usize, "file"),
            scale.counted_bytes >> 20,
            scale.warm_bytes >> 20
        ));
        notes.push(
            "Components are by the source file that an instruction was compiled from; receiving is what happens inside the \
             host's receive call, counted in a second run that does the same. Memory is copies, the allocator and pools of \
             frames, of both directions."
                .to_owned(),
        );
    }
    if !plan.simulated.is_empty() {
        notes.push(
            "Cycles are estimated by callgrind, not measured: one an instruction, 10 a miss of the first cache (32 KiB), 100 \
             a miss of the last (8 MiB)."
                .to_owned(),
        );
    }
    if plan.rounds > 0 {
        notes.push(format!(
            "Live: rxo serve on virtio: on one core, rxo card and {} on the other, each taking one of {} whole, again and again. \
             One server changes its way by rxo ctl between windows of {} ms; medians of {}, least and most in brackets.",
            count(plan.live.clients, "Linux client"),
            count(plan.live.files as usize, "file"),
            plan.live.window_ms,
            count(plan.rounds, "round"),
        ));
    }
    notes
}
