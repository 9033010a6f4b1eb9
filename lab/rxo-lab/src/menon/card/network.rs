//! Runs one measurement: a wire, a card on it, the receiver behind the card, and Linux senders.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::process::Command;
use std::time::Duration;

use anyhow::{Context, Result};
use rxo_testbed::traffic::{BulkConfig, Outgoing, Pattern};
use rxo_testbed::{Lab, LabOptions, Namespace};

use super::case::{Application, Case, Traffic};
use super::category::Category;
use super::generator::generator;
use super::plan::Plan;
use super::prefetch::Prefetch;
use super::receiver::{COUNTED, Measured, PORT, Parameters};
use crate::callgrind;
use crate::card::{self, MODERATION};
use crate::folder::Folder;
use crate::menon::receive::stack::Stack;
use crate::process::{self, Process};
use crate::step;

/// Instructions, or estimated cycles, for each of [`Category::ALL`].
pub(super) type Counts = [f64; Category::ALL.len()];

/// The results of two transfers: one timed, one with counted instructions.
#[derive(Clone, Copy, Debug)]
pub(super) struct Sample {
    pub(super) timed: Measured,
    pub(super) counted: Measured,
    pub(super) counts: Counts,
    /// Segments that the senders retransmitted in both transfers.
    pub(super) retransmissions: u64,
    /// Segments retransmitted in the transfer with counted instructions.
    pub(super) counted_retransmissions: u64,
}

/// Measures one host.
///
/// # Errors
/// If the network cannot be built, a process ends early, or data is lost or wrong.
pub(super) fn measure(case: Case, plan: &Plan) -> Result<Sample> {
    let folder = Folder::new("menon")?;
    let (timed, first) = transfer(case, plan, &folder, Tool::None)?;
    let (counted, second) = transfer(case, plan, &folder, Tool::Callgrind)?;
    let counts =
        callgrind::read(&folder.file("callgrind.out"), |origin| Category::of(origin) as usize)?;
    Ok(Sample {
        timed,
        counted,
        counts,
        retransmissions: first + second,
        counted_retransmissions: second,
    })
}

/// Simulates the cost of a packet in cycles, with the stack Original on a processor with this `prefetch`.
///
/// # Errors
/// The errors of [`measure`].
pub(super) fn simulate(prefetch: Prefetch, plan: &Plan) -> Result<Counts> {
    let folder = Folder::new("menon")?;
    let case = Case::one_processor(Stack::ORIGINAL);
    let (counted, _) = transfer(case, plan, &folder, Tool::Simulated(prefetch))?;
    let cycles: Counts =
        callgrind::read(&folder.file("callgrind.out"), |origin| Category::of(origin) as usize)?;
    Ok(cycles.map(|cycles| ratio(cycles, counted.packets)))
}

impl Sample {
    /// Returns the instructions per packet.
    pub(super) fn per_packet(&self) -> f64 {
        ratio(self.counts.iter().sum(), self.counted.packets)
    }

    /// Returns the instructions per byte of payload.
    pub(super) fn per_byte(&self) -> f64 {
        ratio(self.counts.iter().sum(), self.counted.bytes)
    }

    /// Returns the retransmitted segments in percent of the transfer's packets. Instructions are counted in
    /// half of the transfer, hence the factor of two.
    pub(super) fn sent_again_percent(&self) -> f64 {
        100.0 * ratio(self.counted_retransmissions as f64, 2 * self.counted.packets)
    }

    /// Returns the payload received per second of processor time, in Gbit.
    pub(super) fn scaled_gbit_per_s(&self) -> f64 {
        rxo_console::numbers::ratio(self.timed.bytes as f64 * 8.0 / 1e9, self.timed.cpu_s)
    }
}

pub(super) fn ratio(sum: f64, count: u64) -> f64 {
    rxo_console::numbers::ratio(sum, count as f64)
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
    const fn bytes(self, case: Case, plan: &Plan) -> u64 {
        match (self, case.traffic) {
            (Self::None, Traffic::Bulk | Traffic::Saturation) => plan.timed_bytes,
            (Self::None, Traffic::Requests) => plan.timed_requests,
            (Self::Callgrind, Traffic::Bulk | Traffic::Saturation) => plan.counted_bytes,
            (Self::Callgrind, Traffic::Requests) => plan.counted_requests,
            // Cache simulation is several times slower again.
            (Self::Simulated(_), _) => plan.counted_bytes / 4,
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
fn transfer(case: Case, plan: &Plan, folder: &Folder, tool: Tool) -> Result<(Measured, u64)> {
    let peer_core = plan.cores.sender;
    let lab = Lab::through_with(LabOptions { peer_core, ..LabOptions::default() })?;
    if case.traffic == Traffic::Saturation {
        return saturate(case, plan, (&lab, folder), tool);
    }
    let ring = (folder.file("card.sock"), MODERATION);
    let card = card::start_for(case.expansion, &lab, ring, plan.cores.sender)?;
    let each = tool.bytes(case, plan) / case.connections as u64;
    let bytes = each * case.connections as u64;
    let mut receiver = receiver(case, plan, (&lab, folder), tool, bytes)?;
    let address = SocketAddr::new(lab.host_address(), PORT);
    let sent = send(case, plan, (&lab, address), each);
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
    plan: &Plan,
    (lab, folder): (&Lab, &Folder),
    tool: Tool,
) -> Result<(Measured, u64)> {
    let (socket, address) = (folder.file("card.sock"), lab.host_address());
    let generator = generator(lab, (socket, case.expansion), address, plan.cores.sender)?;
    let mut receiver = receiver(case, plan, (lab, folder), tool, tool.bytes(case, plan))?;
    let measured = receiver.finish()?;
    generator.finish()?;
    Ok((measured, 0))
}

/// Starts the receiver of `bytes` bytes.
fn receiver(
    case: Case,
    plan: &Plan,
    (lab, folder): (&Lab, &Folder),
    tool: Tool,
    bytes: u64,
) -> Result<Process> {
    let parameters = Parameters {
        socket: folder.file("card.sock"),
        address: lab.host_address(),
        limit: case.stack.aggregation_limit,
        ack_offload: case.stack.ack_offload,
        poll_frames: case.poll_frames,
        connections: case.connections,
        bytes,
        echo: case.traffic == Traffic::Requests,
        threads: case.application == Application::Threads,
        pause_us: tool.pause().as_micros() as u64,
        core: plan.cores.receiver,
    };
    let step = step::arguments("Receiver", &parameters)?;
    Process::start("the receiver", tool.command(folder)?.args(step))
}

/// Starts a bulk transfer, or runs all requests. Returns the transfer, or `None` after requests.
fn send(
    case: Case,
    plan: &Plan,
    (lab, address): (&Lab, SocketAddr),
    each: u64,
) -> Result<Option<Outgoing>> {
    if case.traffic == Traffic::Requests {
        return ask(lab.peer(), address, each).map(|()| None);
    }
    let config = BulkConfig {
        connections: case.connections,
        bytes_per_connection: Some(each),
        sender_core: plan.cores.sender,
        ..BulkConfig::default()
    };
    Ok(Some(Outgoing::start(lab.peer(), address, &config)?))
}

/// Sends `requests` one-byte requests, each after the previous answer.
fn ask(from: &Namespace, address: SocketAddr, requests: u64) -> Result<()> {
    from.run(|| -> Result<()> {
        let mut stream = TcpStream::connect_timeout(&address, PATIENCE)?;
        stream.set_nodelay(true)?;
        stream.set_read_timeout(Some(PATIENCE))?;
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

const PATIENCE: Duration = Duration::from_secs(20);
