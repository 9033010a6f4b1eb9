//! `rxo-lab bench tun`: times writes of many packets into a real TUN, of rxo and of tun-rs.
//!
//! The table of `engine` has no device: there a delivery costs nothing. Here the system takes each delivery, copies it, and
//! drops it after the route look-up, in a network without routes, so the figure has no TCP in it.
//!
//! Packets are copied into buffers before each write, as a cipher writes them, which is not timed. Time is that of this
//! thread's processor, so other programs do not count. All variants take turns in each round, and ratios are those of turns
//! next to each other.

use anyhow::{Context, Result};
use clap::Args;
use rxo::io::PacketWriter;
use rxo_demo::stats::Quartiles;
use rxo_driver::{DeviceSink, SubmitMode, Tap, TapKind, clock};
use rxo_testbed::Namespace;
use serde::Serialize;
use tun_rs::{DeviceBuilder, GROTable, SyncDevice};

use crate::rounds::{Rounds, Rows, Run};

/// Options of `rxo-lab bench tun`.
#[derive(Args, Debug)]
pub struct TunArgs {
    #[command(flatten)]
    rounds: Rounds,
}

const ROUNDS: u32 = 31;
const FLOWS: [u32; 3] = [1, 8, 32];
/// Packets of a turn.
const PACKETS: usize = 8_192;
const PAYLOAD: usize = 1_400;
/// Space before each packet that tun-rs needs for its header, in bytes.
const OFFSET: usize = 64;
/// Packets in buffers at a time; also the batch that tun-rs recommends.
const LOADED: usize = 128;
/// rxo's variants: name, packets until a flush, and the way of its writes. A socket gives up to 1,024 in trains.
const OURS: [(&str, usize, SubmitMode); 4] = [
    ("rxo, flushed after 128", LOADED, SubmitMode::Writev),
    ("rxo, flushed after 128, io_uring", LOADED, SubmitMode::Uring),
    ("rxo, flushed after 1,024", 1_024, SubmitMode::Writev),
    ("rxo, flushed after 1,024, io_uring", 1_024, SubmitMode::Uring),
];

/// The result of one variant with one number of flows.
#[derive(Debug, Serialize)]
struct Row {
    flows: u32,
    variant: &'static str,
    ns_per_packet: Quartiles,
    /// The median of the ratios to tun-rs in the same round.
    ratio: f64,
}

/// Measures all variants, and prints the report.
///
/// # Errors
/// If the network or a TUN cannot be made, or a packet is not written.
pub(crate) fn run(args: &TunArgs) -> Result<()> {
    rxo_testbed::become_root_in_user_namespace()?;
    // A run belongs to the thread that measures, which is another one in a namespace.
    Namespace::new("tun")?.run(|| {
        let run = args.rounds.begin(ROUNDS);
        run.print(&Rows { rows: measure(&run)? })
    })?
}

/// A writer into a TUN that is timed.
enum Writer<'t> {
    Theirs(Box<Theirs<'t>>),
    Ours(Box<Ours>, &'static str),
}

impl Writer<'_> {
    fn name(&self) -> &'static str {
        match self {
            Self::Theirs(_) => "tun-rs, batches of 128",
            Self::Ours(_, name) => name,
        }
    }

    /// Writes all packets. Returns nanoseconds per packet.
    fn write(&mut self, packets: &[Vec<u8>]) -> Result<f64> {
        match self {
            Self::Theirs(theirs) => theirs.write(packets),
            Self::Ours(ours, _) => ours.write(packets),
        }
    }
}

