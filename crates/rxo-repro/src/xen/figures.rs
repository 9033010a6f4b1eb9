//! The paper's tables as figures, with verdicts. A verdict is worked out, never written down.

use super::driver::Cost;
use super::findings::Measured;
use super::guest::GuestCost;
use super::paper;
use super::plan::FULL_LOAD;
use super::system::System;
use super::virtual_time::{Exchange, Rate};
use crate::figure::{Figure, Guide, Series};
use crate::statement::Statement;

/// Figures of guests, which get their packets in real time.
pub(super) const OF_GUESTS: [&str; 3] = ["Table V guest", "alignment", "Table IV"];

/// Every figure for which there is something.
pub(super) fn all(measured: &Measured) -> Vec<Figure> {
    let Measured { rates, exchanges, costs, guests } = measured;
    let mut figures = Vec::new();
    if !rates.is_empty() {
        figures.extend([aggregates(rates), holds(rates)]);
    }
    if !costs.is_empty() {
        figures.extend([table_v(costs), sweep(costs), copies(costs)]);
    }
    if !guests.is_empty() {
        figures.extend([guest_share(guests), guest_copies(guests)]);
    }
    if !guests.is_empty() && !costs.is_empty() {
        figures.push(table_iv(costs, guests));
    }
    if !exchanges.is_empty() {
        figures.push(table_vii(exchanges));
    }
    figures
}

/// Table VI and its sweep.
fn aggregates(rates: &[Rate]) -> Figure {
    let value = |rate: &Rate| rate.packets_an_aggregate;
    let da = at(rates, System::Da, paper::FRAMES_A_POLL).map(value);
    let lro = at(rates, System::Lro, paper::FRAMES_A_POLL).map(value);
    let grows = lro.zip(da).map(|(lro, da)| da / lro);
    Figure {
        number: "Table VI",
        title: "Packets an aggregate by frames a poll",
        fixed: "one connection, virtual time",
        x_label: "frames a poll",
        y_label: "packets an aggregate",
        x: polls(rates),
        series: lines(rates, &SHOWN, value),
        guides: [System::Lro, System::Da].into_iter().filter_map(papers_rate).collect(),
        statements: vec![Statement::new(
            "LRO has 2.55 packets an aggregate, Delayed Aggregation 4.71 (Table VI): 1.85 times as \
             many",
            grows.map(|grows| grows >= NEARLY * 4.71 / 2.55),
            format!(
                "At 2.55 frames a poll LRO has {}, Delayed Aggregation {}.",
                shown(lro),
                shown(da)
            ),
        )],
        ..Figure::default()
    }
}

fn papers_rate(system: System) -> Option<Guide> {
    let meaning = if system == System::Da { "the paper's DA" } else { "the paper's LRO" };
    paper::packets_an_aggregate(system).map(|value| Guide { value, meaning })
}

/// How long the first segment of an aggregate is held.
fn holds(rates: &[Rate]) -> Figure {
    let da = at(rates, System::Da, paper::FRAMES_A_POLL);
    let auto = rates.iter().filter(|rate| rate.system == System::Auto);
    // A poll of many frames takes longer than the bound by itself.
    let longer = auto.filter_map(|rate| {
        let poll = at(rates, System::Lro, rate.frames_a_poll)?.hold_p99_us;
        Some(rate.hold_p99_us - poll.max(MOST_AUTO_US))
    });
    let longer = longer.reduce(f64::max);
    let p99 = lines(rates, &[System::Lro, System::Da, System::Auto], |rate| rate.hold_p99_us);
    let p99 = p99.into_iter().map(|line| Series { name: format!("{}, p99", line.name), ..line });
    Figure {
        number: "hold",
        title: "How long the first segment of a delivery is held",
        fixed: "60,000 frames a second, virtual time",
        x_label: "frames a poll",
        y_label: "us",
        x: polls(rates),
        series: lines(rates, &[System::Lro, System::Da, System::Auto], |rate| rate.hold_p50_us)
            .into_iter()
            .chain(p99)
            .collect(),
        statements: vec![
            Statement::new(
                "Delayed Aggregation holds an aggregate's first group for 33.17 us longer: two packets \
                 at 60,000 a second",
                at(rates, System::Lro, paper::FRAMES_A_POLL).zip(da).map(|(lro, da)| {
                    let longer = da.hold_p50_us - lro.hold_p50_us;
                    (0.5..=2.0).contains(&(longer / paper::HOLD_US))
                }),
                format!(
                    "The median at 2.55 frames a poll is {} us under LRO and {} us under Delayed \
                     Aggregation. It includes the frames of the segment's own poll.",
                    shown(at(rates, System::Lro, paper::FRAMES_A_POLL).map(|r| r.hold_p50_us)),
                    shown(da.map(|rate| rate.hold_p50_us)),
                ),
            ),
            Statement::new(
                "section V asks for a hold that is bounded and follows the load",
                longer.map(|longer| longer <= 0.0),
                "auto holds for at most 50 us from the arrival of a segment (p99), or to the end of \
                 its own poll if that is later. At 60,000 frames a second the next poll would be too \
                 late, so there auto is end of poll."
                    .to_owned(),
            ),
        ],
        ..Figure::default()
    }
}

