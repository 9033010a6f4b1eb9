//! Figures of guests: their cost per byte.

use rxo_driver::LINE_BYTES;

use super::{at, lines, points, polls, share, shown};
use crate::claim::Claim;
use crate::figure::{Figure, Series};
use crate::xen::guest::GuestCost;
use crate::xen::paper;
use crate::xen::plan::FULL_LOAD;
use crate::xen::system::System;

/// Draws the guest's part of Table V.
pub(super) fn guest_share(guests: &[GuestCost], without_gro: &[GuestCost]) -> Figure {
    let systems = System::DOMAINS;
    let of_xen = |guests: &[GuestCost], system, frames| {
        let of = |system| at(guests, system, frames).map(|cost| cost.instructions_a_byte);
        of(System::Xen).zip(of(system)).map(|(xen, value)| value / xen)
    };
    let column = |guests: &[GuestCost], frames| {
        systems.map(|system| of_xen(guests, system, frames)).to_vec()
    };
    let papers = |system| paper::guest_cycles(system).zip(paper::guest_cycles(System::Xen));
    let papers = systems.map(|system| papers(system).map(|(value, xen)| value / xen)).to_vec();
    Figure {
        number: "Table V guest",
        x: systems.map(|system| system.name().to_owned()).to_vec(),
        series: vec![
            Series::new("2.55 frames a poll", column(guests, paper::FRAMES_A_POLL)).bars(),
            Series::new("32 frames a poll", column(guests, FULL_LOAD)).bars(),
            Series::new("2.55, its GRO off", column(without_gro, paper::FRAMES_A_POLL)).bars(),
            Series::reference("the paper", papers).bars(),
        ],
        claims: vec![
            share(
                "xen.table-v.guest.da",
                of_xen(without_gro, System::Da, paper::FRAMES_A_POLL),
                "DA at 2.55 frames a poll, the guest's GRO off",
            ),
            share(
                "xen.table-v.guest.gro",
                of_xen(guests, System::BoDa, paper::FRAMES_A_POLL),
                "BO+DA at 2.55 frames a poll",
            ),
            share(
                "xen.table-v.guest.full-load",
                of_xen(guests, System::BoDa, FULL_LOAD),
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
        number: "sweep guest",
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
        number: "alignment",
        x: System::DOMAINS.map(|system| system.name().to_owned()).to_vec(),
        series: vec![Series::new("copying", System::DOMAINS.map(of).to_vec()).bars()],
        claims: vec![Claim::new(
            "xen.alignment.copying",
            linear.zip(gathered).map(|(linear, gathered)| gathered / linear),
            format!("{} a byte with LRO, {} with BO.", shown(linear), shown(gathered)),
        )],
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
        number: "alignment places",
        x: places.iter().map(usize::to_string).collect(),
        series: paths
            .map(|(system, shares)| Series::new(system.name(), share(shares)).bars())
            .to_vec(),
        claims: vec![Claim::new(
            "xen.alignment.places",
            difference.map(|difference| 100.0 * difference),
            None,
        )],
        ..Figure::default()
    }
}

/// Smallest share of the payload that is drawn.
const LEAST: f64 = 0.005;
