//! `rxo run` behaves as `rxo analyze` predicts: captures are sent through it slowly, with gather and hold
//! times scaled alike, so that scheduling does not decide which packets are merged.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, Instant};

use rxo_capture::{Capture, CaptureWriter, Interface, LinkType, Packet, Record};
use rxo_device::FrameSink;
use rxo_driver::DeviceSink;
use rxo_frame::Frame;
use rxo_testbed::{Lab, Namespace};
use rxo_testkit::{Random, seg};
use serde_json::Value;

use crate::Test;
use crate::process::{Rxo, run_within};
use crate::report::Scratch;
use crate::traffic::totals;

pub(crate) const TESTS: &[Test] =
    &[("what_is_predicted_of_a_capture_happens", || what_is_predicted(of_made))];

/// Returns no tests if there are no captures beside the project.
pub(crate) fn long_tests() -> &'static [Test] {
    if captures().is_dir() {
        &[("what_is_predicted_of_many_captures_happens", || what_is_predicted(of_captures))]
    } else {
        &[]
    }
}

fn captures() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/captures")
}

/// Slow-down factors for sending, one for each attempt; a run with late packets is repeated. The slower, the
/// less a delayed process matters.
const SLOWER: [u32; 5] = [100, 100, 200, 400, 800];
/// Longer gaps on the capture's clock are shortened to this: no gather or hold time is as long.
const LONGEST_GAP: Duration = Duration::from_micros(200);
/// The number of windows, which are stretches of a capture.
const WINDOWS: usize = 3;
const PACKETS: usize = 250;
const MTU_FRAME: usize = 1_514;
/// Largest average delay of sent packets, on the capture's clock: well below the gather and hold times. A run
/// with a larger delay is not judged, but repeated more slowly.
const MOST_LATE: Duration = Duration::from_micros(5);
/// Largest relative difference between run and prediction.
const MOST_DIFFERENCE: f64 = 0.15;
/// Time limit of a prediction on a machine that compiles at the same time.
const LONG: Duration = Duration::from_secs(300);

/// A configuration: in the options of `analyze`, and the gather and hold times of `run` on the capture's
/// clock, in microseconds.
struct Manner {
    predicted: &'static str,
    gather_us: u32,
    hold_us: u32,
}

static MANNERS: [Manner; 3] = [
    Manner { predicted: "--poll time:50us", gather_us: 50, hold_us: 0 },
    Manner { predicted: "--poll host:1us --hold 50us", gather_us: 0, hold_us: 50 },
    Manner { predicted: "--poll time:50us --hold 100us", gather_us: 50, hold_us: 100 },
];

impl Manner {
    /// Returns the flags of `run` for a clock `slower` times slower.
    fn flags(&self, slower: u32) -> String {
        let mut flags = String::new();
        if self.gather_us > 0 {
            flags += &format!(" --impair gather={}ms", self.gather_us * slower / 1_000);
        }
        if self.hold_us > 0 {
            flags += &format!(" --hold {}ms", self.hold_us * slower / 1_000);
        }
        flags
    }
}

fn what_is_predicted(windows: fn(&Scratch) -> Vec<Window>) {
    let scratch = Scratch::new("prediction");
    let windows = windows(&scratch);
    let of_capture = |windows| MANNERS.iter().map(move |manner| (windows, manner));
    let pairs: Vec<(&[Window], &Manner)> = windows.chunks(WINDOWS).flat_map(of_capture).collect();
    // Each run mostly waits for its next packet, so they run in parallel.
    let ratios: Vec<Vec<Option<f64>>> = thread::scope(|scope| {
        let all: Vec<_> = pairs
            .iter()
            .map(|&(windows, manner)| scope.spawn(move || judged(windows, manner)))
            .collect();
        all.into_iter().map(|each| each.join().unwrap()).collect()
    });
    for ((windows, manner), ratios) in pairs.into_iter().zip(ratios) {
        let (name, predicted) = (&windows[0].name, manner.predicted);
        println!("{name}, {predicted}: {ratios:.3?} of what was predicted; None was sent too late");
        assert!(is_as_predicted(&ratios), "{name}, {predicted}: {ratios:?}");
    }
}

