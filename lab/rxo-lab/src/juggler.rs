//! `rxo-lab juggler`: how far Juggler batches while packets are reordered (Geng et al., EuroSys 2016), on
//! virtual time.
//!
//! The paper's experiment on `inseq_timeout`: one flow at 10 Gb/s, each packet on one of two paths at random,
//! the second longer by 0 to 750 µs. Batching is the number of packets in a delivery. The paper's values are
//! those that its authors published as data with their implementation (github.com/gengyl08/packet_reordering,
//! `experiments/inseq_timeout/measurements.txt`), from which their script draws the figure.

use core::time::Duration;

use anyhow::Result;
use rxo_coalesce::Config;
use rxo_coalesce::rules::{Juggler, RuleEngine};
use rxo_console::output;
use rxo_console::table::Table;
use rxo_frame::{ChecksumStatus, Frame, Instant};
use rxo_testkit::{Random, seg};
use serde::Serialize;

use crate::flags::JugglerFlags;
use crate::statement::Statement;

/// The values of `inseq_timeout`, and the delays of the second path, in microseconds.
const INSEQ_US: [u64; 6] = [0, 20, 40, 60, 80, 100];
const DELAYS_US: [u64; 4] = [0, 250, 500, 750];
/// The batching that the authors measured, by delay and `inseq_timeout`.
const AUTHORS: [[f64; 6]; 4] = [
    [23.6485, 27.0601, 41.0870, 44.0211, 43.1092, 44.0463],
    [23.5151, 24.9399, 39.6231, 42.6560, 42.6400, 42.6411],
    [24.7091, 26.5051, 39.0961, 42.5693, 42.7991, 42.7427],
    [29.4138, 31.3901, 40.3898, 42.5050, 42.5891, 42.6340],
];
/// The `ofo_timeout` of the experiment.
const OFO: Duration = Duration::from_millis(1);

const PACKETS: u32 = 20_000;
const PAYLOAD: usize = 1_448;
/// The time of a packet of 1,538 bytes, with preamble and gap, at 10 Gb/s.
const PACKET_NS: f64 = 1_230.4;
/// The segments that begin a transfer: if the first ones take the longer path, later ones are delivered
/// before them.
const BEGINNING: u32 = 10;
/// The greatest deviation from the authors' values for which a statement holds.
const TOLERANCE: f64 = 0.15;

/// The result for one delay of the second path.
#[derive(Debug, Serialize)]
struct Row {
    delay_us: u64,
    /// Packets per delivery, here and as the authors measured it, by `inseq_timeout`.
    batching: Vec<f64>,
    authors: [f64; 6],
    /// Segments that were delivered behind later ones, of all runs together.
    late_segments: u64,
    /// Those of them that were not among the first [`BEGINNING`] of their transfer.
    late_after_beginning: u64,
}

/// Runs the experiment and prints its table and statements.
///
/// # Errors
/// If the output cannot be written.
pub(crate) fn run(flags: &JugglerFlags) -> Result<()> {
    let frames: Vec<Vec<u8>> = (0..PACKETS)
        .map(|n| {
            let seq = n.wrapping_mul(PAYLOAD as u32);
            seg().ts(1, 1).seq(seq).len(PAYLOAD).id(n as u16).frame().bytes
        })
        .collect();
    let mut rows = Vec::new();
    for (delay_us, authors) in DELAYS_US.into_iter().zip(AUTHORS) {
        let mut row = Row {
            delay_us,
            batching: Vec::new(),
            authors,
            late_segments: 0,
            late_after_beginning: 0,
        };
        for inseq_us in INSEQ_US {
            let (batching, late) = transfer(&frames, delay_us, inseq_us)?;
            row.batching.push(batching);
            row.late_segments += late.0;
            row.late_after_beginning += late.1;
        }
        rows.push(row);
    }
    let statements = statements(&rows);
    if flags.json {
        return output::json_document(&serde_json::json!({
            "inseq_timeout_us": INSEQ_US, "rows": rows, "statements": statements,
        }));
    }
    let said: Vec<String> = statements.iter().map(Statement::text).collect();
    output::text(&format!("{}\n\n{}", table(&rows), said.join("\n")))
}