/// Table V, the driver domain.
fn table_v(costs: &[Cost]) -> Figure {
    let systems = System::DOMAINS;
    let at_paper = |system| cost_at(costs, system, paper::FRAMES_A_POLL);
    let at_full = |system| cost_at(costs, system, FULL_LOAD);
    let share = |of: &dyn Fn(System) -> Option<f64>, system| {
        of(System::Xen).zip(of(system)).map(|(xen, value)| value / xen)
    };
    let shares =
        |of: &dyn Fn(System) -> Option<f64>| systems.map(|system| share(of, system)).to_vec();
    let papers = |system| paper::driver_cycles(system).zip(paper::driver_cycles(System::Xen));
    let papers = systems.map(|system| papers(system).map(|(value, xen)| value / xen)).to_vec();
    let (da, da_full) = (share(&at_paper, System::BoDa), share(&at_full, System::BoDa));
    let (lro, plain_da) = (share(&at_paper, System::Lro), share(&at_paper, System::Da));
    Figure {
        number: "Table V",
        title: "The driver domain's cost of a byte, as a share of Xen's",
        fixed: "ours in instructions, the paper's in cycles",
        x_label: "system",
        y_label: "share of Xen's",
        x: systems.map(|system| system.name().to_owned()).to_vec(),
        series: vec![
            Series::new("2.55 frames a poll", shares(&at_paper)).bars(),
            Series::new("32 frames a poll", shares(&at_full)).bars(),
            Series::reference("the paper", papers).bars(),
        ],
        statements: vec![
            bar(
                "Delayed Aggregation takes the driver domain to 0.23 of Xen's; a lean one keeps what \
                 each frame costs, so 0.4 is asked here",
                da,
                0.4,
                "BO+DA at 2.55 frames a poll",
            ),
            bar("at full load 0.23 is asked", da_full, 0.23, "BO+DA at 32 frames a poll"),
            Statement::new(
                "the driver part falls by more than LRO's",
                plain_da.zip(lro).map(|(da, lro)| da < lro),
                format!("{} of Xen's against {} with LRO.", shown(plain_da), shown(lro)),
            ),
        ],
        ..Figure::default()
    }
}

/// Instructions a byte over frames a poll.
fn sweep(costs: &[Cost]) -> Figure {
    Figure {
        number: "sweep",
        title: "Instructions of the driver domain by frames a poll",
        fixed: "callgrind",
        x_label: "frames a poll",
        y_label: "instructions a byte",
        x: polls(costs),
        series: lines(costs, &System::DOMAINS, |cost| cost.instructions_a_byte),
        ..Figure::default()
    }
}