/// A stretch of a capture: its packets with their times, and the same as a file.
struct Window {
    name: String,
    packets: Vec<(Duration, Vec<u8>)>,
    file: PathBuf,
}

/// Returns the ratios to judge. A delay of `rxo` can merge too much, so after a disagreement everything is
/// sent again at the slowest speeds, and only that counts.
fn judged(windows: &[Window], manner: &Manner) -> Vec<Option<f64>> {
    let ratios = ratios(windows, manner, &SLOWER);
    if is_as_predicted(&ratios) { ratios } else { self::ratios(windows, manner, &SLOWER[3..]) }
}

/// Returns `true` if the median agrees; other load may spoil single values.
fn is_as_predicted(ratios: &[Option<f64>]) -> bool {
    let mut ratios: Vec<f64> = ratios.iter().copied().flatten().collect();
    ratios.sort_by(f64::total_cmp);
    let median = ratios.get(ratios.len() / 2).copied().unwrap_or(1.0);
    (median - 1.0).abs() <= MOST_DIFFERENCE
}

/// Returns measured over predicted packets per aggregate for each window; `None` if the machine was too busy
/// to send in time.
fn ratios(windows: &[Window], manner: &Manner, slower: &[u32]) -> Vec<Option<f64>> {
    let ratio = |window| Some(live(window, manner, slower)? / predict(window, manner.predicted));
    windows.iter().map(ratio).collect()
}

fn predict(window: &Window, manner: &str) -> f64 {
    let namespace = Namespace::new("predict").unwrap();
    let file = window.file.display();
    let line = format!("analyze {file} --json --no-advice --checksum trust {manner}");
    let output = run_within(&namespace, &line, LONG);
    let report: Value = serde_json::from_slice(&output.stdout).unwrap();
    report["outcome"]["packets_per_aggregate"].as_f64().unwrap()
}

/// Returns packets per aggregate in the first run whose packets were sent in time.
fn live(window: &Window, manner: &Manner, slower: &[u32]) -> Option<f64> {
    let mut runs = slower.iter().map(|slower| live_once(window, manner, *slower));
    runs.find(|(late, _)| *late < MOST_LATE).map(|(_, per_aggregate)| per_aggregate)
}

/// Returns the average delay of sent packets, on the capture's clock, and packets per aggregate.
fn live_once(window: &Window, manner: &Manner, slower: u32) -> (Duration, f64) {
    let lab = Lab::through().unwrap();
    let manner = manner.flags(slower);
    let flags =
        format!("--nic packet:wire0 --host tap:rxo0 --stats 250ms --checksum trust{manner}");
    let (mut rxo, _) = Rxo::start(lab.host(), &flags);
    lab.attach_host("rxo0").unwrap();
    let late = thread::scope(|scope| {
        let sending = scope.spawn(|| lab.peer().run(|| send(&window.packets, slower)).unwrap());
        wait_for(&mut rxo, window.packets.len() as u64);
        sending.join().unwrap()
    });
    // By now all gathered and held packets have been delivered.
    thread::sleep(Duration::from_millis(200));
    let totals = totals(rxo);
    assert_eq!(totals["nic_in"]["ring_drops"], 0, "{totals}");
    (late / slower, totals["packets_per_aggregate"].as_f64().unwrap())
}

/// Reads rxo's output until it reports this many received packets.
fn wait_for(rxo: &mut Rxo, packets: u64) {
    let (begin, mut received) = (Instant::now(), 0);
    while received < packets {
        assert!(begin.elapsed() < LONG, "{received} of {packets} packets");
        received += rxo.next()["nic_in"]["packets"].as_u64().unwrap_or(0);
    }
}

/// Sends each packet at its time, multiplied by `slower`. Returns the average delay.
fn send(packets: &[(Duration, Vec<u8>)], slower: u32) -> Duration {
    let mut sink = DeviceSink::packet(Lab::PEER_INTERFACE).unwrap();
    let (begin, mut late) = (Instant::now(), Duration::ZERO);
    for (at, bytes) in packets {
        thread::sleep((*at * slower).saturating_sub(begin.elapsed()));
        late += begin.elapsed().saturating_sub(*at * slower);
        let frame = Frame::new(bytes.as_slice(), rxo_frame::Instant::ZERO);
        sink.transmit(std::iter::once(frame)).unwrap();
    }
    late / packets.len() as u32
}

