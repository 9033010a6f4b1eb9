//! `rxo-lab bench guests`: measures the saving of coalescing for a guest, and its cost to the machine.
//!
//! Every system is a driver domain (`domain.rs`), a network and a Linux guest in an emulated machine
//! (`system.rs`). All run at the same time and are measured in turn. `requests.rs` compares requests with and
//! without adaptive hold, `together.rs` sends files to several guests at once, and `bars.rs` compares the
//! figures with targets, if the machine's load permits (`load.rs`).

mod bars;
mod domain;
mod load;
mod requests;
mod system;
mod together;

use anyhow::{Context, Result};
use clap::Args;
use rxo_peers::GuestImage;
use rxo_testbed::MachineReading;
use serde::Serialize;

use self::bars::Bar;
use self::domain::Domain;
use self::load::Load;
use self::requests::Requests;
pub(crate) use self::system::{GUEST_PROCESSOR, processor_time};
use self::system::{Span, System};
use self::together::Together;
use crate::stats::Summary;
use crate::subject::Subject;

/// Options of `rxo-lab bench guests`.
#[derive(Args, Debug)]
pub struct GuestsArgs {
    #[command(flatten)]
    subject: Subject,
    /// Rounds over all systems.
    #[arg(long, default_value_t = 5)]
    rounds: u32,
    /// Pairs of requests without coalescing and with adaptive hold.
    #[arg(long, default_value_t = 21)]
    pairs: u32,
    /// Prints a JSON document.
    #[arg(long)]
    json: bool,
}

/// Bytes of a measured span, and of the warm-up before the first, in which the window reaches its full size.
const SPAN_BYTES: usize = 24 << 20;
const WARM_BYTES: usize = 8 << 20;

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
    load: Load,
    rounds: u32,
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
    let before = MachineReading::now()?;
    let rows = rows(&image, &rxo, args.rounds)?;
    let requests =
        (args.pairs > 0).then(|| requests::measure(&image, &rxo, args.pairs)).transpose()?;
    let together = together::measure(&rxo)?;
    let load = Load::of(MachineReading::now()?.since(&before));
    let mut bars = bars::hold(&rows, requests.as_ref(), Some(&together));
    if !load.permits_verdict() {
        bars.iter_mut().for_each(Bar::withhold);
    }
    let report = Report { rows, requests, together, bars, load, rounds: args.rounds };
    if args.json {
        println!("{}", serde_json::to_string_pretty(&report)?);
    } else {
        show(&report);
    }
    Ok(())
}

fn rows(image: &GuestImage, rxo: &std::path::Path, rounds: u32) -> Result<Vec<Row>> {
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
    let mut spans: Vec<Vec<Span>> = systems.iter().map(|_| Vec::new()).collect();
    for system in &mut systems {
        system.measure(WARM_BYTES).with_context(|| system.name())?;
    }
    for round in 0..rounds {
        eprintln!("guests: round {} of {rounds}", round + 1);
        for (system, spans) in systems.iter_mut().zip(&mut spans) {
            spans.push(system.measure(SPAN_BYTES).with_context(|| system.name())?);
        }
    }
    Ok(systems.iter().zip(spans).map(|(system, spans)| row(system.name(), &spans)).collect())
}

fn row(system: String, spans: &[Span]) -> Row {
    let median = |figure: fn(&Span) -> f64| {
        let figures: Vec<f64> = spans.iter().map(figure).collect();
        Summary::of(&figures).median
    };
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

fn show(report: &Report) {
    println!(
        "{:<34} {:>16} {:>12} {:>10} {:>12}",
        "system", "guest instr/frame", "frames/packet", "MB/CPU s", "of domain"
    );
    for row in &report.rows {
        println!(
            "{:<34} {:>16.0} {:>12.1} {:>10.0} {:>12.0}",
            row.system,
            row.guest_instructions_a_frame,
            row.frames_a_packet,
            row.megabytes_a_cpu_second,
            row.megabytes_a_domain_second,
        );
    }
    if let Some(requests) = &report.requests {
        println!("{requests}");
    }
    println!("{}", report.load);
    for bar in &report.bars {
        println!("{bar}");
    }
}