/// Copies of a byte, and pieces of a packet.
fn copies(costs: &[Cost]) -> Figure {
    let of = |system, value: fn(&Cost) -> f64| at(costs, system, paper::FRAMES_A_POLL).map(value);
    let column = |value| System::DOMAINS.map(|system| of(system, value)).to_vec();
    let is_as_said = |cost: &Cost| {
        let expected = if matches!(cost.system, System::Lro | System::Da) { 2.0 } else { 1.0 };
        cost.copies == expected
    };
    Figure {
        number: "copies",
        title: "Copies of a byte, and pieces of a packet",
        fixed: "2.55 frames a poll",
        x_label: "system",
        y_label: "copies, pieces",
        x: System::DOMAINS.map(|system| system.name().to_owned()).to_vec(),
        series: vec![
            Series::new("copies of a byte", column(|cost| cost.copies)).bars(),
            Series::new("pieces of a packet", column(|cost| cost.pieces)).bars(),
        ],
        statements: vec![Statement::new(
            "Backend Optimization saves the copy of each aggregate into one region (Fig. 2)",
            Some(costs.iter().all(is_as_said)),
            format!(
                "Each byte is copied {} times with LRO and {} with BO.",
                shown(of(System::Lro, |cost| cost.copies)),
                shown(of(System::Bo, |cost| cost.copies)),
            ),
        )],
        ..Figure::default()
    }
}

/// Table V, the guest.
fn guest_share(guests: &[GuestCost]) -> Figure {
    let systems = System::DOMAINS;
    let share = |system, frames| {
        let of = |system| at(guests, system, frames).map(|cost| cost.instructions_a_byte);
        of(System::Xen).zip(of(system)).map(|(xen, value)| value / xen)
    };
    let column = |frames| systems.map(|system| share(system, frames)).to_vec();
    let papers = |system| paper::guest_cycles(system).zip(paper::guest_cycles(System::Xen));
    let papers = systems.map(|system| papers(system).map(|(value, xen)| value / xen)).to_vec();
    Figure {
        number: OF_GUESTS[0],
        title: "The guest's cost of a byte, as a share of Xen's",
        fixed: "ours in instructions, the paper's in cycles",
        x_label: "system",
        y_label: "share of Xen's",
        x: systems.map(|system| system.name().to_owned()).to_vec(),
        series: vec![
            Series::new("2.55 frames a poll", column(paper::FRAMES_A_POLL)).bars(),
            Series::new("32 frames a poll", column(FULL_LOAD)).bars(),
            Series::reference("the paper", papers).bars(),
        ],
        statements: vec![
            bar(
                "Delayed Aggregation takes the guest to 0.68 of Xen's",
                share(System::BoDa, paper::FRAMES_A_POLL),
                0.68,
                "BO+DA at 2.55 frames a poll",
            )
            .unless_it_holds(|| {
                "The guest of today coalesces by itself (GRO), the paper's did not.".to_owned()
            }),
            bar(
                "at full load a guest pays at most 0.3 of what its own GRO takes",
                share(System::BoDa, FULL_LOAD),
                0.3,
                "BO+DA at 32 frames a poll",
            ),
        ],
        ..Figure::default()
    }
}

/// What copying to the program costs the guest, by the path that packets took into its memory.
fn guest_copies(guests: &[GuestCost]) -> Figure {
    let of = |system| at(guests, system, paper::FRAMES_A_POLL).map(|cost| cost.copying_a_byte);
    let (linear, gathered) = (of(System::Lro), of(System::Bo));
    Figure {
        number: OF_GUESTS[1],
        title: "The guest's instructions for copying to its program",
        fixed: "2.55 frames a poll",
        x_label: "system",
        y_label: "instructions a byte",
        x: System::DOMAINS.map(|system| system.name().to_owned()).to_vec(),
        series: vec![Series::new("copying", System::DOMAINS.map(of).to_vec()).bars()],
        statements: vec![Statement::new(
            "with BO the guest pays 0.6 cycles a byte more than with LRO, in __copy_to_user_ll; the \
             alignment of the payload is suspected",
            linear.zip(gathered).map(|(linear, gathered)| gathered > ALIKE * linear),
            format!("{} a byte with LRO, {} with BO.", shown(linear), shown(gathered)),
        )
        .unless_it_holds(|| {
            "Both paths of rxo write the same bytes to the same addresses of the guest, so its \
             payloads are aligned alike: what the paper saw came from where its pieces were put, not \
             from gathering."
                .to_owned()
        })],
        ..Figure::default()
    }
}

