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
use rxo_frame::{ChecksumStatus, Frame, Instant};
use rxo_testkit::{Random, seg};
use serde::Serialize;

use crate::flags::{Part, RunFlags};
use crate::study::{Study, Table, by_fields};

pub(crate) const PARTS: &[Part] = &[Part::counted("batching")];

/// A delay of the second path and a value of `inseq_timeout`, both in microseconds.
#[derive(Clone, Copy, Serialize)]
struct Case {
    delay_us: u64,
    inseq_us: u64,
}

/// The deliveries of one transfer.
#[derive(Serialize)]
struct Batching {
    packets_per_delivery: f64,
    /// Segments that were delivered behind later ones.
    late_segments: u64,
    /// Those of them that were not among the first [`BEGINNING`] of their transfer.
    late_after_beginning: u64,
}

const INSEQ_US: [u64; 6] = [0, 20, 40, 60, 80, 100];
const DELAYS_US: [u64; 4] = [0, 250, 500, 750];
/// The batching that the authors measured with paths of equal length and without a timeout.
const AUTHORS_POLL: f64 = 23.6485;
/// The `ofo_timeout` of the experiment.
const OFO: Duration = Duration::from_millis(1);

const PACKETS: u32 = 20_000;
const PAYLOAD: usize = 1_448;
/// The time of a packet of 1,538 bytes, with preamble and gap, at 10 Gb/s.
const PACKET_NS: f64 = 1_230.4;
/// The segments that begin a transfer: if the first ones take the longer path, later ones are delivered
/// before them.
const BEGINNING: u32 = 10;

/// Makes the experiment from the flags.
pub(crate) fn study(flags: &RunFlags) -> Result<Study> {
    flags.chosen(PARTS)?;
    let frames: Vec<Vec<u8>> = (0..PACKETS)
        .map(|n| {
            let seq = n.wrapping_mul(PAYLOAD as u32);
            seg().ts(1, 1).seq(seq).len(PAYLOAD).id(n as u16).frame().bytes
        })
        .collect();
    let cases = DELAYS_US.iter().flat_map(|us| INSEQ_US.map(|inseq| (*us, inseq)));
    let cases = cases.map(|(delay_us, inseq_us)| Case { delay_us, inseq_us });
    let table = Table::counted(
        "batching",
        cases.collect(),
        by_fields,
        move |case| transfer(&frames, case),
        ("packets_per_delivery", "packets a delivery"),
    );
    Ok(Study::of("juggler", vec![Box::new(table)]))
}

/// Passes the packets over both paths to Juggler.
fn transfer(frames: &[Vec<u8>], Case { delay_us, inseq_us }: Case) -> Result<Batching> {
    let mut random = Random::new(delay_us + inseq_us);
    let delay_ns = |slow: bool| if slow { delay_us * 1_000 } else { 0 };
    let mut arrivals: Vec<(u64, usize)> = (0..frames.len())
        .map(|n| ((n as f64 * PACKET_NS) as u64 + delay_ns(random.next().is_multiple_of(2)), n))
        .collect();
    arrivals.sort_unstable();
    let mut rules = Juggler::new();
    (rules.inseq_timeout, rules.ofo_timeout) = (Duration::from_micros(inseq_us), OFO);
    rules.policy.max_hold = 10 * OFO;
    let config = Config::new(rules.policy, 1);
    let mut engine = RuleEngine::new(rules, config)?;
    // The receiver polls often enough to find as many packets as the authors' does without a timeout.
    let poll_ns = (AUTHORS_POLL * PACKET_NS) as u64;
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
    Ok(Batching {
        packets_per_delivery: f64::from(PACKETS) / f64::from(deliveries),
        late_segments: late.0,
        late_after_beginning: late.1,
    })
}

/// Returns the sequence number of a segment over Ethernet and IPv4. The transfer is too short for it to wrap.
fn seq_of(frame: &[u8]) -> u32 {
    frame.get(38..42).and_then(<[u8]>::first_chunk).map_or(0, |seq| u32::from_be_bytes(*seq))
}
