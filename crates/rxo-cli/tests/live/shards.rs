//! `rxo sink`, `source` and `serve` with several workers: each connection stays with the worker to which the device steers
//! it, whichever side opened it, and the workers add up to the totals.

use std::collections::BTreeMap;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::path::Path;
use std::process::{Child, Output};
use std::thread;

use rxo::wire::{FlowKey, shard_of};
use rxo_testbed::{Lab, Namespace};
use serde_json::Value;

use crate::Test;
use crate::control::{asked, asked_for_pages};
use crate::endpoint::{
    AT_HOST, AT_PEER, HOST, connect, finish, hash, hash_of, json, on_each_device, pattern,
    read_all, send_all, serve,
};
use crate::metrics::socket_page;
use crate::process::{run, signal, spawn, wait_until};
use crate::report::Scratch;

pub(crate) const TESTS: &[Test] = &[
    ("connections_that_come_stay_with_their_worker", sink_on_packet),
    ("connections_that_come_over_tap_and_tun_stay_with_their_worker", sink_on_tap_and_tun),
    ("connections_that_are_opened_get_answers_at_their_worker", source),
    ("workers_ask_and_answer", requests),
    ("workers_of_a_host_are_shown_beside_their_sum", shown),
    ("a_signal_ends_all_workers_with_their_totals", a_signal),
    ("a_worker_of_a_host_that_cannot_be_is_refused", refused),
];

const TWO: &str = "--workers 2 --json";
const CONNECTIONS: usize = 24;

fn count(value: &Value) -> u64 {
    value.as_u64().unwrap()
}

/// Asserts that the workers add up to the totals, that no delivery came to another worker than its connection's, and that
/// each worker has the connections of its shard; these are between `local` and the peers of the totals.
fn assert_apart(totals: &Value, local: &str) {
    let workers = totals["workers"].as_array().unwrap();
    let sum =
        |of: fn(&Value) -> &Value| workers.iter().map(|worker| count(of(worker))).sum::<u64>();
    assert_eq!(sum(|worker| &worker["bytes"]), count(&totals["bytes"]), "{totals}");
    assert_eq!(sum(|worker| &worker["connections"]), count(&totals["connections"]));
    for name in ["received", "deliveries", "sent"] {
        let of_workers: u64 = workers.iter().map(|worker| count(&worker["frames"][name])).sum();
        assert_eq!(of_workers, count(&totals["frames"][name]), "{name}: {totals}");
    }
    assert_eq!(sum(|worker| &worker["misplaced"]), 0, "{totals}");
    let local: SocketAddr = local.parse().unwrap();
    let ends = totals["ends"].as_array().unwrap();
    let mut expected = BTreeMap::new();
    for end in ends {
        let peer: SocketAddr = end["peer"].as_str().unwrap().parse().unwrap();
        *expected.entry(shard(peer, local, workers.len())).or_default() += 1;
    }
    for (n, worker) in workers.iter().enumerate() {
        let connections = count(&worker["connections"]);
        assert_eq!(connections, expected.get(&n).copied().unwrap_or(0), "worker {n}: {totals}");
        assert!(connections > 0 && count(&worker["frames"]["received"]) > 10, "{totals}");
    }
}

/// Returns the worker of a connection.
fn shard(peer: SocketAddr, local: SocketAddr, workers: usize) -> usize {
    let ports = u32::from(peer.port()) << 16 | u32::from(local.port());
    let key = match (peer, local) {
        (SocketAddr::V4(peer), SocketAddr::V4(local)) => {
            FlowKey::v4(peer.ip().to_bits(), local.ip().to_bits(), ports, 0)
        }
        (SocketAddr::V6(peer), SocketAddr::V6(local)) => {
            let addresses = [peer.ip().octets(), local.ip().octets()].concat();
            FlowKey::v6(&addresses.try_into().unwrap(), ports, 0)
        }
        _ => panic!("{peer} and {local} are of two versions"),
    };
    shard_of(&key, workers as u32) as usize
}