/// Table IV and Table I, derived.
fn table_iv(costs: &[Cost], guests: &[GuestCost]) -> Figure {
    let systems = System::ALL;
    let guest = |system| {
        let system = if system == System::Linux { System::Xen } else { system };
        at(guests, system, paper::FRAMES_A_POLL).map(|cost| cost.instructions_a_byte)
    };
    let driver = |system| match system {
        System::Linux => Some(0.0),
        _ => cost_at(costs, system, paper::FRAMES_A_POLL),
    };
    let total = |system| driver(system).zip(guest(system)).map(|(one, other)| one + other);
    let derived = |system| {
        let share = total(System::Linux).zip(total(system)).map(|(linux, total)| linux / total)?;
        Some((paper::LINUX_MBIT_PER_S * share).min(paper::LINK_MBIT_PER_S))
    };
    let grows = derived(System::Xen).zip(derived(System::Da)).map(|(xen, da)| da / xen);
    let column = |of: &dyn Fn(System) -> Option<f64>| systems.map(of).to_vec();
    Figure {
        number: OF_GUESTS[2],
        title: "Mbit/s that one core carries",
        fixed: "derived from instructions a byte at 2.55 frames a poll; Linux is 721.1",
        x_label: "system",
        y_label: "Mbit/s",
        x: systems.map(|system| system.name().to_owned()).to_vec(),
        series: vec![
            Series::new("derived here", column(&derived)).bars(),
            Series::reference("the paper", column(&paper::mbit_per_s)).bars(),
            Series::reference("the paper, Table I", column(&paper::earlier_mbit_per_s)).bars(),
        ],
        statements: vec![Statement::new(
            "Delayed Aggregation reaches 139.5 % of Xen's rate, and more than Linux's (103.7 %)",
            grows
                .zip(derived(System::Da))
                .map(|(grows, da)| grows >= 1.395 && da > paper::LINUX_MBIT_PER_S),
            format!(
                "Derived: {} Mbit/s, {} times Xen's.",
                shown(derived(System::Da)),
                shown(grows)
            ),
        )],
        ..Figure::default()
    }
}

fn table_vii(exchanges: &[Exchange]) -> Figure {
    let of = |system| exchanges.iter().find(|exchange| exchange.system == system);
    let systems = System::DOMAINS;
    let xen = of(System::Xen).map(|exchange| exchange.per_second);
    let within = |system| {
        let rate = of(system).map(|exchange| exchange.per_second);
        rate.zip(xen).map(|(rate, xen)| (rate / xen - 1.0).abs() <= 0.02)
    };
    let waits = systems.iter().filter_map(|system| of(*system)).map(|e| e.held_p99_us);
    let longest = waits.fold(0.0, f64::max);
    Figure {
        number: "Table VII",
        title: "Transactions of one byte a second",
        fixed: "virtual time: the paper's Xen, and what a request waits in the driver domain",
        x_label: "system",
        y_label: "transactions/s",
        x: systems.map(|system| system.name().to_owned()).to_vec(),
        series: vec![
            Series::new("here", systems.map(|system| of(system).map(|e| e.per_second)).to_vec())
                .bars(),
            Series::reference("the paper", systems.map(paper::transactions).to_vec()).bars(),
        ],
        statements: vec![
            Statement::new(
                "Delayed Aggregation and LRO take nothing from requests (Table VII)",
                within(System::Da).zip(within(System::Auto)).map(|(da, auto)| da && auto),
                format!("No request waits for longer than {longest:.1} us (p99)."),
            ),
            Statement::new(
                "auto holds nothing for an idle guest",
                of(System::Auto).map(|exchange| exchange.held_p99_us == 0.0),
                format!("p99 {} us.", shown(of(System::Auto).map(|e| e.held_p99_us))),
            ),
        ],
        ..Figure::default()
    }
}

