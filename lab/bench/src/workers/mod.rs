//! Workers side by side, each on a thread between simulated queues: what a frame costs each of them, as instructions under
//! callgrind and as time.
//!
//! The queues are in memory, so neither a peer nor the system takes part. Frames are steered to queues by the rule of rxo's
//! devices. Each worker has as much to do as a single one.

mod queue;
mod traffic;

use std::sync::atomic::AtomicBool;
use std::sync::{Barrier, Mutex};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::Result;
use clap::Args;
use rustix::time::{ClockId, clock_gettime};
use rxo::worker::Pause;
use rxo::{Duplex, Policy, Worker, WorkerConfig};
use rxo_demo::machine::Machine;
use rxo_demo::stats::Quartiles;
use rxo_testbed::MachineReading;
use serde::Serialize;

use crate::contender::SEED;
use crate::rounds::{Rounds, Run};

use queue::{Clock, Queue, Sink};
use traffic::Traffic;

/// Options of `rxo-lab bench workers`.
#[derive(Args, Debug)]
pub struct WorkersArgs {
    /// The most workers; by default as many as this process may use processors.
    #[arg(long, value_parser = clap::value_parser!(u32).range(1..=256))]
    most: Option<u32>,
    #[command(flatten)]
    rounds: Rounds,
}

/// The number of workers of a counted row.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Flat(pub(crate) usize);

impl Flat {
    /// All rows, of which the first is compared with the others.
    pub(crate) const ALL: [Self; 5] = [Self(1), Self(2), Self(4), Self(8), Self(16)];

    /// Returns the row's name.
    pub(crate) fn name(self) -> String {
        format!("workers-{}", self.0)
    }

    /// Runs all workers, `passes` times, each inside `counted`. Returns the number of frames in all.
    pub(crate) fn run(self, passes: u32, counted: impl Fn(&mut dyn FnMut()) + Sync) -> usize {
        let traffic = Traffic::new(self.0, COUNTED_FRAMES);
        let plan = Plan { laps: passes as usize, is_copied: false };
        work(&traffic, plan, |run| counted(run));
        traffic.frames() * passes as usize
    }
}

/// Frames of a queue: enough that beginning and ending do not count, and for times that no cache has them.
const COUNTED_FRAMES: usize = 2_048;
const TIMED_FRAMES: usize = 8_192;
/// Laps of a timed turn, and rounds of a run.
const LAPS: usize = 8;
const ROUNDS: u32 = 15;

/// What the workers do.
#[derive(Clone, Copy)]
struct Plan {
    /// How often each queue gives its frames.
    laps: usize,
    /// Whether sinks copy every byte, as into a guest's memory.
    is_copied: bool,
}

/// The figures of one number of workers.
#[derive(Clone, Debug, Serialize)]
struct Row {
    /// The number of workers.
    workers: usize,
    /// `true` if each byte is copied once, `false` if only headers are read.
    is_copied: bool,
    /// Processor time of a worker for a frame, in nanoseconds: the median of all rounds, and the quartiles.
    ns_per_frame: [f64; 3],
    /// Frames a second of all workers, as a multiple of those of one. Says nothing on a machine with much else to do.
    times_one: f64,
}

/// All figures of a run.
#[derive(Clone, Debug, Serialize)]
struct Figures {
    /// The machine that they are of.
    machine: String,
    /// Bytes of a frame.
    frame_bytes: usize,
    /// Bytes of payload of a frame.
    payload_bytes: usize,
    /// All numbers of workers, reading headers and copying.
    rows: Vec<Row>,
    /// Bytes a second that threads copy from memory to memory, one thread and as many as there are processors.
    copied_bytes_a_second: [f64; 2],
    /// The share of the processors that others used meanwhile, 0 to 1.
    others: f64,
}

/// Measures, and prints the figures.
pub(crate) fn run(args: &WorkersArgs) -> Result<()> {
    let cores = thread::available_parallelism().map_or(1, usize::from);
    let most = args.most.map_or(cores, |most| most as usize);
    let run = args.rounds.begin(ROUNDS);
    let figures = measured(most, &run)?;
    println!("{}", serde_json::to_string_pretty(&figures)?);
    Ok(())
}