/// Returns the windows of our generated capture.
fn of_made(scratch: &Scratch) -> Vec<Window> {
    let all = cut(scratch, "made", &made());
    assert!(all.len() >= WINDOWS, "{}", all.len());
    all
}

/// Returns the windows of the captures beside the project.
fn of_captures(scratch: &Scratch) -> Vec<Window> {
    let entries = fs::read_dir(captures()).unwrap();
    let mut paths: Vec<PathBuf> = entries.map(|entry| entry.unwrap().path()).collect();
    paths.retain(|path| path.to_string_lossy().contains(".pcap"));
    paths.sort();
    let name = |path: &Path| path.file_name().unwrap().to_string_lossy().into_owned();
    paths.iter().flat_map(|path| cut(scratch, &name(path), &read(path))).collect()
}

fn read(path: &Path) -> Vec<Record> {
    let mut capture = Capture::open(path).unwrap();
    let mut records = Vec::new();
    // One of the captures lacks its last bytes.
    while capture.read_batch(&mut records, 1_000).is_ok_and(|count| count > 0) {}
    let is_ethernet =
        capture.interfaces().iter().all(|interface| interface.link == LinkType::ETHERNET);
    records.retain(|record| is_ethernet && record.bytes.as_ref().len() <= MTU_FRAME);
    records
}

/// Generates bursts of four senders, with one to twelve segments, and with pauses shorter and longer than the
/// gather times.
fn made() -> Vec<Record> {
    let mut random = Random::new(11);
    let (mut at_ns, mut sent, mut records) = (0, [0_u32; 4], Vec::new());
    while records.len() < 2 * WINDOWS * PACKETS {
        let flow = random.below(4) as u32;
        for _ in 0..=random.below(12) {
            let number = &mut sent[flow as usize];
            let packet = seg().flow(flow).id(*number as u16).seq(1 + *number * 1_400).len(1_400);
            let at = rxo_frame::Instant::from_nanos(at_ns);
            let bytes = packet.bytes();
            let original_bytes = bytes.len() as u32;
            records.push(Record { bytes: bytes.into(), original_bytes, at, ..Record::default() });
            *number += 1;
            at_ns += 4_000 + random.below(20_000);
        }
        at_ns += random.below(120_000);
    }
    records
}

/// Returns [`WINDOWS`] evenly spread stretches; none if nothing in the capture can be coalesced.
fn cut(scratch: &Scratch, name: &str, records: &[Record]) -> Vec<Window> {
    if records.len() < WINDOWS * PACKETS || name.starts_with("ip_fragments") {
        return Vec::new();
    }
    let step = (records.len() - PACKETS) / (WINDOWS - 1);
    (0..WINDOWS)
        .map(|number| {
            let packets = timed(&records[number * step..][..PACKETS]);
            let file = scratch.file(&format!("{name}-{number}.pcapng"));
            write(&file, &packets);
            Window { name: name.to_owned(), packets, file }
        })
        .collect()
}

/// Returns the packets with times relative to the first, with long gaps shortened.
fn timed(records: &[Record]) -> Vec<(Duration, Vec<u8>)> {
    let (mut at, mut last) = (Duration::ZERO, records[0].at);
    let timed = records.iter().map(|record| {
        at += record.at.since(last).min(LONGEST_GAP);
        last = record.at.max(last);
        (at, record.bytes.as_ref().to_vec())
    });
    timed.collect()
}

fn write(file: &Path, packets: &[(Duration, Vec<u8>)]) {
    let mut writer = CaptureWriter::new(File::create(file).unwrap(), "a test").unwrap();
    let ethernet = Interface { link: LinkType::ETHERNET, snap_bytes: None, name: None };
    let interface = writer.add_interface(&ethernet).unwrap();
    for (at, bytes) in packets {
        writer
            .write(&Packet {
                interface,
                at: rxo_frame::Instant::from_nanos(at.as_nanos() as u64),
                original_bytes: bytes.len() as u32,
                pieces: &[bytes],
                direction: None,
                comments: &[],
                custom: &[],
            })
            .unwrap();
    }
    writer.finish().unwrap();
}
