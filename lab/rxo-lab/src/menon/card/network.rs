//! Runs one measurement: a wire, a card on it, the receiver behind the card, and Linux senders.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::process::Command;
use std::time::Duration;

use anyhow::{Context, Result};
use rxo_console::numbers::ratio;
use rxo_peers::Folder;
use rxo_testbed::traffic::{BulkConfig, Outgoing, Pattern};
use rxo_testbed::{Lab, LabOptions, Namespace};
use serde::Serialize;

use super::Scale;
use super::case::{Application, Case, Traffic};
use super::receiver::{Measured, PORT, Parameters};
use crate::callgrind::{self, COUNTED};
use crate::card::{self, MODERATION};
use crate::counted::{Categories, Costs, Source};
use crate::generator::generator;
use crate::menon::stack::Stack;
use crate::process::{self, Process};
use crate::step;

/// The purpose of a receiver's instructions (section 2.2). The paper's rx and tx are protocol; transmit writes
/// headers and templates, non-proto is per-packet work that is neither protocol nor device. Functions that write
/// the ACKs of a template are the driver's, whatever file their code is from; packing one for a card is not.
const CATEGORIES: Categories = Categories(
    &[
        ("per-byte", Source::Copies),
        ("driver, expansion", Source::Functions("write_like AckWriter")),
        ("protocol", Source::Files("rxo-tcp", "")),
        ("transmit", Source::Files("rxo-ack", "")),
        ("transmit", Source::Files("rxo-host", "src/transmit")),
        ("non-proto", Source::Files("rxo-host", "")),
        ("driver", Source::Files("rxo-driver rxo-virtqueue rxo-vnet rxo-device", "")),
        ("aggr", Source::Files("rxo-coalesce", "")),
    ],
    "misc",
);

/// The results of two transfers: one timed, one with counted instructions.
#[derive(Clone, Debug, Serialize)]
pub(super) struct Sample {
    /// Instructions of the receiver per frame from the card, and per byte of payload.
    per_packet: f64,
    per_byte: f64,
    /// Payload received per second of the receiver's processor time, in Gbit.
    scaled_gbit_per_s: f64,
    /// Payload rate in real time.
    gbit_per_s: f64,
    packets_per_delivery: f64,
    acks_per_packet: f64,
    /// Packets handed to the card per received frame. A template is one packet.
    handed_over_per_packet: f64,
    /// Idle turns per frame while instructions were counted.
    pauses_per_packet: f64,
    /// Instructions per frame, by category.
    breakdown: Costs,
    /// Segments that the senders retransmitted in both transfers.
    retransmissions: u64,
    /// Segments retransmitted while instructions were counted, whose instructions are counted too. These are half
    /// of the transfer, hence a factor of two.
    sent_again_percent: f64,
}

/// Measures one host.
///
/// # Errors
/// If the network cannot be built, a process ends early, or data is lost or wrong.
pub(super) fn measure(case: Case, scale: Scale) -> Result<Sample> {
    let folder = Folder::new("menon")?;
    let (timed, first) = transfer(case, scale, &folder, Tool::None)?;
    let (counted, second) = transfer(case, scale, &folder, Tool::Callgrind)?;
    let counts = CATEGORIES.read(&folder.file("callgrind.out"))?;
    let all = counts.total();
    let per_packet = |count: u64| ratio(count as f64, counted.packets as f64);
    let gigabits = timed.bytes as f64 * 8.0 / 1e9;
    Ok(Sample {
        per_packet: ratio(all, counted.packets as f64),
        per_byte: ratio(all, counted.bytes as f64),
        scaled_gbit_per_s: ratio(gigabits, timed.cpu_s),
        gbit_per_s: ratio(gigabits, timed.seconds),
        packets_per_delivery: ratio(counted.packets as f64, counted.deliveries as f64),
        acks_per_packet: per_packet(counted.acks),
        handed_over_per_packet: per_packet(counted.handed_over),
        pauses_per_packet: per_packet(counted.pauses),
        breakdown: counts.each(|_, count| ratio(count, counted.packets as f64)),
        retransmissions: first + second,
        sent_again_percent: 100.0 * per_packet(second) / 2.0,
    })
}

/// The prefetching of a simulated processor (section 2.1, figure 1).
///
/// Callgrind simulates two levels of cache, and estimates cycles from the misses. Nothing is timed, and a
/// simulated prefetcher is never late. The simulation does not see the card's writes, so its last cache is
/// smaller than the ring; a frame is then never cached when the host reads it, as after DMA.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum Prefetch {
    None,
    /// Prefetches the neighbour of each cache line.
    Adjacent,
    /// Prefetches the neighbour of each line, and streams of lines.
    Full,
}

