//! `--metrics`: a plain client gets the counters of each long command by TCP and by a Unix socket during
//! traffic, and they equal those of `rxo ctl SOCKET counters`.

use std::collections::BTreeMap;
use std::fs;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::UnixStream;
use std::path::Path;

use rxo_testbed::traffic::{BulkConfig, BulkTransfer};
use rxo_testbed::{Lab, Namespace};
use serde_json::Value;

use crate::Test;
use crate::control::asked;
use crate::endpoint::{AT_HOST, connect, finish, pattern, read_all};
use crate::process::{LONG, Rxo, command, run, spawn, wait_until};
use crate::report::Scratch;
use crate::traffic::totals;

pub(crate) const TESTS: &[Test] = &[
    ("metrics_are_what_the_control_socket_says", by_tcp),
    ("metrics_come_by_a_socket_of_the_owner_that_goes_with_the_run", by_socket),
    ("readers_of_metrics_that_take_nothing_delay_no_traffic", slow_readers),
    ("an_address_for_metrics_that_is_taken_is_refused_in_one_line", taken),
    ("a_host_of_rxo_gives_metrics", of_hosts),
];

const RUN: &str = "--nic packet:wire0 --host tap:rxo0 --stats 0s";
const ADDRESS: &str = "127.0.0.1:9464";
const GET: &[u8] = b"GET /metrics HTTP/1.1\r\nHost: rxo\r\n\r\n";

/// The values of a metrics page, by the name of the series with its labels.
pub(crate) type Page = BTreeMap<String, f64>;

/// Requests the page on a stream that `connect` opens. Repeats the request if a busy machine did not run the
/// worker for a second (status 503).
fn page<S: Read + Write>(connect: impl Fn() -> S) -> Page {
    let begun = std::time::Instant::now();
    let said = loop {
        let (mut stream, mut said) = (connect(), String::new());
        stream.write_all(GET).unwrap();
        stream.read_to_string(&mut said).unwrap();
        if !said.starts_with("HTTP/1.1 503 ") {
            break said;
        }
        assert!(begun.elapsed() < LONG, "{said}");
    };
    let (head, text) = said.split_once("\r\n\r\n").unwrap();
    assert!(head.starts_with("HTTP/1.1 200 OK\r\n"), "{said}");
    assert!(head.contains("Content-Type: text/plain; version=0.0.4"), "{head}");
    let lines = text.lines().filter(|line| !line.starts_with('#'));
    let series = lines.map(|line| {
        let (name, value) = line.rsplit_once(' ').unwrap();
        (name.to_owned(), value.parse().unwrap())
    });
    series.collect()
}

fn tcp_page(namespace: &Namespace) -> Page {
    page(|| connect(namespace, ADDRESS))
}

/// Returns the page from the Unix socket `path`.
pub(crate) fn socket_page(path: &Path) -> Page {
    page(|| UnixStream::connect(path).unwrap())
}

fn loopback_up(lab: &Lab) {
    lab.host().interface("lo").up().unwrap();
}

/// Returns the counters of the JSON by the names of their series. Fractional numbers are computed values and
/// left out.
fn counters(json: &Value) -> Page {
    let labels = [("bypass", "reason"), ("flush", "reason"), ("imbalance", "stage")];
    let mut series = Page::new();
    for (name, value) in json.as_object().unwrap() {
        match value {
            Value::Number(count) if count.is_u64() => {
                series.insert(format!("rxo_{name}_total"), count.as_f64().unwrap());
            }
            Value::Object(fields) => {
                let label = labels.iter().find(|(field, _)| field == name).map(|(_, label)| label);
                let counts = fields.iter().filter(|(_, count)| count.is_u64());
                series.extend(counts.map(|(field, count)| {
                    let series = match label {
                        Some(label) => format!("rxo_{name}_total{{{label}=\"{field}\"}}"),
                        None => format!("rxo_{name}_{field}_total"),
                    };
                    (series, count.as_f64().unwrap())
                }));
            }
            _ => {}
        }
    }
    series
}

fn by_tcp() {
    let (scratch, lab) = (Scratch::new("metrics-tcp"), Lab::through().unwrap());
    loopback_up(&lab);
    let socket = scratch.file("run.sock");
    let flags = format!("{RUN} --control {} --metrics {ADDRESS}", socket.display());
    let (rxo, configuration) = Rxo::start(lab.host(), &flags);
    assert_eq!(configuration["metrics"], ADDRESS);
    lab.attach_host("rxo0").unwrap();
    let config = BulkConfig { bytes_per_connection: Some(20_000_000), ..BulkConfig::default() };
    let moved = BulkTransfer::start(lab.peer(), lab.host(), lab.host_address(), &config).unwrap();
    // During the run, counters only grow.
    let mut last = tcp_page(lab.host());
    let build =
        format!("rxo_build_info{{version=\"{}\",command=\"rxo run\"}}", env!("CARGO_PKG_VERSION"));
    assert_eq!(last[&build], 1.0);
    for _ in 0..20 {
        let now = tcp_page(lab.host());
        let shrunk = last
            .iter()
            .filter(|(name, _)| name.contains("_total"))
            .find(|(name, value)| now[*name] < **value);
        assert_eq!(shrunk, None);
        last = now;
    }
    assert!(moved.wait().unwrap().is_intact());

    let begun = std::time::Instant::now();
    loop {
        let before = tcp_page(lab.host());
        let json = counters(&asked(&socket, "counters"));
        let after = tcp_page(lab.host());
        // ARP and neighbour discovery may change counters between the two readings.
        let is_still = json.keys().all(|name| before.get(name) == after.get(name));
        if is_still {
            assert!(json.len() > 40, "{json:?}");
            assert!(json["rxo_nic_in_packets_total"] > 13_000.0, "{json:?}");
            let differ = json.iter().find(|(name, value)| after.get(*name) != Some(value));
            assert_eq!(differ, None, "{after:?}");
            break;
        }
        assert!(begun.elapsed() < LONG, "traffic never stops");
    }
    totals(rxo);
    assert!(lab.host().run(|| TcpStream::connect(ADDRESS)).unwrap().is_err());
}