/// Sends different bytes on each connection to `to`, and compares them with the sink's report.
fn fill(sink: Child, from: &Namespace, to: &str) {
    let bytes = |n: usize| 100_000 + 30_000 * n as u32;
    let send = |n| {
        let stream = connect(from, to);
        thread::spawn(move || {
            send_all(&stream, &pattern(bytes(n)));
        })
    };
    let senders: Vec<_> = (0..CONNECTIONS).map(send).collect();
    senders.into_iter().for_each(|sender| sender.join().unwrap());
    let totals = json(&sink.wait_with_output().unwrap()).pop().unwrap();
    assert_apart(&totals, to);
    let mut seen: Vec<_> = totals["ends"].as_array().unwrap().iter().map(hash_of).collect();
    let sent = |n| (u64::from(bytes(n)), hash(&pattern(bytes(n))));
    seen.sort();
    assert_eq!(seen, (0..CONNECTIONS).map(sent).collect::<Vec<_>>());
}

fn sink_on_packet() {
    let lab = Lab::through().unwrap();
    let line = format!("sink {HOST} --listen 7000 --connections {CONNECTIONS} --hash {TWO}");
    fill(spawn(lab.host(), &line), lab.peer(), AT_HOST);
}

fn sink_on_tap_and_tun() {
    let line = format!("sink --connections {CONNECTIONS} --hash {TWO} --cpus 0-1");
    on_each_device(&line, fill);
}

fn source() {
    let lab = Lab::through().unwrap();
    let server = serve(&lab, CONNECTIONS, |stream| {
        let all = read_all(&stream);
        (all.len() as u64, hash(&all), stream.peer_addr().unwrap())
    });
    let flags = format!("--bytes 1M --connections {CONNECTIONS} --hash {TWO}");
    let totals = json(&run(lab.host(), &format!("source {HOST} {AT_PEER} {flags}"))).pop().unwrap();
    assert_eq!(totals["bytes"], 1_000_000 * CONNECTIONS);
    let received = server.join().unwrap();
    let ends = totals["ends"].as_array().unwrap();
    let expected = hash_of(&ends[0]);
    assert!(received.iter().all(|(bytes, hash, _)| (*bytes, hash.clone()) == expected));
    assert!(ends.iter().all(|end| hash_of(end) == expected), "{ends:?}");
    // Each worker has opened its share, from ports whose answers come to it.
    let of_first =
        received.iter().filter(|(.., local)| shard(AT_PEER.parse().unwrap(), *local, 2) == 0);
    assert_eq!(of_first.count(), CONNECTIONS / 2);
    for worker in totals["workers"].as_array().unwrap() {
        assert_eq!(count(&worker["connections"]), CONNECTIONS as u64 / 2, "{totals}");
        assert_eq!(count(&worker["bytes"]), 500_000 * CONNECTIONS as u64, "{totals}");
        assert_eq!(worker["misplaced"], 0, "{totals}");
    }
}

/// A source with two workers sends requests to a sink with two workers, over one wire.
fn requests() {
    let lab = Lab::through().unwrap();
    let flags = format!("--connections {CONNECTIONS} {TWO} --interval 0s");
    let sink = spawn(lab.host(), &format!("sink {HOST} --listen 7000 --rr {flags}"));
    // The first connection finds the host there; it is one of the sink's.
    let first = connect(lab.peer(), AT_HOST);
    finish(&first);
    let peer = "--nic packet:eth0 --ip 10.77.0.9/24";
    let flags = format!("--connections {} {TWO} --rr 100 --bytes 5000", CONNECTIONS - 1);
    let asker = json(&run(lab.peer(), &format!("source {peer} {AT_HOST} {flags}"))).pop().unwrap();
    let exchanges = 50 * (CONNECTIONS as u64 - 1);
    assert_eq!(count(&asker["exchanges"]), exchanges, "{asker}");
    let totals = json(&sink.wait_with_output().unwrap()).pop().unwrap();
    assert_eq!(count(&totals["exchanges"]), exchanges, "{totals}");
    for totals in [asker, totals] {
        for worker in totals["workers"].as_array().unwrap() {
            assert!(count(&worker["exchanges"]) > 0 && worker["misplaced"] == 0, "{totals}");
        }
    }
}

/// A sink with connections on which the peers never end their streams.
struct Open {
    sink: Child,
    streams: Vec<TcpStream>,
}

