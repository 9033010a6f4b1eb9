//! The findings: text for people, JSON for programs, drawings for both.

use rxo_console::numbers::grouped;
use rxo_console::table::Table;
use rxo_demo::experiment::Findings;
use rxo_demo::load::Timed;
use rxo_demo::wrap::count;
use serde::Serialize;

use super::aims::{self, OF_TIME};
use super::case::Traffic;
use super::figures;
use super::linux::{self, Cost};
use super::plan::Plan;
use super::prefetch::{Simulated, figure_1};
use super::row::{Row, Rows};
use crate::figure::Figure;
use crate::menon::verdict::Verdict;

/// The results of all experiments with a card.
#[derive(Debug, Default, Serialize)]
pub(super) struct Measured {
    /// Results of rxo's own host: bulk transfers and requests.
    pub(super) rows: Vec<Row>,
    /// Results of Linux's own stack in a guest.
    pub(super) linux: Vec<Cost>,
    /// Simulated cost of a packet for each kind of prefetching.
    pub(super) simulated: Vec<Simulated>,
}

/// The repeated measurements of the paper, on a card.
#[derive(Debug, Serialize)]
pub(crate) struct Found {
    #[serde(flatten)]
    measured: Measured,
    figures: Vec<Figure>,
    aims: Vec<Verdict>,
    /// The reasons why parts are missing.
    missing: Vec<String>,
}

impl Found {
    pub(super) fn new(measured: Measured, missing: Vec<String>) -> Self {
        let all = Rows(&measured.rows);
        let mut figures: Vec<Figure> = figure_1(&measured.simulated).into_iter().collect();
        figures.extend(figures::all(all));
        figures.extend(linux::figure_10(&measured.linux));
        let mut aims = aims::all(all);
        aims.extend(linux::aims(&measured.linux));
        Self { measured, figures, aims, missing }
    }

    fn of(&self, traffic: Traffic) -> impl Iterator<Item = &Row> {
        self.measured.rows.iter().filter(move |row| row.case.traffic == traffic)
    }

    /// The tables that have at least one measured row, each under its title.
    fn tables(&self) -> Vec<String> {
        let linux = &self.measured.linux;
        let titled = [
            (
                self.of(Traffic::Bulk).count(),
                "Bulk receive behind a card, from Linux senders",
                self.table(Traffic::Bulk),
            ),
            (
                self.of(Traffic::Saturation).count(),
                "The same from a generator, which sends more than the receiver takes",
                self.table(Traffic::Saturation),
            ),
            (
                self.of(Traffic::Requests).count(),
                "Requests and responses of one byte behind a card",
                self.requests(),
            ),
            (
                linux.len(),
                "Linux's own stack in a guest, behind a driver domain and a card",
                linux::table(linux),
            ),
        ];
        let measured = titled.into_iter().filter(|(count, ..)| *count > 0);
        measured.map(|(_, title, table)| format!("{title}\n\n{table}")).collect()
    }

    fn requests(&self) -> String {
        let mut table = Table::new(&["stack", "instr/exchange", "pauses/exchange", "exchanges/s"]);
        for row in self.of(Traffic::Requests) {
            table.row([
                row.case.stack_name(),
                row.per_byte.ranged(0),
                format!("{:.2}", row.pauses_per_packet.median),
                row.requests_per_s().ranged(0),
            ]);
        }
        table.render()
    }

    fn table(&self, traffic: Traffic) -> String {
        let mut table = Table::new(&[
            "connections",
            "read on",
            "stack",
            "polls",
            "instr/packet",
            "instr/byte",
            "Gbit/CPU s",
            "Gbit/s",
            "packets/delivery",
            "ACKs/packet",
            "handed over/packet",
            "expansion/ACK",
            "pauses/packet",
            "sent again",
        ]);
        for row in self.of(traffic) {
            table.row([
                row.case.connections.to_string(),
                row.case.application.name().to_owned(),
                row.case.stack_name(),
                row.case.poll_frames.to_string(),
                row.per_packet.ranged(0),
                format!("{:.3}", row.per_byte.median),
                row.scaled_gbit_per_s.ranged(2),
                format!("{:.2}", row.gbit_per_s.median),
                format!("{:.1}", row.packets_per_delivery.median),
                format!("{:.3}", row.acks_per_packet.median),
                format!("{:.3}", row.handed_over_per_packet.median),
                format!("{:.0}", row.expansion_per_ack()),
                format!("{:.4}", row.pauses_per_packet.median),
                grouped(row.retransmissions),
            ]);
        }
        table.render()
    }
}

impl Findings for Found {
    fn paragraphs(&self) -> Vec<String> {
        let mut parts = self.tables();
        parts.extend(self.figures.iter().map(Figure::text));
        if !self.aims.is_empty() {
            parts.push("What rxo wants of a host on a card".to_owned());
        }
        parts.extend(self.aims.iter().map(Verdict::text));
        parts
    }

