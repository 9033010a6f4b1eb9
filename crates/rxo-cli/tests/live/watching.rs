//! `rxo analyze --live`: the packets of a known mix of traffic on a veth, against the counters of their sender.

use std::io::{BufRead, BufReader};
use std::process::{Child, Command};
use std::thread;

use rxo_testbed::{KernelGro, Lab, LabOptions, Namespace, Offload};
use serde_json::Value;

use crate::Test;
use crate::process::{command, run, signal, spawn};
use crate::traffic::{transfer, udp_transfer};

pub(crate) const TESTS: &[Test] = &[
    ("a_live_interface_shows_what_was_sent", a_live_interface_shows_what_was_sent),
    ("merged_frames_of_a_live_interface_are_segmented", merged_frames_are_segmented),
    ("a_live_interface_is_watched_for_its_time", a_live_interface_is_watched_for_its_time),
    ("a_live_interface_that_cannot_be_watched", an_interface_that_cannot_be_watched),
];

const COSTS: &str = "--costs packet=800ns,byte=0.3ns,coalesce=30ns,device=100ns";
/// The datagrams of the mix, which no greeting or ACK resembles in size.
const DATAGRAMS: u32 = 240;

/// Starts to watch the host's interface of `lab`, and returns when it is watched.
fn start(lab: &Lab, time: &str) -> (Child, thread::JoinHandle<String>) {
    let line = format!("analyze --live {} --time {time} --json {COSTS}", Lab::HOST_INTERFACE);
    let mut child = spawn(lab.host(), &line);
    let mut said = BufReader::new(child.stderr.take().unwrap());
    let mut first = String::new();
    said.read_line(&mut first).unwrap();
    assert!(first.contains("watching eth0 for"), "{first}");
    // Both pipes are read, so that neither fills up.
    let rest =
        thread::spawn(move || said.lines().map_while(Result::ok).collect::<Vec<_>>().join("\n"));
    (child, rest)
}

/// Waits for the report.
fn report(child: Child, rest: thread::JoinHandle<String>, code: i32) -> Value {
    let output = child.wait_with_output().unwrap();
    let said = rest.join().unwrap();
    assert_eq!(output.status.code(), Some(code), "{said}");
    serde_json::from_slice(&output.stdout).unwrap()
}

fn sent_frames(lab: &Lab) -> u64 {
    lab.peer().interface(Lab::PEER_INTERFACE).counters().unwrap().sent_frames
}

/// Watches a mix of TCP and UDP. Returns the report and the number of frames that the peer sent meanwhile.
fn watched_mix(lab: &Lab) -> (Value, u64) {
    let before = sent_frames(lab);
    let (child, rest) = start(lab, "60min");
    transfer(lab.peer(), lab.host(), lab.host_address(), 2, 2_000_000);
    transfer(lab.peer(), lab.host(), Lab::HOST_ADDRESSES.1.into(), 1, 1_000_000);
    udp_transfer(lab.peer(), lab.host(), lab.host_address(), DATAGRAMS);
    let sent = sent_frames(lab) - before;
    signal("INT", child.id());
    (report(child, rest, 3), sent)
}

fn count(report: &Value, path: &str) -> u64 {
    report.pointer(path).and_then(Value::as_u64).unwrap_or_else(|| panic!("{path} of {report}"))
}

/// Checks the counts of the mix, and that nothing is attributed to a host that received nothing.
fn is_complete(report: &Value, sent: u64) {
    assert_eq!(report["live"]["lost_packets"], 0, "{}", report["live"]);
    // A neighbour may ask for an address before and after the traffic.
    let seen = count(report, "/traffic/packets");
    assert!(seen <= sent && seen + 8 >= sent, "{seen} of {sent}");
    assert!(count(report, "/traffic/data_segments") >= 5_000_000 / 1_460, "{}", report["traffic"]);
    let datagrams = count(report, "/traffic/udp_packets");
    assert!(
        datagrams >= u64::from(DATAGRAMS) && datagrams < u64::from(DATAGRAMS) + 400,
        "{datagrams}"
    );
    assert_eq!(report["traffic"]["super_packets"], 0, "{}", report["traffic"]);
    let receivers = report["live"]["receivers"].as_array().unwrap();
    let addresses: Vec<&str> =
        receivers[1..].iter().map(|one| one["address"].as_str().unwrap()).collect();
    assert_eq!(addresses, ["10.77.0.2", "fd77::2"], "{receivers:?}");
    let rates: Vec<&Value> = receivers[0]["rates"].as_array().unwrap().iter().collect();
    assert_eq!(
        rates.iter().map(|rate| &rate["rate"]).collect::<Vec<_>>(),
        ["median", "p95", "peak"]
    );
    assert!(rates[2]["packets_per_second"].as_f64().unwrap() > 0.0, "{rates:?}");
    assert!(report["partial"].as_str().unwrap().starts_with("interrupted after"), "{report}");
}