impl Open {
    fn new(lab: &Lab, flags: &str) -> Self {
        let flags = format!("--connections {} {TWO} {flags}", CONNECTIONS + 1);
        let sink = spawn(lab.host(), &format!("sink {HOST} --listen 7000 --interval 0s {flags}"));
        let streams: Vec<_> = (0..CONNECTIONS).map(|_| connect(lab.peer(), AT_HOST)).collect();
        for mut stream in &streams {
            stream.write_all(&pattern(50_000)).unwrap();
        }
        Self { sink, streams }
    }

    fn end(self, name: &str) -> Output {
        signal(name, self.sink.id());
        self.sink.wait_with_output().unwrap()
    }
}

/// Counts the connections, which come on a page for each worker.
fn connections(socket: &Path) -> usize {
    let pages = asked_for_pages(socket, "connections");
    assert_eq!(pages.len(), 2);
    pages.iter().map(|page| page["connections"].as_array().unwrap().len()).sum()
}

fn shown() {
    let (scratch, lab) = (Scratch::new("shards"), Lab::through().unwrap());
    let [control, metrics] = ["control.sock", "metrics.sock"].map(|name| scratch.file(name));
    let sockets = format!("--control {} --metrics unix:{}", control.display(), metrics.display());
    let open = Open::new(&lab, &sockets);
    wait_until("all are there", || connections(&control) == CONNECTIONS);
    let counters = asked(&control, "counters");
    assert_eq!(counters["now"]["connections"], CONNECTIONS, "{counters}");
    let workers = counters["workers"].as_array().unwrap();
    let of_each: Vec<_> = workers.iter().map(|worker| count(&worker["connections"])).collect();
    assert_eq!(of_each.len(), 2);
    assert_eq!(of_each.iter().sum::<u64>(), CONNECTIONS as u64);
    let page = socket_page(&metrics);
    for (n, connections) in (1..).zip(of_each) {
        let value = |name: &str| page[&format!("{name}{{worker=\"{n}\"}}")];
        assert!((value("rxo_worker_connections") - connections as f64).abs() < 0.5, "{page:?}");
        assert!(value("rxo_worker_packets_total") > 10.0 && connections > 0, "{page:?}");
        assert!(value("rxo_worker_misplaced_total").abs() < 0.5);
    }
    // A change takes effect at all workers, one at each time.
    asked(&control, "policy=none");
    assert_eq!(asked(&control, "policies")["engines"][0]["policy"], "none");
    let mut sent = open.streams[0].try_clone().unwrap();
    sent.write_all(&pattern(1_000_000)).unwrap();
    assert_eq!(open.end("TERM").status.code(), Some(3));
}

fn a_signal() {
    for name in ["INT", "TERM"] {
        let lab = Lab::through().unwrap();
        let open = Open::new(&lab, "");
        let mut streams: Vec<_> =
            open.streams.iter().map(|stream| stream.try_clone().unwrap()).collect();
        let output = open.end(name);
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!((output.status.code(), said.lines().count()), (Some(3), 1), "{said}");
        assert!(said.contains("interrupted"), "{said}");
        let totals: Value =
            serde_json::from_slice(output.stdout.split(|byte| *byte == b'\n').next().unwrap())
                .unwrap();
        assert_eq!(
            (&totals["kind"], totals["workers"].as_array().unwrap().len()),
            (&"totals".into(), 2)
        );
        // All peers receive a reset, whichever worker had their connections.
        assert!(streams.iter_mut().all(|stream| stream.read(&mut [0]).is_err()));
    }
}

fn refused() {
    let lab = Lab::through().unwrap();
    let rows = [
        (
            "sink --nic vhost:/tmp/s --ip 10.77.0.2/24 --listen 7000 --workers 2",
            "vhost:/tmp/s has one queue; give 1",
        ),
        (
            "sink --nic packet:wire0 --ip 10.77.0.2/24 --listen 7000 --workers 0",
            "--workers 0: give a number from 1 to 64",
        ),
        (
            "source --nic packet:wire0 --ip 10.77.0.2/24 10.77.0.1:7 --workers 2 --cpus 1023-1024",
            "cannot bind a worker to processor 1023",
        ),
        (
            "serve /tmp --nic packet:wire0 --ip 10.77.0.2/24 --workers 2 --cpus 3",
            "1 processors for 2 workers",
        ),
    ];
    for (line, message) in rows {
        let output = run(lab.host(), line);
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(!output.status.success() && said.contains(message), "{line}: {said}");
        assert_eq!(said.lines().count(), 1, "{said}");
    }
}
