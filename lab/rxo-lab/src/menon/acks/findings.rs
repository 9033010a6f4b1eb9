//! The findings: text for people, JSON for programs, drawings for both.

use rxo_console::numbers::grouped;
use rxo_console::table::Table;
use rxo_demo::experiment::Findings;
use rxo_trace::figure::{self, Draw};
use serde::Serialize;

use super::network::Network;
use super::plan::Plan;
use super::sample::Figures;
use super::sender::Sender;
use super::verdict;
use super::{keep, split};
use crate::menon::verdict::Verdict;

/// The results of both experiments.
#[derive(Debug, Serialize)]
pub(crate) struct Found {
    split: Vec<split::Row>,
    keep: Vec<keep::Row>,
    /// The largest `keep_every` that harms no sender; `None` if there is none, or the machine was busy.
    keep_every: Option<u16>,
    verdicts: Vec<Verdict>,
    rate_mbit_per_s: u64,
    seconds: f64,
    rounds: usize,
}

impl Found {
    pub(super) fn new(plan: &Plan, split: Vec<split::Row>, keep: Vec<keep::Row>) -> Self {
        let mut verdicts = verdict::of_split(&split);
        verdicts.extend(verdict::of_keep(&keep));
        Self {
            keep_every: keep::choice(&keep),
            verdicts,
            rate_mbit_per_s: plan.bytes_per_s / 125_000,
            seconds: plan.effort.duration.as_secs_f64(),
            rounds: plan.effort.rounds,
            split,
            keep,
        }
    }

    /// Returns notes on the method.
    pub(super) fn notes(&self, plan: &Plan) -> Vec<String> {
        let Self { split, keep, .. } = self;
        let mut notes = vec![format!(
            "One connection of {:.1} s in each of {} rounds (medians), over a link of {} Mbit/s made by \
             rxo's middleware. A delay of 20 ms is a round trip: 10 ms each way. \"ms to 90 %\" is from \
             the first byte that arrived until 90 % of what the link carries of payload arrived for 60 \
             ms; - where it never did. Loss is seeded, and the same for all of a round.",
            plan.effort.duration.as_secs_f64(),
            plan.effort.rounds,
            plan.bytes_per_s / 125_000
        )];
        if !split.is_empty() {
            notes.push(format!(
                "Receivers that coalesce: frames reach rxo together every {:.2} ms, as from a card that \
                 moderates its interrupts. ACKs are counted where they reach the sender, for each frame \
                 that it sent.",
                1e3 * plan.time_of_frames(split::GATHERED_FRAMES).as_secs_f64()
            ));
        }
        if !keep.is_empty() {
            notes.push(format!(
                "Senders whose ACKs are aggregated: ACKs reach rxo together every {:.2} ms, those of \
                 {} frames at most.",
                1e3 * plan.time_of_frames(keep::GATHERED_FRAMES).as_secs_f64(),
                keep::GATHERED_FRAMES
            ));
        }
        let all = split.iter().map(|row| &row.figures).chain(keep.iter().map(|row| &row.figures));
        let dropped: u64 = all.map(|figures| figures.dropped).sum();
        if dropped > 0 {
            notes.push(format!(
                "{} frames were lost that should not have been: this machine was too busy.",
                grouped(dropped)
            ));
        }
        notes
    }

    /// Draws the growth of `sender`'s congestion window over the delay; `None` if it was not measured.
    fn window(&self, sender: Sender) -> Option<String> {
        let is_shown = |row: &&split::Row| row.sender == sender && row.network == Network::Delay;
        let rows: Vec<&split::Row> = self.split.iter().filter(is_shown).collect();
        let title = format!("Congestion window of {} over 20 ms", full_name(sender));
        let x = figure::Axis::linear("seconds from the first window on");
        let y = figure::Axis::linear("segments of 1,448 bytes");
        let drawing = figure::Figure::new(title, x, y);
        let drawing = drawing.describe(format!(
            "The window over time for each treatment of the receiver's frames, in one connection \
             over a link of {} Mbit/s.",
            self.rate_mbit_per_s
        ));
        let drawing = rows.iter().fold(drawing, |drawing, row| {
            let points = row.figures.window.iter().copied();
            drawing.with(figure::Series::line(row.treatment.name(), points))
        });
        (!rows.is_empty()).then(|| drawing.to_svg())
    }