    /// Callgrind's counts do not change on a busy machine. Processor times do, and so do the cost of an
    /// exchange that waits and the cost of a guest, whose packets arrive in real time.
    fn withhold(&mut self) {
        let figures = [figures::FIGURE_7, figures::TABLE_1, linux::FIGURE_10];
        let of_load = |figure: &&mut Figure| figures.contains(&figure.number);
        self.figures.iter_mut().filter(of_load).for_each(Figure::withhold);
        let claims = [OF_TIME, linux::OF_A_GUEST];
        let is_timed = |aim: &&mut Verdict| claims.iter().any(|of| aim.claim.contains(of));
        self.aims.iter_mut().filter(is_timed).for_each(Verdict::withhold);
    }

    fn timed(&self) -> Timed {
        match (self.measured.rows.is_empty(), self.measured.linux.is_empty()) {
            (true, true) => Timed::Nothing,
            (true, false) => Timed::Only("what a guest costs"),
            (false, true) => Timed::Only("processor time and requests"),
            (false, false) => Timed::Only("processor time, requests and what a guest costs"),
        }
    }

    fn drawings(&self) -> Vec<(String, String)> {
        self.figures.iter().map(|figure| (figure.file_name(), figure.svg())).collect()
    }

    fn damage(&self) -> Option<String> {
        (!self.missing.is_empty()).then(|| self.missing.join("; "))
    }
}

/// Returns notes on the method: those of all experiments, then those of single ones.
pub(super) fn notes(plan: &Plan) -> Vec<String> {
    let mut notes = Vec::new();
    if !plan.cases.is_empty() {
        notes.extend(host_notes(plan));
    }
    if !plan.feeds.is_empty() {
        notes.push(format!(
            "Linux's own stack: a Linux guest in emulation, whose GRO is off unless the row says otherwise, behind rxo's \
             worker on the card's ring (the driver domain). The emulator counts the guest's instructions, kernel and \
             program, in two transfers; their difference, {} MB, counts. Callgrind counts the domain in the \
             longer one. Guest and domain are slow there, so polls are full; nothing is timed.",
            plan.guest_bytes / 4 * 3 / 1_000_000
        ));
    }
    if !plan.simulated.is_empty() {
        notes.push(
            "Figure 1 is a simulation by callgrind, not a measurement: a first cache of 16 KiB and a last one of 256 KiB, \
             smaller than the ring, so that frames come from memory as after DMA. Cycles are estimated: one an \
             instruction, 10 a miss of the first cache, 100 a miss of the last."
                .to_owned(),
        );
    }
    notes
}

fn host_notes(plan: &Plan) -> Vec<String> {
    vec![
        format!(
            "Medians of {}, least and most in brackets. Linux senders, CUBIC, MTU 1500, and the card on \
             one core; rxo's host on virtio: in a process of its own on another. Each transfer is made twice: \
             {} MB for processor time, {} MB under callgrind for instructions. The middle half of each counts.",
            count(plan.rounds, "round"),
            plan.timed_bytes / 1_000_000,
            plan.counted_bytes / 1_000_000
        ),
        "Instructions are those of the receiving process alone: the copy out of the ring, the engine, TCP, ACKs, and \
         the copy to the application. Callgrind counts exactly; what varies between rounds is how many frames \
         a poll found. Turns that found nothing are counted too; pauses/packet says how many there were."
            .to_owned(),
        "The card segments, completes and validates checksums, and moderates notifications by 50 us; its cost is in no \
         account. A worker that finds nothing pauses, for 50 us and under callgrind for 4 ms."
            .to_owned(),
        "ACK templates are expanded by the receiving host before the card's ring, which then takes each ACK: the paper's \
         driver expands, on the receiver's processor, and is in its totals. Every verdict is on that. In the rows that say \
         so the card expands them instead, and expansion and the ACKs' places in the ring are in no account."
            .to_owned(),
        "A generator is in the place of the wire where the receiver is saturated: it sends full segments as far as the \
         window allows and follows the acknowledgements, on the card's core. The paper's five senders saturate their \
         receiver; Linux senders on one core with the card do not."
            .to_owned(),
        "Categories are by the source file that an instruction was compiled from, inlined code included: protocol \
         is rxo-tcp (the paper's rx and tx), transmit writes headers and templates, non-proto is the rest of \
         the host, driver the rings, driver, expansion what makes ACKs of templates, aggr the engine, per-byte the copies."
            .to_owned(),
    ]
}

#[cfg(test)]
mod tests {
    use super::super::case::{Application, Case};
    use super::super::linux::Feed;
    use super::super::linux::tests::cost;
    use super::super::row::tests::row;
    use super::*;
    use crate::menon::receive::stack::Stack;

    /// Makes findings from `rows`, without missing parts.
    fn all(rows: Vec<Row>) -> Found {
        Found::new(Measured { rows, ..Measured::default() }, Vec::new())
    }