fn measure(run: &Run) -> Result<Vec<Row>> {
    let theirs = DeviceBuilder::new().name("theirs").offload(true).build_sync()?;
    rxo_driver::Interface::find("theirs")?.set_up(true)?;
    let tap = Tap::open("ours", TapKind::Tun)?;
    tap.interface().set_up(true)?;
    let mut rows = Vec::new();
    for flows in FLOWS {
        let packets: Vec<_> = (0..PACKETS as u32).map(|n| packet(n, flows)).collect();
        let mut writers = vec![Writer::Theirs(Box::new(Theirs::new(&theirs)))];
        for (name, batch, mode) in OURS {
            writers.push(Writer::Ours(Box::new(Ours::new(&tap, batch, mode)?), name));
        }
        let name = |writer: &Writer<'_>| format!("{flows} flows, {}", writer.name());
        let turns = run.measure(&mut writers, name, |writer| writer.write(&packets))?;
        let row =
            |(writer, ns): (&Writer<'_>, &Vec<f64>)| Row::of(flows, writer.name(), ns, &turns[0]);
        rows.extend(writers.iter().zip(&turns).map(row));
    }
    Ok(rows)
}

/// Creates the packet number `n` of all flows, which take turns.
fn packet(n: u32, flows: u32) -> Vec<u8> {
    let (flow, index) = (n % flows, n / flows);
    let segment = rxo_testkit::seg().raw_ip().flow(flow).id(index as u16);
    segment.seq(1 + index * PAYLOAD as u32).len(PAYLOAD).bytes()
}

/// Adds the processor time of `work` to `total`, in nanoseconds.
fn timed<T>(total: &mut u64, work: impl FnOnce() -> T) -> T {
    let start = clock::thread_cpu_ns();
    let done = work();
    *total += clock::thread_cpu_ns() - start;
    done
}

/// tun-rs with buffers that have room for its aggregates.
struct Theirs<'t> {
    tun: &'t SyncDevice,
    table: GROTable,
    buffers: Vec<Vec<u8>>,
}

impl<'t> Theirs<'t> {
    fn new(tun: &'t SyncDevice) -> Self {
        let buffer = || Vec::with_capacity(2 * OFFSET + (1 << 16));
        let buffers = std::iter::repeat_with(buffer).take(LOADED).collect();
        Self { tun, table: GROTable::new(), buffers }
    }

    /// Writes all packets. Returns nanoseconds per packet.
    fn write(&mut self, packets: &[Vec<u8>]) -> Result<f64> {
        let mut ns = 0;
        for packets in packets.chunks(LOADED) {
            for (buffer, packet) in self.buffers.iter_mut().zip(packets) {
                buffer.clear();
                buffer.resize(OFFSET, 0);
                buffer.extend_from_slice(packet);
            }
            let (tun, table, buffers) = (self.tun, &mut self.table, &mut self.buffers);
            timed(&mut ns, || tun.send_multiple(table, buffers, OFFSET)).context("tun-rs")?;
        }
        Ok(ns as f64 / packets.len() as f64)
    }
}

/// rxo's writer before the sink of a TUN. It verifies checksums, as tun-rs does.
struct Ours {
    writer: PacketWriter<DeviceSink>,
    batch: usize,
}

impl Ours {
    fn new(tap: &Tap, batch: usize, mode: SubmitMode) -> Result<Self> {
        Ok(Self { writer: PacketWriter::new(tap.sink(mode)?, batch)?, batch })
    }

    /// Writes all packets. Returns nanoseconds per packet.
    fn write(&mut self, packets: &[Vec<u8>]) -> Result<f64> {
        let (mut ns, mut loaded) = (0, Vec::with_capacity(LOADED));
        for (number, packets) in (1..).zip(packets.chunks(LOADED)) {
            for packet in packets {
                let mut buffer = self.writer.buffer()?;
                buffer.set_len(packet.len());
                buffer.copy_from_slice(packet);
                loaded.push(buffer);
            }
            let is_last = (number * LOADED).is_multiple_of(self.batch);
            timed(&mut ns, || {
                loaded.drain(..).for_each(|packet| self.writer.push(packet));
                if is_last { self.writer.flush() } else { Ok(()) }
            })?;
        }
        Ok(ns as f64 / packets.len() as f64)
    }
}

impl Row {
    fn of(flows: u32, variant: &'static str, turns: &[f64], theirs: &[f64]) -> Self {
        let ratios = turns.iter().zip(theirs).map(|(ours, theirs)| ours / theirs);
        let ratio = Quartiles::of(ratios).median;
        Self { flows, variant, ns_per_packet: Quartiles::of(turns.iter().copied()), ratio }
    }
}
