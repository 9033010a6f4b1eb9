//! Figures of the driver domain: its cost per byte, and the number of copies.

use super::{at, cost_at, lines, points, polls, share, shown};
use crate::claim::Claim;
use crate::figure::{Figure, Series};
use crate::xen::driver::Cost;
use crate::xen::paper;
use crate::xen::plan::FULL_LOAD;
use crate::xen::system::System;

/// Draws the driver domain's part of Table V.
pub(super) fn table_v(costs: &[Cost]) -> Figure {
    let systems = System::DOMAINS;
    let at_paper = |system| cost_at(costs, system, paper::FRAMES_A_POLL);
    let at_full = |system| cost_at(costs, system, FULL_LOAD);
    let of_xen = |of: &dyn Fn(System) -> Option<f64>, system| {
        of(System::Xen).zip(of(system)).map(|(xen, value)| value / xen)
    };
    let shares =
        |of: &dyn Fn(System) -> Option<f64>| systems.map(|system| of_xen(of, system)).to_vec();
    let papers = |system| paper::driver_cycles(system).zip(paper::driver_cycles(System::Xen));
    let papers = systems.map(|system| papers(system).map(|(value, xen)| value / xen)).to_vec();
    let (best, full) = (of_xen(&at_paper, System::BoDa), of_xen(&at_full, System::BoDa));
    let (lro, da) = (of_xen(&at_paper, System::Lro), of_xen(&at_paper, System::Da));
    Figure {
        number: "Table V",
        x: systems.map(|system| system.name().to_owned()).to_vec(),
        series: vec![
            Series::new("2.55 frames a poll", shares(&at_paper)).bars(),
            Series::new("32 frames a poll", shares(&at_full)).bars(),
            Series::reference("the paper", papers).bars(),
        ],
        claims: vec![
            share("xen.table-v.driver.da", da, "DA at 2.55 frames a poll"),
            share("xen.table-v.driver.bo-da", best, "BO+DA at 2.55 frames a poll"),
            share("xen.table-v.driver.full-load", full, "BO+DA at 32 frames a poll"),
            Claim::new(
                "xen.table-v.driver.below-lro",
                da.zip(lro).map(|(da, lro)| da / lro),
                format!("{} of Xen's against {} with LRO.", shown(da), shown(lro)),
            ),
        ],
        ..Figure::default()
    }
}

/// Draws the instructions per byte over frames per poll.
pub(super) fn sweep(costs: &[Cost]) -> Figure {
    let value = |cost: &Cost| cost.instructions_a_byte;
    Figure {
        number: "sweep",
        x: polls(costs),
        series: lines(costs, &System::COUNTED, value)
            .into_iter()
            .chain(points(costs, value, paper::driver_cycles))
            .collect(),
        ..Figure::default()
    }
}

/// Draws the copies of a byte, and the buffers of a packet.
pub(super) fn copies(costs: &[Cost]) -> Figure {
    let of = |system, value: fn(&Cost) -> f64| at(costs, system, paper::FRAMES_A_POLL).map(value);
    let column = |value| System::COUNTED.map(|system| of(system, value)).to_vec();
    let copies = |id, system| Claim::new(id, of(system, |cost| cost.copies), None);
    Figure {
        number: "copies",
        x: System::COUNTED.map(|system| system.name().to_owned()).to_vec(),
        series: vec![
            Series::new("copies of a byte", column(|cost| cost.copies)).bars(),
            Series::new("pieces of a packet", column(|cost| cost.pieces)).bars(),
        ],
        claims: vec![copies("xen.copies.lro", System::Lro), copies("xen.copies.bo", System::Bo)],
        ..Figure::default()
    }
}
