//! Figures of guests: their cost per byte.

use rxo_driver::LINE_BYTES;

use super::{ALIKE, OF_GUESTS, at, bar, lines, points, polls, shown};
use crate::figure::{Figure, Series};
use crate::statement::Statement;
use crate::xen::guest::GuestCost;
use crate::xen::paper;
use crate::xen::plan::FULL_LOAD;
use crate::xen::system::System;

/// Draws the guest's part of Table V.
pub(super) fn guest_share(guests: &[GuestCost], without_gro: &[GuestCost]) -> Figure {
    let systems = System::DOMAINS;
    let share = |guests: &[GuestCost], system, frames| {
        let of = |system| at(guests, system, frames).map(|cost| cost.instructions_a_byte);
        of(System::Xen).zip(of(system)).map(|(xen, value)| value / xen)
    };
    let column =
        |guests: &[GuestCost], frames| systems.map(|system| share(guests, system, frames)).to_vec();
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
            Series::new("2.55 frames a poll", column(guests, paper::FRAMES_A_POLL)).bars(),
            Series::new("32 frames a poll", column(guests, FULL_LOAD)).bars(),
            Series::new("2.55, its GRO off", column(without_gro, paper::FRAMES_A_POLL)).bars(),
            Series::reference("the paper", papers).bars(),
        ],
        statements: vec![
            bar(
                "Delayed Aggregation takes a guest that does not coalesce by itself to 0.68 of Xen's",
                share(without_gro, System::Da, paper::FRAMES_A_POLL),
                0.68,
                "DA at 2.55 frames a poll, the guest's GRO off",
            ),
            bar(
                "Delayed Aggregation takes the guest to 0.68 of Xen's",
                share(guests, System::BoDa, paper::FRAMES_A_POLL),
                0.68,
                "BO+DA at 2.55 frames a poll",
            )
            .unless_it_holds(|| {
                "The guest of today coalesces by itself (GRO), the paper's did not.".to_owned()
            }),
            bar(
                "at full load a guest pays at most 0.3 of what its own GRO takes",
                share(guests, System::BoDa, FULL_LOAD),
                0.3,
                "BO+DA at 32 frames a poll",
            ),
        ],
        ..Figure::default()
    }
}

/// Draws the instructions per byte over frames per poll.
pub(super) fn sweep(guests: &[GuestCost]) -> Figure {
    let value = |cost: &GuestCost| cost.instructions_a_byte;
    Figure {
        number: OF_GUESTS[8],
        title: "Instructions of the guest by frames a poll",
        fixed: "its GRO is on; the paper's points are its shares of Xen's cycles",
        x_label: "frames a poll",
        y_label: "instructions a byte",
        x: polls(guests),
        series: lines(guests, &System::SWEPT, value)
            .into_iter()
            .chain(points(guests, value, paper::guest_cycles))
            .collect(),
        ..Figure::default()
    }
}

/// Draws the guest's cost of copying to its program, by the path of packets into its memory.
pub(super) fn guest_copies(guests: &[GuestCost]) -> Figure {
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

/// Draws the alignment of the payload in the guest's memory, by the path of packets into it.
pub(super) fn alignments(guests: &[GuestCost]) -> Figure {
    let of = |system| at(guests, system, paper::FRAMES_A_POLL).map(|cost| cost.alignment.shares());
    let paths = [System::Lro, System::Bo].map(|system| (system, of(system)));
    let has_any = |place: usize| paths.iter().flat_map(|(_, it)| it).any(|it| it[place] >= LEAST);
    let places: Vec<usize> = (0..LINE_BYTES).filter(|place| has_any(*place)).collect();
    let share = |shares: Option<[f64; LINE_BYTES]>| {
        places.iter().map(|place| shares.map(|shares| 100.0 * shares[*place])).collect()
    };
    let [linear, gathered] = paths.map(|(_, shares)| shares);
    let difference = linear.zip(gathered).map(|(linear, gathered)| {
        linear.iter().zip(gathered).map(|(one, other)| (one - other).abs()).sum::<f64>() / 2.0
    });
    Figure {
        number: OF_GUESTS[7],
        title: "Where payload begins in the guest's buffers",
        fixed: "2.55 frames a poll; addresses modulo a cache line of 64 bytes",
        x_label: "address modulo 64",
        y_label: "% of the payload",
        x: places.iter().map(usize::to_string).collect(),
        series: paths
            .map(|(system, shares)| Series::new(system.name(), share(shares)).bars())
            .to_vec(),
        statements: vec![Statement::new(
            "with BO the payload lies at other addresses modulo 64 than with LRO",
            difference.map(|difference| difference > 0.1),
            difference.map_or("Not measured.".to_owned(), |difference| {
                format!("{:.1} % of the payload lies elsewhere.", 100.0 * difference)
            }),
        )
        .unless_it_holds(|| {
            "Both paths write each byte to the same place: the guest's buffers decide where payload \
             lies, so alignment is not what made the paper's guest pay more."
                .to_owned()
        })],
        ..Figure::default()
    }
}

/// Smallest share of the payload that is drawn.
const LEAST: f64 = 0.005;