/// Without GRO the host gets each frame by itself, and the sum of the frames is that of the packets.
fn a_live_interface_shows_what_was_sent() {
    let lab = Lab::direct(KernelGro::Off).unwrap();
    let interface = lab.host().interface(Lab::HOST_INTERFACE);
    let all = [Offload::GenericReceive, Offload::TransmitChecksum, Offload::TransmitSegmentation];
    let offloads = || all.map(|which| interface.offload(which).ok());
    let before = offloads();
    let (report, sent) = watched_mix(&lab);
    assert_eq!(offloads(), before, "watching changes nothing");
    is_complete(&report, sent);
    let live = &report["live"];
    assert_eq!(live["settings"]["gro"], false, "{live}");
    assert_eq!(live["settings"]["driver"], "veth", "{live}");
    assert_eq!(
        (&live["frames"], &live["merged_frames"]),
        (&report["traffic"]["packets"], &0.into())
    );
    let peak = &live["receivers"][0]["rates"][2];
    assert_eq!(peak["cores_today"], peak["cores_without"], "{peak}");
    assert!(count(&report, "/outcome/deliveries") < count(&report, "/outcome/packets"), "{report}");
}

/// With GRO the socket sees merged frames. Their segments are as many as the peer sent.
fn merged_frames_are_segmented() {
    let options = LabOptions { partial_checksums: false, ..LabOptions::default() };
    let lab = Lab::direct_with(KernelGro::On, options).unwrap();
    let (report, sent) = watched_mix(&lab);
    is_complete(&report, sent);
    let live = &report["live"];
    assert_eq!(live["settings"]["gro"], true, "{live}");
    let (frames, merged) = (count(live, "/frames"), count(live, "/merged_frames"));
    assert!(merged > 0 && frames < sent, "{live}");
    let segments = count(live, "/merged_packets");
    assert_eq!(frames - merged + segments, count(&report, "/traffic/packets"), "{live}");
    assert_eq!(report["traffic"]["checksums"]["wrong"], 0, "{}", report["traffic"]);
    let sentence = report["decision"]["sentence"].as_str().unwrap();
    assert!(sentence.contains("packets that must have arrived"), "{sentence}");
}

fn a_live_interface_is_watched_for_its_time() {
    let lab = Lab::direct(KernelGro::Off).unwrap();
    let (child, rest) = start(&lab, "1s");
    let report = report(child, rest, 0);
    assert_eq!(report["partial"], Value::Null);
    assert_eq!(report["live"]["watched_ns"], 1_000_000_000, "{}", report["live"]);
}

/// Runs `rxo` with `line`, which must fail with one line that has all `parts`.
fn fails(namespace: &Namespace, line: &str, parts: &[&str]) {
    let output = run(namespace, line);
    let said = String::from_utf8(output.stderr).unwrap();
    assert!(!output.status.success() && said.lines().count() == 1, "{line}: {said}");
    assert!(parts.iter().all(|part| said.contains(part)), "{line}: {said}");
}

fn an_interface_that_cannot_be_watched() {
    let lab = Lab::direct(KernelGro::Off).unwrap();
    fails(lab.host(), "analyze --live nowhere0", &["nowhere0", "ip link"]);
    lab.host().interface(Lab::HOST_INTERFACE).down().unwrap();
    fails(lab.host(), "analyze --live eth0", &["eth0 is down", "ip link set eth0 up"]);
    lab.host().interface(Lab::HOST_INTERFACE).up().unwrap();
    let plain = command("analyze --live eth0");
    let mut without = Command::new("setpriv");
    without.args(["--bounding-set=-net_raw", "--inh-caps=-net_raw", "--"]);
    without.arg(plain.get_program()).args(plain.get_args());
    let output = lab.host().run(|| without.output()).unwrap().unwrap();
    let said = String::from_utf8(output.stderr).unwrap();
    assert!(!output.status.success() && said.lines().count() == 1, "{said}");
    assert!(said.contains("CAP_NET_RAW"), "{said}");
}
