//! The findings: text for people, JSON for programs.

use rxo_demo::experiment::Findings;
use rxo_demo::load::Timed;
use serde::Serialize;

use super::driver::Cost;
use super::figures;
use super::guest::GuestCost;
use super::guest::exchange::Requests;
use super::guest::rate::GuestRate;
use super::guest::several::Several;
use super::plan::Plan;
use super::system::System;
use super::virtual_time::{Exchange, Paced, Rate};
use crate::figure::Figure;

/// The results of all measurements.
#[derive(Clone, Debug, Default, Serialize)]
pub(crate) struct Measured {
    pub(super) rates: Vec<Rate>,
    pub(super) paced: Vec<Paced>,
    pub(super) exchanges: Vec<Exchange>,
    pub(super) costs: Vec<Cost>,
    pub(super) guests: Vec<GuestCost>,
    pub(super) machines: Vec<GuestRate>,
    pub(super) requests: Vec<Requests>,
    pub(super) several: Vec<Several>,
}

/// The repeated experiments of the paper.
#[derive(Debug, Serialize)]
pub(crate) struct Found {
    figures: Vec<Figure>,
    #[serde(flatten)]
    measured: Measured,
    /// The reasons why parts are missing.
    missing: Vec<String>,
}

impl Found {
    pub(super) fn new(measured: Measured, missing: Vec<String>) -> Self {
        Self { figures: figures::all(&measured), measured, missing }
    }
}

impl Findings for Found {
    fn paragraphs(&self) -> Vec<String> {
        self.figures.iter().map(Figure::text).collect()
    }

    /// Virtual time and callgrind give the same results on a busy machine. Guests do not: their packets
    /// arrive in real time.
    fn withhold(&mut self) {
        let of_guests = |figure: &&mut Figure| figures::OF_GUESTS.contains(&figure.number);
        self.figures.iter_mut().filter(of_guests).for_each(Figure::withhold);
    }

    fn timed(&self) -> Timed {
        Timed::Only("what guests cost and take")
    }

    fn is_intact(&self) -> bool {
        self.measured.several.iter().flat_map(|several| &several.each).all(|each| each.is_intact)
    }

    fn drawings(&self) -> Vec<(String, String)> {
        self.figures.iter().map(|figure| (figure.file_name(), figure.svg())).collect()
    }

    fn damage(&self) -> Option<String> {
        (!self.missing.is_empty()).then(|| self.missing.join("; "))
    }
}

pub(super) fn notes(plan: &Plan) -> Vec<String> {
    let flags =
        System::ALL.map(|system| format!("{}: {}{}", system.name(), system.flags(), system.way()));
    vec![
        format!(
            "Systems, as flags of rxo guest. {}. BO+DA, auto and DA 4 are not in the paper.",
            flags.join("; ")
        ),
        "Packets an aggregate, the time of holding and requests are on virtual time: a frame of 1,448 \
         bytes every 16.7 us, the paper's 60,000 a second, and a guest that is busy; for requests \
         one that is idle. What auto holds by the guest's load is at ten times as many."
            .to_owned(),
        format!(
            "Instructions: callgrind over {} frames, in release builds the cost of what is shipped. \
             Engine, ring and copies count; the card and what fetches frames from it do not, and a \
             guest takes everything before the next poll. Instructions hardly show copies, which move \
             32 bytes each; bytes_copied does.",
            plan.counted_frames
        ),
        format!(
            "Guests: Linux in QEMU's emulation, one processor, its GRO on unless said; a plugin counts. \
             Transfers of {} and {} KiB from Linux, the difference counts; the program reads 64 KiB at a \
             time. Linux is a guest whose card gives it the same polls, and which has no driver domain. What is derived is min(link, C / \
             instructions a byte), C such that Linux has 721.1 Mbit/s.",
            plan.guest_bytes / 4096,
            plan.guest_bytes / 1024
        ),
        format!(
            "Requests, and rates that are measured: guests on the paper's machine. Driver domain and guest share a core, a card and \
             the sender have the other; under Linux the card is the guest's. Rates: transfers of {} and {} MiB, the difference counts. \
             Requests: one byte to a guest that sends it back, {} \
             transactions of each system in a round. A guest has the systems in turn, and is booted {} times. Several guests: behind \
             one switch, {} KiB to each at the same time, after a file whose hash each guest computes.",
            plan.machine_bytes / (4 << 20),
            plan.machine_bytes >> 20,
            plan.transactions,
            plan.boots,
            plan.several_bytes / 1024
        ),
    ]
}
