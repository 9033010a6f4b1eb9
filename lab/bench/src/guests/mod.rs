//! `rxo-lab bench guests`: measures the saving of coalescing for a guest, and its cost to the machine.
//!
//! Every system is a driver domain (`domain.rs`), a network and a Linux guest in an emulated machine
//! (`system.rs`). All run at the same time and are measured in turn. `requests.rs` compares requests with and
//! without adaptive hold, `together.rs` sends files to several guests at once, and `bars.rs` compares the
//! figures with targets, if the machine's load permits.

mod bars;
mod domain;
mod requests;
mod system;
mod together;

use anyhow::{Context, Result};
use clap::Args;
use rxo_demo::stats::Spread;
use rxo_peers::GuestImage;
use serde::Serialize;

use self::bars::Bar;
use self::domain::Domain;
use self::requests::Requests;
pub(crate) use self::system::GUEST_PROCESSOR;
use self::system::{Span, System};
use self::together::Together;
use crate::rounds::{Rounds, Run};
use crate::subject::Subject;

/// Options of `rxo-lab bench guests`.
#[derive(Args, Debug)]
pub struct GuestsArgs {
    #[command(flatten)]
    subject: Subject,
    #[command(flatten)]
    rounds: Rounds,
    /// Pairs of requests without coalescing and with adaptive hold.
    #[arg(long, default_value_t = 21)]
    pairs: u32,
}

/// Bytes of a measured span, and of the warm-up before the first, in which the window reaches its full size.
const SPAN_BYTES: usize = 24 << 20;
const WARM_BYTES: usize = 8 << 20;
const ROUNDS: u32 = 5;

/// The result of a system: medians over its rounds.
#[derive(Debug, Serialize)]
struct Row {
    system: String,
    /// Instructions of the guest per frame on the wire.
    guest_instructions_a_frame: f64,
    /// Frames on the wire per packet that the guest's kernel received from its card.
    frames_a_packet: f64,
    /// Megabytes per second of processor time of the domain and of QEMU without the guest.
    megabytes_a_cpu_second: f64,
    /// Megabytes per second of processor time of the domain alone.
    megabytes_a_domain_second: f64,
}

/// The report of a run.
#[derive(Debug, Serialize)]
struct Report {
    rows: Vec<Row>,
    requests: Option<Requests>,
    together: Together,
    bars: Vec<Bar>,
}

/// Measures all systems, and prints the report.
///
/// # Errors
/// If a program is missing, or a guest or a driver domain fails.
pub(crate) fn run(args: &GuestsArgs) -> Result<()> {
    // Must run before the process enters the user namespace, whose root cannot download a kernel.
    let image = GuestImage::find()?;
    rxo_testbed::become_root_in_user_namespace()?;
    let rxo = args.subject.path()?;
    let run = args.rounds.begin(ROUNDS);
    let rows = rows(&image, &rxo, &run)?;
    let requests =
        (args.pairs > 0).then(|| requests::measure(&image, &rxo, args.pairs)).transpose()?;
    let together = together::measure()?;
    let mut bars = bars::hold(&rows, requests.as_ref(), Some(&together));
    if run.busy().is_some() {
        bars.iter_mut().for_each(Bar::withhold);
    }
    run.print(&Report { rows, requests, together, bars })
}

fn rows(image: &GuestImage, rxo: &std::path::Path, run: &Run) -> Result<Vec<Row>> {
    let mut systems = Vec::new();
    for domain in Domain::all() {
        if let Some(obstacle) = domain.obstacle() {
            eprintln!("guests: {} is left out: {obstacle}", domain.name());
            continue;
        }
        eprintln!("guests: starting {}", domain.name());
        let name = domain.name();
        let system = System::start(image, rxo, domain).with_context(|| name)?;
        system.separate_peer()?;
        systems.push(system);
    }
    for system in &mut systems {
        system.measure(WARM_BYTES).with_context(|| system.name())?;
    }
    let spans = run.measure(&mut systems, System::name, |system| system.measure(SPAN_BYTES))?;
    Ok(systems.iter().zip(spans).map(|(system, spans)| row(system.name(), &spans)).collect())
}

fn row(system: String, spans: &[Span]) -> Row {
    let median = |figure: fn(&Span) -> f64| Spread::over(spans, figure).map_or(0.0, |it| it.median);
    Row {
        system,
        guest_instructions_a_frame: median(|span| span.instructions as f64 / span.frames as f64),
        frames_a_packet: median(|span| span.frames as f64 / span.packets as f64),
        megabytes_a_cpu_second: median(|span| {
            span.bytes as f64 / 1e6 / (span.domain + span.emulator).as_secs_f64()
        }),
        megabytes_a_domain_second: median(|span| {
            span.bytes as f64 / 1e6 / span.domain.as_secs_f64()
        }),
    }
}
