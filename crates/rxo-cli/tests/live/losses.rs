//! Every lost frame is counted, and none is dropped because the worker did not run.
//!
//! A signal stops the worker for a while, like a busy core, but at a known time. Figures that depend on the
//! machine (shares, quantiles) are printed by a test that is run by hand.

use std::fs;
use std::net::{IpAddr, UdpSocket};
use std::process::{Child, Command};
use std::thread;
use std::time::{Duration, Instant};

use rxo_testbed::traffic::{BulkConfig, BulkTransfer, PingPongConfig, ping_pong};
use rxo_testbed::{KernelGro, Lab, Namespace, create_veth};
use serde_json::Value;

use crate::Test;
use crate::process::{Rxo, wait_until, worker_of};
use crate::traffic::totals;

pub(crate) const TESTS: &[Test] = &[
    ("what_gathers_while_rxo_is_stopped_is_no_overload", stopped_with_room),
    ("what_the_ring_loses_while_rxo_is_stopped_has_its_reason", stopped_without_room),
    ("what_the_tap_has_no_room_for_is_counted", tap_overflows),
    ("what_the_queue_of_the_nic_drops_later_is_counted", queue_drops),
    ("what_is_written_to_the_nic_and_never_leaves_is_told", never_leaves),
    ("only_the_thread_that_carries_frames_has_the_nice_value", nice_values),
];

pub(crate) const LONG_TESTS: &[Test] = &[
    ("measure_beside_busy_loops", measure_beside_busy_loops),
    ("changes_of_other_networks_do_not_stop_a_worker", others_change_networks),
];

/// No watchdog: it would end a stopped worker as hung.
const FLAGS: &str = "--nic packet:wire0 --host tap:rxo0 --stats 1s --watchdog off";
const DISCARD: u16 = 9;
/// A number of datagrams that exceeds the slots of the ring, and the queue of the TAP.
const TOO_MANY: u64 = 10_000;
const RING_SLOTS: u64 = 8_192;
const TAP_PACKETS: u64 = 4_096;

fn start() -> (Lab, Rxo) {
    start_with("")
}

fn start_with(flags: &str) -> (Lab, Rxo) {
    let lab = Lab::through().unwrap();
    let (rxo, _) = Rxo::start(lab.host(), &format!("{FLAGS} {flags}"));
    lab.attach_host("rxo0").unwrap();
    // From now on both ends have resolved each other's address.
    exchange(&lab, Duration::from_millis(10));
    (lab, rxo)
}

/// Measures round trips from the peer to the host, and returns their quantiles as text.
fn exchange(lab: &Lab, duration: Duration) -> String {
    let config = PingPongConfig { duration, client_core: None, server_core: None };
    let report = ping_pong(lab.peer(), lab.host(), lab.host_address(), config).unwrap();
    format!("p50 {:.0} us, p99 {:.0} us", report.quantile_us(0.5), report.quantile_us(0.99))
}

/// Sends datagrams from `from` to the discard port of the other end.
fn send(from: &Namespace, to: IpAddr, count: u64) {
    let socket = from.run(|| UdpSocket::bind("0.0.0.0:0").unwrap()).unwrap();
    // The other end answers some with an ICMP error, which the next call returns.
    (0..count).for_each(|_| drop(socket.send_to(&[7; 200], (to, DISCARD))));
}

/// Returns the number of frames that the nic received.
fn received(lab: &Lab) -> u64 {
    lab.host().interface(Lab::WIRE_INTERFACE).counters().unwrap().received_frames
}

fn number(of: &Value, path: &str) -> u64 {
    let value = of.pointer(path).and_then(Value::as_u64);
    value.unwrap_or_else(|| panic!("no {path} in {of}"))
}

/// Checks that every frame that arrived at the nic was received or counted, and that every received frame was
/// delivered or dropped for a reason.
fn is_accounted_for(arrived: u64, totals: &Value) {
    let of = |path| number(totals, path);
    let (frames, lost) = (of("/nic_in/packets"), of("/nic_in/ring_drops"));
    // Frames before rxo began, or after it was asked to end, are counted in only one of the two.
    assert!((frames + lost).abs_diff(arrived) < 50, "{arrived} arrived: {totals}");
    let out = of("/host_out/frames") + of("/host_out/dropped_frames") + of("/overload");
    assert_eq!(frames, out, "{totals}");
    holds(totals);
}

/// Checks that every invariant holds.
fn holds(totals: &Value) {
    for path in ["/unaccounted", "/unsent"] {
        assert_eq!(number(totals, path), 0, "{path}: {totals}");
    }
    let stages = totals["imbalance"].as_object().unwrap();
    assert_eq!(stages.len(), 5, "{totals}");
    assert!(stages.values().all(|frames| *frames == 0), "{totals}");
}

