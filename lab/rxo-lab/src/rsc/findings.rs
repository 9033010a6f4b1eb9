//! The findings: text for people, JSON for programs, drawings for both.

use rxo_console::table::Table;
use rxo_demo::experiment::Findings;
use rxo_demo::load::Timed;
use serde::Serialize;

use super::cost::{Cost, Pace};
use super::examine::Examined;
use super::faster::Faster;
use super::plan::{CapturePlan, Plan};
use super::{amount, saving};
use crate::figure::Figure;

/// The repeated experiments of the paper.
#[derive(Debug, Serialize)]
pub(crate) struct Found {
    /// Figures 4 to 8, 10 and 12.
    figures: Vec<Figure>,
    /// The captures behind figures 4 to 8.
    captures: Vec<Examined>,
    /// `true` if the captures were made here. The interleaving of live senders' frames depends on the
    /// machine's load.
    #[serde(skip)]
    is_live: bool,
    /// The costs behind figures 10 to 12.
    costs: Vec<Cost>,
    /// The projection to other rates; `None` without enough costs.
    projection: Option<Faster>,
}

impl Found {
    /// Makes findings from captures (`is_live` if made here) and costs.
    pub(super) fn new((captures, is_live): (Vec<Examined>, bool), costs: Vec<Cost>) -> Self {
        let mut figures = amount::figures(&captures);
        figures.extend(saving::figures(&costs));
        Self { figures, projection: Faster::of(&costs), captures, is_live, costs }
    }

    /// Returns notes on the method.
    pub(super) fn notes(&self, plan: &Plan) -> Vec<String> {
        let Self { captures, costs, projection, .. } = self;
        let mut notes = Vec::new();
        if let Some(CapturePlan::Lab(lab)) = &plan.captures {
            notes.push(format!(
                "Captures: {} packets each as they arrive at the receiver, from real Linux senders with \
                 one connection each, each on a link of {} Mbit/s to a switch, which sends them to the \
                 receiver over one link of the same rate (the paper: 1 Gbit/s, at which frames are \
                 closer together than a kernel's timers can place them). A sender writes a payload when \
                 the one before is acknowledged; it leaves as one large send, {} frames back to back, \
                 PSH on its last segment.",
                lab.packets,
                lab.bytes_per_s / 125_000,
                lab.burst_frames
            ));
        }
        if !captures.is_empty() {
            notes.push(
                "The paper's text gives ranges for figures 4 to 8 and no values; its drawings are not \
                 text. A window counts packets, whatever time they take, as in the paper."
                    .into(),
            );
        }
        let lost: u64 = captures.iter().map(|examined| examined.lost_frames).sum();
        if lost > 0 {
            notes.push(format!(
                "{lost} frames arrived that are missing in the captures: this machine was too busy; \
                 try again."
            ));
        }
        for examined in captures.iter().filter(|examined| examined.damage.is_some()) {
            notes.push(format!("{} is damaged; only what stands before was read.", examined.name));
        }
        notes.extend(cost_notes(costs, projection.is_some()));
        notes
    }
}

impl Findings for Found {
    /// Returns the captures, every figure, and the projection as text.
    fn paragraphs(&self) -> Vec<String> {
        let mut parts = Vec::new();
        if !self.captures.is_empty() {
            parts.push(format!("Captures\n\n{}", captures_table(&self.captures)));
        }
        parts.extend(self.figures.iter().map(Figure::text));
        parts.extend(self.projection.iter().map(Faster::text));
        parts
    }

    /// Brought captures do not change on a busy machine. Times do, and so does the order in which live
    /// senders' frames arrive.
    fn withhold(&mut self) {
        let is_live = self.is_live;
        let is_timed = |figure: &&mut Figure| is_live || saving::NUMBERS.contains(&figure.number);
        self.figures.iter_mut().filter(is_timed).for_each(Figure::withhold);
    }

    fn timed(&self) -> Timed {
        match (self.is_live, self.costs.is_empty()) {
            (true, _) => Timed::Everything,
            (false, true) => Timed::Nothing,
            (false, false) => Timed::Only("processor time"),
        }
    }

    fn drawings(&self) -> Vec<(String, String)> {
        let figures = self.figures.iter().map(|figure| (figure.file_name(), figure.svg()));
        let projection = self.projection.iter().map(|p| ("projection.svg".to_owned(), p.svg()));
        figures.chain(projection).collect()
    }

    fn damage(&self) -> Option<String> {
        self.captures.iter().find_map(|examined| examined.damage.clone())
    }
}

/// Returns a table of the captures' properties, which explain the figures.
fn captures_table(captures: &[Examined]) -> String {
    let head = [
        "capture",
        "packets",
        "Gbit/s",
        "flows/window",
        "segments/run",
        "PSH %",
        "eliminated",
        "ended by",
    ];
    let mut table = Table::new(&head);
    for examined in captures {
        let mixed = examined.interleaving;
        let name = examined.condition.map_or(examined.name.clone(), |what| what.to_string());
        let pushed = 100.0 * mixed.pushed_segments as f64 / mixed.data_segments.max(1) as f64;
        table.row([
            name,
            examined.packets.to_string(),
            format!("{:.3}", examined.gbit_per_s),
            format!("{:.1}", mixed.flows_per_window),
            format!("{:.1}", mixed.segments_per_run),
            format!("{pushed:.0}"),
            format!("{:.0}", examined.eliminated),
            ended_by(examined),
        ]);
    }
    table.render()
}

/// Returns the three reasons that ended most aggregates, with their shares.
fn ended_by(examined: &Examined) -> String {
    let reasons = examined.flushed.iter().take(3);
    let shares = reasons.map(|reason| format!("{} {:.0} %", reason.reason, reason.share * 100.0));
    shares.collect::<Vec<_>>().join(", ")
}

fn cost_notes(costs: &[Cost], projected: bool) -> Vec<String> {
    if costs.is_empty() {
        return Vec::new();
    }
    let mut notes = vec![
        "Processor time: one connection through rxo's worker to a TAP; everything but the sending \
         thread counts, the engine included. 100 % is one core. Figure 11 of the paper is figure 10 \
         on Windows; its values at 8 KB are the only ones that the text states."
            .to_owned(),
    ];
    if costs.iter().any(|cost| cost.pace == Pace::OneGbit) {
        notes.push("Figure 10 is scaled to exactly 0.95 Gbit/s.".to_owned());
    }
    if !projected {
        notes.push(
            "No projection: the costs measured do not fall with the packets of a delivery. Measure \
             again on a quiet machine, with more --rounds."
                .into(),
        );
    }
    notes
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::statement::Statement;

    #[test]
    fn a_busy_machine_takes_back_everything_but_what_was_brought() {
        let figure = |number| Figure {
            number,
            statements: vec![Statement::new("more", Some(true), "More.".to_owned())],
            ..Figure::default()
        };
        let figures = ["4", "8", "10", "12"].map(figure).to_vec();
        let withheld = |is_live, timed| {
            let none = Found::new((Vec::new(), is_live), Vec::new());
            assert_eq!(none.timed(), timed);
            let mut found = Found { figures: figures.clone(), ..none };
            found.withhold();
            let holds = found.figures.iter().map(|figure| figure.statements[0].holds);
            holds.collect::<Vec<_>>()
        };
        let kept = withheld(false, Timed::Nothing);
        assert_eq!(
            kept,
            [Some(true), Some(true), None, None],
            "captures of a file stay as they are"
        );
        assert_eq!(withheld(true, Timed::Everything), [None; 4]);
    }
}