    fn found(optimized: (f64, f64)) -> Found {
        let limits = [1, 2, 5, 35].map(|limit| {
            let cost = 300.0 + 700.0 / f64::from(limit);
            row(Case::one_processor(Stack::limited(limit)), cost, cost)
        });
        let (instructions, ns) = optimized;
        let mut rows = vec![
            row(Case::SINGLE, 1_500.0, 700.0),
            row(Case::one_processor(Stack::ORIGINAL), 1_000.0, 500.0),
            row(Case::one_processor(Stack::OPTIMIZED), instructions, ns),
            row(Case::two_processors(Stack::ORIGINAL), 1_000.0, 500.0),
            row(Case::two_processors(Stack::OPTIMIZED), instructions, ns),
            row(Case::requests(Stack::ORIGINAL), 1_000.0, 500.0),
            row(Case::requests(Stack::OPTIMIZED), 1_010.0, 500.0),
        ];
        rows.extend(limits);
        all(rows)
    }

    fn holds(found: &Found) -> Vec<Option<bool>> {
        found.aims.iter().map(|aim| aim.holds).collect()
    }

    /// Returns for each statement of a figure whether it holds.
    fn figure(found: &Found, number: &str) -> Vec<Option<bool>> {
        let figure = found.figures.iter().find(|figure| figure.number == number).unwrap();
        figure.statements.iter().map(|said| said.holds).collect()
    }

    #[test]
    fn aims_are_met_or_not_by_the_rows_alone() {
        assert_eq!(holds(&found((335.0, 300.0))), [Some(true); 4]);
        let missed = holds(&found((800.0, 400.0)));
        assert_eq!(missed[..3], [Some(false), Some(false), Some(false)]);
    }

    #[test]
    fn a_busy_machine_takes_back_what_was_timed_and_nothing_counted() {
        let mut found = found((335.0, 300.0));
        let counted = ["8 on a card", "9 on a card"];
        let before = counted.map(|number| figure(&found, number));
        assert_eq!(figure(&found, "Table 1 on a card"), [Some(true)]);
        found.withhold();
        assert_eq!(
            figure(&found, "Table 1 on a card"),
            [None],
            "turns that find nothing are counted"
        );
        assert_eq!(holds(&found), [Some(true), None, Some(true), Some(true)]);
        assert_eq!(counted.map(|number| figure(&found, number)), before);
        assert!(before.concat().iter().all(Option::is_some), "{before:?}");
    }

    #[test]
    fn a_busy_machine_takes_back_every_verdict_on_a_guest() {
        let linux = [(Feed::Plain, 1_000.0), (Feed::Aggregates, 300.0), (Feed::Split, 100.0)];
        let linux = linux.map(|(feed, guest)| cost(feed, guest, 100.0)).to_vec();
        let mut found = Found::new(Measured { linux, ..Measured::default() }, Vec::new());
        assert_eq!(
            (holds(&found), figure(&found, "10 on a card")),
            (vec![Some(true); 2], vec![Some(true)])
        );
        assert_eq!(found.timed(), Timed::Only("what a guest costs"));
        found.withhold();
        assert_eq!((holds(&found), figure(&found, "10 on a card")), (vec![None; 2], vec![None]));
    }

    #[test]
    fn requests_may_cost_no_more_than_two_percent() {
        let of = |cost| {
            let cases = [Stack::ORIGINAL, Stack::OPTIMIZED].map(Case::requests);
            let rows = cases.into_iter().zip([1_000.0, cost]);
            let rows = rows.map(|(case, cost)| row(case, cost, 500.0)).collect();
            figure(&all(rows), "Table 1 on a card")
        };
        assert_eq!((of(1_015.0), of(1_050.0)), (vec![Some(true)], vec![Some(false)]));
    }

    #[test]
    fn a_guest_that_fails_costs_nothing_else() {
        let rows = vec![row(Case::two_processors(Stack::ORIGINAL), 1_000.0, 500.0)];
        let measured = Measured { rows, ..Measured::default() };
        let found = Found::new(measured, vec!["the guest does not listen".to_owned()]);
        assert_eq!(found.damage().as_deref(), Some("the guest does not listen"));
        assert!(found.paragraphs()[0].contains("Original"), "what was measured is printed");
        assert_eq!(all(Vec::new()).damage(), None);
    }

    #[test]
    fn every_figure_is_drawn_and_named() {
        let names: Vec<_> =
            found((335.0, 300.0)).drawings().into_iter().map(|(name, _)| name).collect();
        let numbers = ["figure-7", "figure-8", "figure-9", "figure-11", "table-1"];
        assert_eq!(names, numbers.map(|number| format!("{number}-on-a-card.svg")));
    }

    #[test]
    fn what_was_not_measured_is_not_printed() {
        assert!(all(Vec::new()).paragraphs().is_empty());
    }

    #[test]
    fn the_place_of_the_application_is_in_the_table() {
        let rows = vec![row(Case::two_processors(Stack::ORIGINAL), 1_000.0, 500.0)];
        let text = all(rows).paragraphs().join("\n");
        assert!(text.contains(Application::Threads.name()) && text.contains("Original"), "{text}");
    }
}