/// Measures 1, 2, 4 … workers, up to `most`, in turns.
fn measured(most: usize, run: &Run) -> Result<Figures> {
    let counts: Vec<_> =
        std::iter::successors(Some(1), |n| Some(n * 2)).take_while(|n| *n <= most).collect();
    let traffic: Vec<_> = counts.iter().map(|n| Traffic::new(*n, TIMED_FRAMES)).collect();
    let mut cases: Vec<_> =
        [false, true].into_iter().flat_map(|is| (0..counts.len()).map(move |n| (is, n))).collect();
    let before = MachineReading::now()?;
    let name = |(_, n): &(bool, usize)| format!("{} workers", counts[*n]);
    let timings = run.measure(&mut cases, name, |(is_copied, n)| {
        let plan = Plan { laps: LAPS, is_copied: *is_copied };
        let (elapsed, cpu) = timed(&traffic[*n], plan);
        let frames = (TIMED_FRAMES * LAPS) as f64;
        let each = |time: Duration| time.as_nanos() as f64 / frames;
        Ok((each(elapsed), each(cpu) / counts[*n] as f64))
    })?;
    let threads = |threads: &usize| format!("{threads} threads that copy");
    let copies = run.measure(&mut [1, most], threads, |threads| Ok(copy_rate(*threads)))?;
    let used = MachineReading::now()?.since(&before);
    let all = (used.elapsed * used.cores).as_secs_f64();
    let others = ((used.others + used.stolen).as_secs_f64() / all).min(1.0);
    let row = |((is_copied, n), timings): (&(bool, usize), &Vec<(f64, f64)>)| {
        let Quartiles { low, median, high } = Quartiles::over(timings, |(_, cpu)| *cpu);
        let elapsed = Quartiles::over(timings, |(elapsed, _)| *elapsed).median;
        (*is_copied, counts[*n], [median, low, high], elapsed)
    };
    let rows: Vec<_> = cases.iter().zip(&timings).map(row).collect();
    let of_one = |is_copied| rows.iter().find(|row| row.0 == is_copied).map_or(0.0, |row| row.3);
    let Machine { cpu, cores, kernel, .. } = Machine::read("not needed");
    Ok(Figures {
        machine: format!("{cpu}, {cores} cores, Linux {kernel}"),
        frame_bytes: traffic::FRAME_BYTES,
        payload_bytes: traffic::PAYLOAD_BYTES,
        rows: rows
            .iter()
            .map(|&(is_copied, workers, ns_per_frame, elapsed)| Row {
                workers,
                is_copied,
                ns_per_frame,
                times_one: workers as f64 * of_one(is_copied) / elapsed,
            })
            .collect(),
        copied_bytes_a_second: [0, 1].map(|n| Quartiles::of(copies[n].iter().copied()).median),
        others,
    })
}

/// Returns the time from the first worker's begin to the last one's end, and the processor time of all.
fn timed(traffic: &Traffic, plan: Plan) -> (Duration, Duration) {
    let span = Mutex::new((None::<Instant>, Duration::ZERO));
    work(traffic, plan, |run| {
        let (begun, cpu) = (Instant::now(), thread_time());
        run();
        let mut span = span.lock().expect("no worker panics with it");
        span.0 = Some(span.0.map_or(begun, |first| first.min(begun)));
        span.1 += thread_time() - cpu;
    });
    let (begun, cpu) = span.into_inner().expect("no worker panics with it");
    (begun.map_or(Duration::ZERO, |begun| begun.elapsed()), cpu)
}

/// Returns the processor time of this thread.
fn thread_time() -> Duration {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    Duration::new(time.tv_sec.unsigned_abs(), time.tv_nsec as u32)
}

/// Runs a worker for each queue, on a thread of its own, inside `around`.
fn work(traffic: &Traffic, plan: Plan, around: impl Fn(&mut dyn FnMut()) + Sync) {
    let (ready, around) = (Barrier::new(traffic.queues()), &around);
    thread::scope(|scope| {
        for n in 0..traffic.queues() {
            let (ready, queue) = (&ready, Queue::new(traffic.queue(n), plan.laps));
            scope.spawn(move || {
                let (stop, expected) = (AtomicBool::new(false), queue.left());
                let mut config = WorkerConfig {
                    pause: Pause::NEVER,
                    overload: None,
                    ..WorkerConfig::new(Policy::linux_gro())
                };
                (config.engine.seed, config.engine.trust_checksums) = (SEED, true);
                let nic = Duplex { source: queue, sink: Sink::new(false) };
                let host = Duplex { source: Queue::new(&[], 0), sink: Sink::new(plan.is_copied) };
                let mut worker = Worker::new(nic, host, config).expect("they fit");
                ready.wait();
                around(&mut || {
                    let ended = worker.run(&mut Clock::new(&stop), &stop, |_| {});
                    ended.expect("memory does not fail");
                });
                let reading = worker.reading();
                assert_eq!(reading.host_out.frames, expected as u64, "each frame is delivered");
                assert!(reading.engine.aggregates > 0, "frames are coalesced");
            });
        }
    });
}

/// Bytes a second of processor time that so many threads copy together, between blocks that no cache has.
fn copy_rate(threads: usize) -> f64 {
    const BLOCK_BYTES: usize = 64 << 20;
    let ready = Barrier::new(threads);
    let rates = thread::scope(|scope| {
        let copies: Vec<_> = (0..threads)
            .map(|_| {
                scope.spawn(|| {
                    let (from, mut to) = (vec![1_u8; BLOCK_BYTES], vec![2_u8; BLOCK_BYTES]);
                    ready.wait();
                    let begun = thread_time();
                    to.copy_from_slice(std::hint::black_box(&from));
                    std::hint::black_box(&to);
                    BLOCK_BYTES as f64 / (thread_time() - begun).as_secs_f64()
                })
            })
            .collect();
        copies.into_iter().map(|copy| copy.join().expect("it copies")).collect::<Vec<_>>()
    });
    rates.iter().sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn workers_deliver_every_frame_and_have_figures() {
        let figures = measured(2, &Run::of(1)).unwrap();
        assert_eq!(figures.rows.len(), 4);
        assert!(figures.rows.iter().all(|row| row.ns_per_frame[0] > 0.0 && row.times_one > 0.0));
    }

    #[test]
    fn counted_rows_have_the_frames_of_all_workers() {
        assert_eq!(Flat(3).run(2, |run| run()), 3 * 2 * COUNTED_FRAMES);
    }
}