/// A case of a system.
trait Case {
    fn system(&self) -> System;
    fn frames_a_poll(&self) -> f64;
}

impl Case for Rate {
    fn system(&self) -> System {
        self.system
    }

    fn frames_a_poll(&self) -> f64 {
        self.frames_a_poll
    }
}

impl Case for Cost {
    fn system(&self) -> System {
        self.system
    }

    fn frames_a_poll(&self) -> f64 {
        self.frames_a_poll
    }
}

impl Case for GuestCost {
    fn system(&self) -> System {
        self.system
    }

    fn frames_a_poll(&self) -> f64 {
        self.frames_a_poll
    }
}

fn at<C: Case>(cases: &[C], system: System, frames_a_poll: f64) -> Option<&C> {
    cases.iter().find(|case| case.system() == system && case.frames_a_poll() == frames_a_poll)
}

fn cost_at(costs: &[Cost], system: System, frames_a_poll: f64) -> Option<f64> {
    at(costs, system, frames_a_poll).map(|cost| cost.instructions_a_byte)
}

/// The frames a poll that there are, in the order of the first system.
fn frames<C: Case>(cases: &[C]) -> Vec<f64> {
    let Some(first) = cases.first().map(Case::system) else { return Vec::new() };
    cases.iter().filter(|case| case.system() == first).map(Case::frames_a_poll).collect()
}

fn polls<C: Case>(cases: &[C]) -> Vec<String> {
    frames(cases).iter().map(f64::to_string).collect()
}

/// A line over frames a poll for each system.
fn lines<C: Case>(cases: &[C], systems: &[System], value: impl Fn(&C) -> f64) -> Vec<Series> {
    let frames = frames(cases);
    let line = |system: &System| {
        let colour = System::ALL.iter().position(|one| one == system);
        let values = frames.iter().map(|frames| at(cases, *system, *frames).map(&value));
        Series { colour, ..Series::new(system.name(), values.collect()) }
    };
    systems.iter().map(line).collect()
}

/// What must be at most `most`.
fn bar(claim: &'static str, value: Option<f64>, most: f64, what: &str) -> Statement {
    let ours = format!("{what}: {} of Xen's.", shown(value));
    Statement::new(claim, value.map(|value| value <= most), ours)
}

fn shown(value: Option<f64>) -> String {
    value.map_or("nothing".to_owned(), |value| format!("{value:.2}"))
}