    /// Draws the throughput for each setting of `keep_every`.
    fn kept(&self) -> Option<(String, String)> {
        let mut settings: Vec<_> = self.keep.iter().map(|row| row.keep_every).collect();
        settings.sort_unstable();
        settings.dedup();
        let names = settings.iter().map(|setting| keep::shown(*setting));
        let x = figure::Axis::categories("keep_every", names);
        let y = figure::Axis::linear("Mbit/s of payload, the growth of the window included");
        let title = "Linux senders whose pure ACKs are aggregated, over 20 ms";
        let drawing = figure::Figure::new(title, x, y);
        let drawing = Sender::LINUX.into_iter().fold(drawing, |drawing, sender| {
            let rate = |setting: &Option<u16>| {
                let is_it = |row: &&keep::Row| row.sender == sender && row.keep_every == *setting;
                self.keep.iter().find(is_it).map(|row| row.figures.mbit_per_s)
            };
            let rates: Vec<_> = settings.iter().map(rate).collect();
            let values = rates.iter().map(|rate| rate.map_or(f64::NAN, |rate| rate.median));
            let ranges = rates.iter().map(|rate| rate.map(|rate| (rate.min, rate.max)));
            drawing.with(figure::Series::over_categories(sender.name(), values).ranges(ranges))
        });
        (!self.keep.is_empty()).then(|| ("keep-every.svg".to_owned(), drawing.to_svg()))
    }
}

impl Findings for Found {
    fn paragraphs(&self) -> Vec<String> {
        let mut parts = Vec::new();
        if !self.split.is_empty() {
            parts.push(format!("Receivers that coalesce\n\n{}", split_table(&self.split)));
        }
        if !self.keep.is_empty() {
            parts.push(format!("Senders whose ACKs are aggregated\n\n{}", keep_table(&self.keep)));
        }
        parts.extend(self.verdicts.iter().map(Verdict::text));
        parts
    }

    fn withhold(&mut self) {
        self.keep_every = None;
        self.verdicts.iter_mut().for_each(Verdict::withhold);
    }

    fn drawings(&self) -> Vec<(String, String)> {
        let drawn = Sender::ALL.into_iter().filter_map(|sender| {
            Some((format!("window-{}.svg", sender.name()), self.window(sender)?))
        });
        drawn.chain(self.kept()).collect()
    }
}

fn full_name(sender: Sender) -> &'static str {
    match sender {
        Sender::Counting => "a sender that counts ACKs",
        Sender::Reno => "Linux Reno",
        Sender::Cubic => "Linux CUBIC",
        Sender::Bbr => "Linux BBR",
    }
}

const FIGURES: [&str; 6] =
    ["Mbit/s", "ms to 90 %", "ACKs/segment", "frames/delivery", "CPU s/GB", "sent again"];

fn split_table(rows: &[split::Row]) -> String {
    let head = [["sender", "network", "treatment"].as_slice(), &FIGURES].concat();
    let mut table = Table::new(&head);
    for row in rows {
        let names = [row.sender.name(), row.network.name(), row.treatment.name()];
        table.row(names.map(str::to_owned).into_iter().chain(cells(&row.figures)));
    }
    table.render()
}

fn keep_table(rows: &[keep::Row]) -> String {
    let head = [["sender", "keep_every"].as_slice(), &FIGURES].concat();
    let mut table = Table::new(&head);
    for row in rows {
        let names = [row.sender.name().to_owned(), keep::shown(row.keep_every)];
        table.row(names.into_iter().chain(cells(&row.figures)));
    }
    table.render()
}

fn cells(figures: &Figures) -> [String; 6] {
    let full = match (figures.full_rate_ms, figures.full_rate_rounds) {
        (Some(spread), rounds) if rounds == figures.rounds => format!("{:.0}", spread.median),
        (Some(spread), rounds) => format!("{:.0} ({rounds} of {})", spread.median, figures.rounds),
        (None, _) => "-".to_owned(),
    };
    [
        format!("{:.0}", figures.mbit_per_s.median),
        full,
        format!("{:.3}", figures.acks_per_segment.median),
        format!("{:.1}", figures.per_delivery.median),
        format!("{:.2}", figures.cpu_s_per_gb.median),
        grouped(figures.retransmissions),
    ]
}