impl Prefetch {
    pub(super) const ALL: [Self; 3] = [Self::None, Self::Adjacent, Self::Full];

    /// Returns callgrind's options: the first-level data cache of the paper's processor, and a last one. A line
    /// with its neighbour is simulated as a line of twice the size.
    const fn options(self) -> &'static [&'static str] {
        match self {
            Self::None => &[SIMULATED, FIRST, "--LL=262144,8,64"],
            Self::Adjacent => &[SIMULATED, FIRST, "--LL=262144,8,128"],
            Self::Full => &[SIMULATED, FIRST, "--LL=262144,8,128", "--simulate-hwpref=yes"],
        }
    }
}

const SIMULATED: &str = "--cache-sim=yes";
const FIRST: &str = "--D1=16384,8,64";

/// Estimated cycles of a packet on a simulated processor.
#[derive(Clone, Copy, Debug, Serialize)]
pub(super) struct Simulated {
    per_byte: f64,
    per_packet: f64,
    misc: f64,
}

/// Simulates the cost of a packet in cycles, with the stack Original on a processor with this `prefetch`.
pub(super) fn simulate(prefetch: Prefetch, scale: Scale) -> Result<Simulated> {
    let folder = Folder::new("menon")?;
    let case = Case::one_processor(Stack::ORIGINAL);
    let (counted, _) = transfer(case, scale, &folder, Tool::Simulated(prefetch))?;
    let all = CATEGORIES.read(&folder.file("callgrind.out"))?;
    let cycles = all.each(|_, cycles| ratio(cycles, counted.packets as f64));
    let [per_byte, misc] = ["per-byte", "misc"].map(|name| cycles.of(name));
    Ok(Simulated { per_byte, per_packet: cycles.total() - per_byte - misc, misc })
}

/// The tool under which the receiver runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Tool {
    None,
    Callgrind,
    /// Callgrind with simulated caches.
    Simulated(Prefetch),
}

impl Tool {
    /// Returns the pause of an idle worker. Natively it is the card's notification interval. Under callgrind
    /// idle turns are counted, so a longer pause makes them rare.
    const fn pause(self) -> Duration {
        match self {
            Self::None => MODERATION,
            _ => Duration::from_millis(4),
        }
    }

    /// Returns the payload bytes of a transfer.
    const fn bytes(self, case: Case, scale: Scale) -> u64 {
        let [timed, counted] = match case.traffic {
            Traffic::Bulk | Traffic::Saturation => scale.bytes,
            Traffic::Requests => scale.requests,
        };
        match self {
            Self::None => timed,
            Self::Callgrind => counted,
            // Cache simulation is several times slower again.
            Self::Simulated(_) => counted / 4,
        }
    }

    fn command(self, folder: &Folder) -> Result<Command> {
        let options = match self {
            Self::None => return Ok(Command::new(process::program()?)),
            Self::Callgrind => &[][..],
            Self::Simulated(prefetch) => prefetch.options(),
        };
        callgrind::command(COUNTED, &folder.file("callgrind.out"), options)
    }
}

/// Runs one transfer. Returns the receiver's measurement, and the number of retransmitted segments.
fn transfer(case: Case, scale: Scale, folder: &Folder, tool: Tool) -> Result<(Measured, u64)> {
    let peer_core = scale.cores.sender;
    let lab = Lab::through_with(LabOptions { peer_core, ..LabOptions::default() })?;
    if case.traffic == Traffic::Saturation {
        return saturate(case, scale, (&lab, folder), tool);
    }
    let ring = (folder.file("card.sock"), MODERATION);
    let card = card::start_for(case.expansion, &lab, ring, scale.cores.sender)?;
    let each = tool.bytes(case, scale) / case.connections as u64;
    let bytes = each * case.connections as u64;
    let mut receiver = receiver(case, scale, (&lab, folder), tool, bytes)?;
    let address = SocketAddr::new(lab.host_address(), PORT);
    let sent = send(case, scale, (&lab, address), each);
    // If the receiver has failed, its error is more precise than those of the senders.
    let measured = receiver.finish()?;
    let sent_again =
        sent?.map_or(Ok(0), |bulk| bulk.stop().map(|sent| sent.retransmitted_segments))?;
    card.finish()?;
    Ok((measured, sent_again))
}