fn stopped_with_room() {
    let (lab, rxo) = start();
    for _ in 0..10 {
        rxo.signal_worker("STOP");
        send(lab.peer(), lab.host_address(), RING_SLOTS / 2);
        thread::sleep(Duration::from_millis(50));
        rxo.signal_worker("CONT");
        // Stops the worker before it has emptied the ring again.
        thread::sleep(Duration::from_millis(2));
        rxo.signal_worker("STOP");
        thread::sleep(Duration::from_millis(150));
        rxo.signal_worker("CONT");
        thread::sleep(Duration::from_millis(100));
    }
    let arrived = received(&lab);
    let totals = totals(rxo);
    assert_eq!((number(&totals, "/overload"), number(&totals, "/nic_in/ring_drops")), (0, 0));
    assert!(number(&totals, "/nic_in/packets") >= 5 * RING_SLOTS, "{totals}");
    is_accounted_for(arrived, &totals);
}

fn stopped_without_room() {
    let (lab, rxo) = start();
    rxo.signal_worker("STOP");
    send(lab.peer(), lab.host_address(), TOO_MANY);
    rxo.signal_worker("CONT");
    thread::sleep(Duration::from_millis(200));
    let arrived = received(&lab);
    let totals = totals(rxo);
    let lost = number(&totals, "/nic_in/ring_drops");
    assert!(lost >= TOO_MANY - RING_SLOTS, "{totals}");
    assert_eq!((number(&totals, "/not_scheduled"), number(&totals, "/overload")), (lost, 0));
    is_accounted_for(arrived, &totals);
}

fn tap_overflows() {
    let (lab, rxo) = start();
    let given_before = lab.host().interface("rxo0").counters().unwrap().sent_frames;
    rxo.signal_worker("STOP");
    send(lab.host(), lab.peer_address(), TOO_MANY);
    let at_peer = || lab.peer().interface(Lab::PEER_INTERFACE).counters().unwrap().received_frames;
    let before = at_peer();
    rxo.signal_worker("CONT");
    wait_until("what was kept has come", || at_peer() - before >= TAP_PACKETS - 50);
    let totals = totals(rxo);
    let of = |path| number(&totals, path);
    let (given, lost) = (of("/host_in/packets"), of("/host_in/ring_drops"));
    assert!((TOO_MANY - TAP_PACKETS..=TOO_MANY).contains(&lost), "{totals}");
    let sent = given + lost - given_before;
    assert!((TOO_MANY..TOO_MANY + 100).contains(&sent), "{sent} were sent: {totals}");
    assert_eq!(given, of("/nic_out/frames") + of("/nic_out/dropped_frames"), "{totals}");
    holds(&totals);
}

/// Runs commands in the host's namespace.
fn shell(lab: &Lab, commands: &str) -> String {
    let mut command = Command::new("sh");
    command.args(["-ec", commands]);
    let output = lab.host().run(|| command.output()).unwrap().unwrap();
    assert!(output.status.success(), "{commands}: {output:?}");
    String::from_utf8(output.stdout).unwrap()
}

/// Sends datagrams in several parts; in the pauses between them rxo compares written with sent frames.
fn send_in_parts(lab: &Lab) {
    for _ in 0..6 {
        send(lab.host(), lab.peer_address(), 300);
        thread::sleep(Duration::from_millis(1_100));
    }
}

/// A queue that accepts a packet and drops another one, which no system call reports.
fn queue_drops() {
    let (lab, rxo) = start();
    shell(
        &lab,
        "tc qdisc add dev wire0 root handle 1: tbf rate 20mbit burst 10kb limit 100kb
         tc qdisc add dev wire0 parent 1: handle 2: pfifo_head_drop limit 5",
    );
    send_in_parts(&lab);
    let dropped = shell(&lab, "tc -s qdisc show dev wire0 root");
    assert!(dropped.contains("dropped ") && !dropped.contains("dropped 0,"), "{dropped}");
    let totals = totals(rxo);
    assert!(number(&totals, "/nic_out/frames") >= 1_800, "{totals}");
    holds(&totals);
}

/// Frames that rxo has written are counted as unsent if a rule redirects them.
fn never_leaves() {
    let (lab, rxo) = start();
    // The first comparison only records how much has been sent before.
    send_in_parts(&lab);
    shell(
        &lab,
        r#"nft 'add table netdev t
            add chain netdev t elsewhere { type filter hook egress device "wire0" priority 0; }
            add rule netdev t elsewhere fwd to "lo"'"#,
    );
    send_in_parts(&lab);
    rxo.signal("TERM");
    let (code, lines, said) = rxo.end();
    assert_eq!(code, Some(0), "{said}");
    let totals = lines.last().unwrap();
    assert!(number(totals, "/unsent") >= 600, "{totals}");
    assert!(totals["imbalance"].as_object().unwrap().values().all(|it| *it == 0), "{totals}");
    let told = said.lines().filter(|line| line.contains("packets were written to the nic")).count();
    assert!((1..=2).contains(&told), "at once and at the end, but not each second: {said}");
    let notices = lines.iter().filter(|line| line["kind"] == "notice");
    assert!(notices.count() >= 1, "a script is told as well");
}