fn by_socket() {
    let (scratch, lab) = (Scratch::new("metrics-socket"), Lab::through().unwrap());
    let socket = scratch.file("metrics.sock");
    let flags = format!("{RUN} --metrics unix:{}", socket.display());
    for signal in ["TERM", "worker KILL"] {
        let (rxo, _) = Rxo::start(lab.host(), &flags);
        let mode = fs::symlink_metadata(&socket).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
        assert!(socket_page(&socket).contains_key("rxo_unaccounted_total"));
        match signal.strip_prefix("worker ") {
            None => rxo.signal(signal),
            Some(signal) => rxo.signal_worker(signal),
        }
        rxo.end();
        wait_until("the socket is gone", || !socket.exists());
    }
}

fn slow_readers() {
    let lab = Lab::through().unwrap();
    loopback_up(&lab);
    let (rxo, _) = Rxo::start(lab.host(), &format!("{RUN} --metrics {ADDRESS}"));
    lab.attach_host("rxo0").unwrap();
    // As many clients as the server accepts; some of them send a request and read nothing.
    let mut readers: Vec<_> = (0..8).map(|_| connect(lab.host(), ADDRESS)).collect();
    readers[..4].iter_mut().for_each(|reader| reader.write_all(GET).unwrap());
    let config = BulkConfig { bytes_per_connection: Some(10_000_000), ..BulkConfig::default() };
    let moved = BulkTransfer::start(lab.peer(), lab.host(), lab.host_address(), &config).unwrap();
    assert!(moved.wait().unwrap().is_intact());
    let totals = totals(rxo);
    assert_eq!((&totals["overload"], &totals["unaccounted"]), (&0.into(), &0.into()));
    // The end of the run waits for none of them.
    drop(readers);
}

fn taken() {
    let (scratch, lab) = (Scratch::new("metrics-taken"), Lab::through().unwrap());
    loopback_up(&lab);
    let socket = scratch.file("metrics.sock");
    let first = format!("{RUN} --metrics {ADDRESS}");
    let (rxo, _) = Rxo::start(lab.host(), &first);
    let sink = "sink --nic packet:wire0 --ip 10.77.0.2/24 --listen 7000";
    let rows = [
        format!("run {first}"),
        format!("run {first} --dry-run"),
        format!("{sink} --metrics {ADDRESS}"),
    ];
    for line in rows {
        let output = run(lab.host(), &line);
        let said = String::from_utf8(output.stderr).unwrap();
        let expected = "cannot open --metrics 127.0.0.1:9464: a process listens there; end it or choose another port";
        assert!(said.contains(expected) && said.lines().count() == 1, "{line}: {said}");
        assert_ne!(output.status.code(), Some(0));
    }
    totals(rxo);
    fs::write(&socket, "a letter").unwrap();
    let output = run(lab.host(), &format!("run {RUN} --metrics unix:{}", socket.display()));
    let said = String::from_utf8(output.stderr).unwrap();
    assert!(said.contains("there is a file that is no socket; choose another path"), "{said}");
    let output = command(&format!("run {RUN} --metrics 9464")).output().unwrap();
    assert_eq!(output.status.code(), Some(2));
}

fn of_hosts() {
    let (scratch, lab) = (Scratch::new("metrics-hosts"), Lab::through().unwrap());
    let (socket, metrics) = (scratch.file("sink.sock"), scratch.file("metrics.sock"));
    let asking = format!("--control {} --metrics unix:{}", socket.display(), metrics.display());
    let line = format!("sink --nic packet:wire0 --ip 10.77.0.2/24 --listen 7000 --json {asking}");
    let sink = spawn(lab.host(), &line);
    let mut stream = connect(lab.peer(), AT_HOST);
    stream.write_all(&pattern(3_000_000)).unwrap();
    wait_until("all has come", || socket_page(&metrics)["rxo_nic_in_bytes_total"] > 3e6);
    let json = counters(&asked(&socket, "counters"));
    let page = socket_page(&metrics);
    assert_eq!(page["rxo_connections"], 1.0);
    let missing =
        json.keys().find(|name| !page.contains_key(*name) && !name.starts_with("rxo_now_"));
    assert_eq!(missing, None);
    finish(&stream);
    assert!(sink.wait_with_output().unwrap().status.success());

    fs::write(scratch.file("hello"), "hello").unwrap();
    let directory = scratch.file("hello").parent().unwrap().display().to_string();
    let line = format!("serve {directory} --nic packet:wire0 --ip 10.77.0.2/24 {asking}");
    let mut server = spawn(lab.host(), &line);
    wait_until("it serves", || UnixStream::connect(&metrics).is_ok());
    let mut client = connect(lab.peer(), "10.77.0.2:80");
    client.write_all(b"GET /hello HTTP/1.0\r\n\r\n").unwrap();
    assert!(read_all(&client).ends_with(b"hello"));
    assert!(socket_page(&metrics)["rxo_nic_out_frames_total"] > 2.0);
    assert!(socket_page(&metrics).keys().any(|name| name.contains("command=\"rxo serve\"")));
    server.kill().unwrap();
    server.wait().unwrap();
}