/// Runs one transfer from the generator, which never retransmits.
fn saturate(
    case: Case,
    scale: Scale,
    (lab, folder): (&Lab, &Folder),
    tool: Tool,
) -> Result<(Measured, u64)> {
    let ring = (folder.file("card.sock"), case.expansion);
    let address = SocketAddr::new(lab.host_address(), PORT);
    let generator = generator(lab, ring, address, scale.cores.sender)?;
    let mut receiver = receiver(case, scale, (lab, folder), tool, tool.bytes(case, scale))?;
    let measured = receiver.finish()?;
    generator.finish()?;
    Ok((measured, 0))
}

/// Starts the receiver of `bytes` bytes.
fn receiver(
    case: Case,
    scale: Scale,
    (lab, folder): (&Lab, &Folder),
    tool: Tool,
    bytes: u64,
) -> Result<Process> {
    let parameters = Parameters {
        socket: folder.file("card.sock"),
        address: lab.host_address(),
        limit: case.stack.limit,
        ack_offload: case.stack.ack_offload,
        poll_frames: case.poll_frames,
        connections: case.connections,
        bytes,
        echo: case.traffic == Traffic::Requests,
        threads: case.application == Application::Threads,
        pause_us: tool.pause().as_micros() as u64,
        core: scale.cores.receiver,
    };
    let step = step::arguments("Receiver", &parameters)?;
    Process::start("the receiver", tool.command(folder)?.args(step))
}

/// Starts a bulk transfer, or runs all requests. Returns the transfer, or `None` after requests.
fn send(
    case: Case,
    scale: Scale,
    (lab, address): (&Lab, SocketAddr),
    each: u64,
) -> Result<Option<Outgoing>> {
    if case.traffic == Traffic::Requests {
        return ask(lab.peer(), address, each).map(|()| None);
    }
    let config = BulkConfig {
        connections: case.connections,
        bytes_per_connection: Some(each),
        sender_core: scale.cores.sender,
        ..BulkConfig::default()
    };
    Ok(Some(Outgoing::start(lab.peer(), address, &config)?))
}

/// Sends `requests` one-byte requests, each after the previous answer.
fn ask(from: &Namespace, address: SocketAddr, requests: u64) -> Result<()> {
    from.run(|| -> Result<()> {
        let mut stream = TcpStream::connect_timeout(&address, TIMEOUT)?;
        stream.set_nodelay(true)?;
        stream.set_read_timeout(Some(TIMEOUT))?;
        let pattern = Pattern::of_port(stream.local_addr()?.port());
        let mut answer = [0];
        for request in 0..requests {
            stream.write_all(pattern.bytes(request, 1))?;
            stream.read_exact(&mut answer)?;
            if pattern.check(request, &answer).is_err() {
                anyhow::bail!("answer {request} is wrong");
            }
        }
        Ok(())
    })?
    .context("the requests were not answered")
}

const TIMEOUT: Duration = Duration::from_secs(20);

#[cfg(test)]
mod tests {
    use super::*;
    use crate::callgrind::Origin;

    #[test]
    fn instructions_have_the_category_of_their_crate_and_expansion_that_of_its_function() {
        let rows = [
            ("take", "crates/rxo-tcp/src/arrives/mod.rs", "protocol"),
            ("take", "/home/x/crates/rxo-host/src/transmit/acks.rs", "transmit"),
            ("take", "crates/rxo-host/src/demux/mod.rs", "non-proto"),
            ("take", "crates/rxo-virtqueue/src/driver/mod.rs", "driver"),
            ("take", "crates/rxo-coalesce/src/engine/mod.rs", "aggr"),
            ("take", "crates/rxo-wire/src/parse.rs", "misc"),
            (
                "acks::Outbox::write_like",
                "crates/rxo-host/src/transmit/acks.rs",
                "driver, expansion",
            ),
            (
                "rxo_ack::writer::AckWriter::new",
                "crates/rxo-ack/src/writer.rs",
                "driver, expansion",
            ),
            ("rxo_ack::template::AckTemplate::new", "crates/rxo-ack/src/template.rs", "transmit"),
            ("memcpy", "???", "per-byte"),
        ];
        for (function, home, category) in rows {
            let origin = Origin { function, inlined: "/rustc/1/library/core/src/mem.rs", home };
            assert_eq!(CATEGORIES.of(origin), category, "{function} in {home}");
        }
    }
}