/// Systems whose aggregates differ.
const SHOWN: [System; 4] = [System::Xen, System::Lro, System::Da, System::Auto];
/// Of the paper's gain: polls that end at timestamps' ticks are shorter.
const NEARLY: f64 = 0.95;
/// More than what two counts differ by.
const ALIKE: f64 = 1.05;
/// The bound of auto.
const MOST_AUTO_US: f64 = 50.0;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::xen::traffic::{SEGMENT_BYTES, Traffic};
    use crate::xen::virtual_time;

    fn cost(system: System, frames_a_poll: f64, instructions_a_byte: f64) -> Cost {
        let is_linear = matches!(system, System::Lro | System::Da);
        Cost {
            system,
            frames_a_poll,
            instructions_a_byte,
            instructions_a_frame: instructions_a_byte * SEGMENT_BYTES as f64,
            copies: if is_linear { 2.0 } else { 1.0 },
            pieces: 2.55,
            packets_an_aggregate: 2.55,
        }
    }

    fn costs(share: f64) -> Vec<Cost> {
        let polls = [paper::FRAMES_A_POLL, FULL_LOAD];
        let value = |system| match system {
            System::Xen => 1.0,
            System::Lro | System::Bo => 0.9,
            _ => share,
        };
        let each = |system| polls.map(|frames| cost(system, frames, value(system)));
        System::DOMAINS.into_iter().flat_map(each).collect()
    }

    fn verdicts(figure: &Figure) -> Vec<Option<bool>> {
        figure.statements.iter().map(|statement| statement.holds).collect()
    }

    #[test]
    fn the_bars_of_the_driver_domain_are_judged() {
        assert_eq!(verdicts(&table_v(&costs(0.2))), [Some(true); 3]);
        assert_eq!(verdicts(&table_v(&costs(0.3))), [Some(true), Some(false), Some(true)]);
        assert_eq!(verdicts(&table_v(&costs(0.95))), [Some(false); 3]);
        assert_eq!(verdicts(&table_v(&[])), [None; 3]);
    }

    #[test]
    fn a_copy_too_many_is_seen() {
        assert_eq!(verdicts(&copies(&costs(0.2))), [Some(true)]);
        let mut wrong = costs(0.2);
        wrong[1].copies = 1.5;
        assert_eq!(verdicts(&copies(&wrong)), [Some(false)]);
    }

    #[test]
    fn on_virtual_time_the_papers_rate_and_requests_hold() {
        let traffic = Traffic::new(5_000, SEGMENT_BYTES).unwrap();
        let rate = |system| virtual_time::rate(system, paper::FRAMES_A_POLL, &traffic).unwrap();
        let rates: Vec<_> = System::DOMAINS.map(rate).to_vec();
        assert_eq!(verdicts(&aggregates(&rates)), [Some(true)]);
        assert_eq!(verdicts(&holds(&rates))[0], Some(true), "{rates:?}");
        let requests = Traffic::new(50, 1).unwrap();
        let exchange = |system| virtual_time::exchange(system, &requests).unwrap();
        let exchanges: Vec<_> = System::DOMAINS.map(exchange).to_vec();
        assert_eq!(verdicts(&table_vii(&exchanges)), [Some(true); 2]);
    }

    fn guests(share: f64) -> Vec<GuestCost> {
        let polls = [paper::FRAMES_A_POLL, FULL_LOAD];
        let of = |system, frames_a_poll| GuestCost {
            system,
            frames_a_poll,
            instructions_a_byte: if system == System::Xen { 4.0 } else { 4.0 * share },
            copying_a_byte: if system == System::Bo { 0.4 } else { 0.3 },
            packets_an_aggregate: 2.55,
            copies: 1.0,
        };
        let each = |system| polls.map(|frames| of(system, frames));
        System::DOMAINS.into_iter().flat_map(each).collect()
    }

    #[test]
    fn the_bars_of_the_guest_are_judged() {
        assert_eq!(verdicts(&guest_share(&guests(0.25))), [Some(true); 2]);
        assert_eq!(verdicts(&guest_share(&guests(0.5))), [Some(true), Some(false)]);
        assert_eq!(verdicts(&guest_share(&[])), [None; 2]);
        assert_eq!(verdicts(&guest_copies(&guests(0.5))), [Some(true)]);
    }

    #[test]
    fn the_rate_is_linuxs_share_of_what_the_link_carries() {
        let figure = table_iv(&costs(0.2), &guests(0.5));
        let derived: Vec<_> = figure.series[0].values.iter().map(|v| v.unwrap().round()).collect();
        // Linux: 4 a byte. Xen: 5, LRO: 2.9, DA: 2.2, more than the link carries.
        assert_eq!(derived, [721.0, 577.0, 941.0, 941.0, 941.0, 941.0, 941.0]);
        assert_eq!(verdicts(&figure), [Some(true)]);
        assert_eq!(verdicts(&table_iv(&costs(0.2), &guests(1.0))), [Some(false)]);
    }

    #[test]
    fn a_busy_machine_permits_verdicts_on_what_guests_have_no_part_in() {
        use crate::experiment::Findings;
        use crate::xen::findings::Found;
        let measured = Measured { costs: costs(0.2), guests: guests(0.25), ..Measured::default() };
        let verdicts = |found: &Found| found.paragraphs().join("\n").matches("holds: ").count();
        let mut found = Found::new(measured, Vec::new());
        let all = verdicts(&found);
        found.withhold();
        let kept = verdicts(&found);
        // Three of Table V and one of copies.
        assert!(kept == 4 && all > kept, "{kept} of {all}");
    }

    #[test]
    fn nothing_measured_is_no_figure() {
        assert!(all(&Measured::default()).is_empty());
    }
}
