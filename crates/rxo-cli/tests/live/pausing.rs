//! A reader of standard output that pauses: the network and the end of the run do not wait for it.

use std::io::{BufRead, BufReader, PipeReader, Read};
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use rxo_testbed::traffic::{BulkConfig, BulkTransfer};
use rxo_testbed::{Lab, LabOptions, Offload};
use serde_json::Value;

use crate::Test;
use crate::process::{signal, wait_until};
use crate::setup::SetUp;

pub(crate) const TESTS: &[Test] = &[
    ("a_reader_that_pauses_stops_no_traffic", a_reader_that_pauses),
    ("a_reader_that_never_comes_back_does_not_stop_the_end", a_reader_that_never_comes_back),
];

/// Starts a run with a pipe as its output, and a transfer through it. Reads the first line: before it,
/// addresses are still being moved to the TAP.
fn start(lab: &Lab) -> (Child, PipeReader, BulkTransfer) {
    let (reader, writer) = std::io::pipe().unwrap();
    // One page, the minimum: a few lines fill it.
    rustix::pipe::fcntl_setpipe_size(&writer, 4_096).unwrap();
    let mut command = Command::new(env!("CARGO_BIN_EXE_rxo"));
    let flags = format!("run {} --json --stats 100ms", SetUp::TakeOver.flags());
    command.args(flags.split_whitespace()).stdin(Stdio::null()).stdout(writer);
    command.stderr(Stdio::piped());
    let child = lab.host().run(|| command.spawn()).unwrap().unwrap();
    drop(command);
    // One byte at a time, so that the rest stays unread.
    let mut reader = BufReader::with_capacity(1, reader);
    assert!(reader.read_line(&mut String::new()).unwrap() > 0, "rxo did not start");
    // Bytes must flow continuously, not at the maximum rate.
    let limit_bytes_per_s = Some(10_000_000);
    let config = BulkConfig { connections: 2, limit_bytes_per_s, ..BulkConfig::default() };
    let transfer =
        BulkTransfer::start(lab.peer(), lab.host(), lab.host_address(), &config).unwrap();
    (child, reader.into_inner(), transfer)
}

/// Lets intervals pass, ten a second, while bytes cross. Pipe and queue are full after four intervals.
fn let_intervals_pass(transfer: &BulkTransfer, time: Duration) {
    let begun = Instant::now();
    while begun.elapsed() < time {
        let last = transfer.received_bytes();
        thread::sleep(Duration::from_millis(500));
        wait_until("bytes cross", || transfer.received_bytes() > last);
    }
}

fn a_reader_that_pauses() {
    let lab = SetUp::TakeOver.lab(LabOptions::default());
    let (mut child, mut reader, transfer) = start(&lab);
    let_intervals_pass(&transfer, Duration::from_secs(8));
    assert!(transfer.stop().unwrap().is_intact());
    signal("TERM", child.id());
    let mut text = String::new();
    reader.read_to_string(&mut text).unwrap();
    assert_eq!(child.wait().unwrap().code(), Some(0));
    let lines: Vec<Value> = text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let of =
        |kind: &str| -> Vec<&Value> { lines.iter().filter(|line| line["kind"] == kind).collect() };
    let skipped: u64 = of("skipped").iter().map(|line| line["intervals"].as_u64().unwrap()).sum();
    assert!(skipped > 5, "{skipped} left out: {text}");
    let all = of("interval").len() as u64 + skipped;
    let totals = lines.last().unwrap();
    assert_eq!(totals["kind"], "totals");
    // Each interval was printed or counted: their number matches the elapsed time.
    let time = totals["elapsed_s"].as_f64().unwrap();
    assert!(all as f64 <= time * 10.0 + 1.0 && all > 20, "{all} intervals in {time} s");
}

fn a_reader_that_never_comes_back() {
    let lab = SetUp::TakeOver.lab(LabOptions::default());
    let nic = lab.host().interface(Lab::NIC);
    nic.set_offload(Offload::GenericReceive, true).unwrap();
    let (mut child, reader, transfer) = start(&lab);
    let_intervals_pass(&transfer, Duration::from_secs(1));
    let unread = || rustix::io::ioctl_fionread(&reader).unwrap();
    wait_until("the pipe has no room for the totals", || unread() > 3_000);
    drop(transfer);
    signal("TERM", child.id());
    // The network is given back before the run waits for any reader.
    wait_until("the TAP is gone", || !lab.host().interface("rxo0").exists());
    wait_until("the nic is as it was", || nic.offload(Offload::GenericReceive).unwrap());
    assert_eq!(child.wait().unwrap().code(), Some(3));
    let mut said = String::new();
    child.stderr.take().unwrap().read_to_string(&mut said).unwrap();
    assert!(said.contains("standard output was not read for 5 s"), "{said}");
    drop(reader);
}