/// The kernel has one lock (RTNL) for changes of all networks, and holds it while it removes a crowd of
/// interfaces. The watchdog would end a worker that waits for it.
fn others_change_networks() {
    let lab = Lab::through().unwrap();
    let flags = "--nic packet:wire0 --host tap:rxo0 --stats 100ms --watchdog 300ms";
    let (rxo, _) = Rxo::start(lab.host(), flags);
    lab.attach_host("rxo0").unwrap();
    let held = [CROWD, 2 * CROWD].map(|pairs| lock_is_held_by_a_crowd_of(pairs, &lab));
    println!("the lock was held for {held:?}");
    let totals = totals(rxo);
    assert_eq!(number(&totals, "/unaccounted"), 0, "{totals}");
}

/// Returns the time for which a process waited for the kernel's lock while a network with this many pairs of
/// interfaces was removed.
fn lock_is_held_by_a_crowd_of(pairs: usize, lab: &Lab) -> Duration {
    let crowd = Namespace::new("crowd").unwrap();
    for n in 0..pairs {
        let ends = [format!("a{n}"), format!("b{n}")];
        create_veth(&crowd.interface(&ends[0]), &crowd.interface(&ends[1])).unwrap();
    }
    drop(crowd);
    let wait = || {
        let begun = Instant::now();
        lab.peer().interface("lo").up().unwrap();
        thread::sleep(Duration::from_millis(20));
        begun.elapsed()
    };
    (0..100).map(|_| wait()).max().unwrap()
}

/// The number of pairs of interfaces whose removal takes the kernel about a second.
const CROWD: usize = 4_000;

/// The number of busy loops: two for each core that the documentation assumes.
const BUSY_LOOPS: usize = 4;
const ROUNDS: usize = 5;

/// Other processes that use the processor without pause.
struct BusyLoops(Vec<Child>);

impl BusyLoops {
    fn start() -> Self {
        let spawn = |_| Command::new("sh").args(["-c", "while :; do :; done"]).spawn().unwrap();
        Self((0..BUSY_LOOPS).map(spawn).collect())
    }
}

impl Drop for BusyLoops {
    fn drop(&mut self) {
        for child in &mut self.0 {
            _ = child.kill();
            _ = child.wait();
        }
    }
}

/// Checks the nice values of the worker's threads; the first is that of the thread that carries frames.
fn nice_values() {
    let of = |flags: &str| {
        let (_lab, rxo) = start_with(flags);
        let worker = worker_of(rxo.id()).unwrap();
        let mut tasks: Vec<u32> = fs::read_dir(format!("/proc/{worker}/task"))
            .unwrap()
            .map(|entry| entry.unwrap().file_name().to_str().unwrap().parse().unwrap())
            .collect();
        tasks.sort_by_key(|&task| (task != worker, task));
        let nice = |task: u32| -> i32 {
            let stat = fs::read_to_string(format!("/proc/{worker}/task/{task}/stat")).unwrap();
            // The nice value is the 17th field after the name.
            stat.rsplit_once(") ").unwrap().1.split(' ').nth(16).unwrap().parse().unwrap()
        };
        let values: Vec<i32> = tasks.into_iter().map(nice).collect();
        let others = values[1..].to_vec();
        assert!(!others.is_empty());
        (values[0], others.into_iter().all(|nice| nice == 0))
    };
    assert_eq!(of(""), (0, true));
    assert_eq!(of("--nice -20"), (-20, true));
    assert_eq!(of("--nice 5"), (5, false));
}

/// Prints the figures of requests and of a 100 Mbit/s transfer while busy loops run, without rxo and with it
/// at several nice values.
fn measure_beside_busy_loops() {
    for round in 0..ROUNDS {
        let direct = Lab::direct(KernelGro::On).unwrap();
        println!("round {round} direct  {}", seen(&direct));
        for nice in ["keep", "-10", "-20"] {
            beside_busy_loops(round, nice);
        }
    }
}

fn beside_busy_loops(round: usize, nice: &str) {
    let (lab, rxo) = start_with(&format!("--nice {nice}"));
    let seen = seen(&lab);
    let totals = totals(rxo);
    let of = |path| number(&totals, path);
    println!(
        "round {round} rxo at {nice}: {seen}; of {} frames {} lost in the ring ({} not scheduled), {} as overload",
        of("/nic_in/packets"),
        of("/nic_in/ring_drops"),
        of("/not_scheduled"),
        of("/overload"),
    );
    assert_eq!(of("/unaccounted"), 0, "{totals}");
}

fn seen(lab: &Lab) -> String {
    // The rate of each connection.
    let limit_bytes_per_s = Some(6_250_000);
    let config = BulkConfig { connections: 2, limit_bytes_per_s, ..BulkConfig::default() };
    let transfer =
        BulkTransfer::start(lab.peer(), lab.host(), lab.host_address(), &config).unwrap();
    let busy = BusyLoops::start();
    let requests = exchange(lab, Duration::from_secs(4));
    drop(busy);
    let retransmitted = transfer.stop().unwrap().retransmitted_segments;
    format!("requests {requests}; {retransmitted} segments retransmitted")
}