/// Passes the packets over both paths to Juggler. Returns the packets per delivery, and the number of segments
/// that were delivered behind later ones: all, and those after the beginning.
fn transfer(frames: &[Vec<u8>], delay_us: u64, inseq_us: u64) -> Result<(f64, (u64, u64))> {
    let mut random = Random::new(delay_us + inseq_us);
    let delay_ns = |slow: bool| if slow { delay_us * 1_000 } else { 0 };
    let mut arrivals: Vec<(u64, usize)> = (0..frames.len())
        .map(|n| ((n as f64 * PACKET_NS) as u64 + delay_ns(random.next() % 2 == 0), n))
        .collect();
    arrivals.sort_unstable();
    let mut rules = Juggler::new();
    (rules.inseq_timeout, rules.ofo_timeout) = (Duration::from_micros(inseq_us), OFO);
    rules.policy.max_hold = 10 * OFO;
    let config = Config::new(rules.policy, 1);
    let mut engine = RuleEngine::new(rules, config)?;
    // The receiver polls often enough to find as many packets as the authors' does without a timeout.
    let poll_ns = (AUTHORS[0][0] * PACKET_NS) as u64;
    let (mut deliveries, mut late, mut furthest) = (0_u32, (0, 0), 0);
    let (mut batch, mut next, mut now_ns) = (Vec::new(), 0, 0);
    while next < arrivals.len() || !engine.is_idle() {
        now_ns += poll_ns;
        while let Some((at_ns, n)) = arrivals.get(next).filter(|(at_ns, _)| *at_ns <= now_ns) {
            let frame = Frame::new(frames[*n].as_slice(), Instant::from_nanos(*at_ns));
            batch.push(Frame { checksum: ChecksumStatus::Verified, ..frame });
            next += 1;
        }
        engine.poll(&mut batch, Instant::from_nanos(now_ns), |delivered| {
            for delivery in delivered.iter() {
                deliveries += 1;
                for seq in delivery.frames().map(|frame| seq_of(frame.bytes())) {
                    late.0 += u64::from(seq < furthest);
                    late.1 += u64::from(seq < furthest && seq >= BEGINNING * PAYLOAD as u32);
                    furthest = furthest.max(seq);
                }
            }
        });
    }
    Ok((f64::from(PACKETS) / f64::from(deliveries), late))
}

/// Returns the sequence number of a segment over Ethernet and IPv4. The transfer is too short for it to wrap.
fn seq_of(frame: &[u8]) -> u32 {
    frame.get(38..42).and_then(<[u8]>::first_chunk).map_or(0, |seq| u32::from_be_bytes(*seq))
}

fn statements(rows: &[Row]) -> Vec<Statement> {
    let mut all = vec![Statement::calibration(
        "without reordering and without a timeout a delivery has 23.6 packets",
        format!("{:.1}; the receiver's polls are as long as that takes.", rows[0].batching[0]),
    )];
    for row in rows {
        let pairs = row.batching.iter().zip(row.authors);
        let worst = pairs.map(|(ours, theirs)| (ours / theirs - 1.0).abs()).fold(0.0, f64::max);
        let holds = worst <= TOLERANCE;
        let ours = format!(
            "with {} µs between the paths at most {:.0} % from the authors' values; {} late segments.",
            row.delay_us,
            100.0 * worst,
            row.late_segments
        );
        let claim = "batching grows with inseq_timeout until an aggregate is full, however far the \
                     paths differ";
        let why =
            || "A TCP that slows down, as theirs did (9.27 Gb/s), is not modelled.".to_owned();
        all.push(Statement::new(claim, Some(holds), ours).unless_it_holds(why));
    }
    let sum = |of: fn(&Row) -> u64| rows.iter().map(of).sum::<u64>();
    let (late, later) = (sum(|row| row.late_segments), sum(|row| row.late_after_beginning));
    let segments = PACKETS as usize * INSEQ_US.len() * rows.len();
    let claim = "with an ofo_timeout of 1 ms at most 4 segments a second reach TCP out of order";
    let ours = format!(
        "{late} of {segments} segments, {later} of them not among the first {BEGINNING} of a transfer."
    );
    all.push(Statement::new(claim, Some(later == 0), ours));
    all
}

fn table(rows: &[Row]) -> String {
    let head: Vec<String> = INSEQ_US.iter().map(|us| format!("{us} us")).collect();
    let mut columns = vec!["packets per delivery by inseq_timeout"];
    columns.extend(head.iter().map(String::as_str));
    let mut table = Table::new(&columns);
    for row in rows {
        for (name, values) in [("rxo", &row.batching[..]), ("authors", &row.authors[..])] {
            let cells = values.iter().map(|value| format!("{value:.1}"));
            table
                .row([format!("paths {} us apart, {name}", row.delay_us)].into_iter().chain(cells));
        }
    }
    table.render()
}
