//! `rxo run --workers`: several workers share the nic and the TAP, and no frame is lost, duplicated or
//! uncounted.

use std::fs;

use rxo_testbed::{Lab, LabOptions};
use serde_json::Value;

use crate::Test;
use crate::control::{asked, refusal, transfer as endless};
use crate::metrics::socket_page;
use crate::process::{Rxo, run, wait_until};
use crate::reload;
use crate::report::Scratch;
use crate::setup::{self, SetUp};
use crate::takeover::a_nic_that_goes_and_comes;
use crate::traffic::{totals, transfer, udp_transfer};

pub(crate) const TESTS: &[Test] = &[
    ("two_workers_carry_all_and_count_all", both_ways),
    ("both_directions_of_a_connection_meet_in_one_worker", one_connection),
    ("workers_split_stretch_acks_of_their_connections", splitting),
    ("workers_answer_and_change_together", asked_together),
    ("workers_stay_on_their_processors", bound),
    ("workers_that_a_nic_left_go_on_with_the_next", || {
        a_nic_that_goes_and_comes("packet:eth1", "--workers 2");
    }),
    ("workers_that_cannot_be_are_refused", refused),
    ("what_workers_carry_is_written_down", captured),
    ("a_file_is_read_again_by_all_workers_and_the_page_shows_each", read_again),
];

const WORKERS: &str = "--workers 2";

fn count(value: &Value) -> u64 {
    value.as_u64().unwrap()
}

/// Asserts that every frame was counted, and that the workers' counters add up. Drops by overload are
/// counted, but their number depends on the machine.
fn assert_all_counted(totals: &Value) {
    for name in ["unaccounted", "unsent"] {
        assert_eq!(totals[name], 0, "{name}: {totals}");
    }
    for side in ["host_out", "nic_out"] {
        assert_eq!(totals[side]["dropped"], 0, "{totals}");
    }
    let workers = totals["workers"].as_array().unwrap();
    assert_eq!(workers.len(), 2, "{totals}");
    let sum = |name: &str| workers.iter().map(|worker| count(&worker[name])).sum::<u64>();
    assert_eq!(sum("packets"), count(&totals["nic_in"]["packets"]));
    assert_eq!(sum("deliveries"), count(&totals["host_out"]["deliveries"]));
    assert_eq!(sum("sent"), count(&totals["host_in"]["packets"]));
}

fn both_ways() {
    for set_up in SetUp::ALL {
        let flags = format!("{WORKERS} --stats 100ms");
        let (lab, rxo) = setup::start(set_up, LabOptions::default(), &flags);
        // With so many connections, each worker has some.
        transfer(lab.peer(), lab.host(), lab.host_address(), 32, 500_000);
        transfer(lab.host(), lab.peer(), lab.peer_address(), 32, 500_000);
        // The receiver of datagrams checks their order.
        udp_transfer(lab.peer(), lab.host(), lab.host_address(), 1_200);
        udp_transfer(lab.host(), lab.peer(), lab.peer_address(), 1_200);
        let totals = totals(rxo);
        assert_all_counted(&totals);
        for worker in totals["workers"].as_array().unwrap() {
            assert!(count(&worker["packets"]) > 500 && count(&worker["sent"]) > 500, "{totals}");
        }
        assert!(totals["packets_per_aggregate"].as_f64().unwrap() > 2.0, "{totals}");
        setup::assert_nothing_came_twice(&lab, &totals);
    }
}

fn one_connection() {
    let (lab, rxo) = setup::start(SetUp::TakeOver, LabOptions::default(), WORKERS);
    transfer(lab.peer(), lab.host(), lab.host_address(), 1, 3_000_000);
    let totals = totals(rxo);
    assert_all_counted(&totals);
    let mut workers = totals["workers"].as_array().unwrap().clone();
    workers.sort_by_key(|worker| count(&worker["packets"]));
    let [other, its] = &workers[..] else { panic!("{totals}") };
    // The other worker has at most what belongs to no connection.
    assert!(count(&its["packets"]) > 2_000 && count(&its["sent"]) > 50, "{totals}");
    assert!(count(&other["packets"]) < 50 && count(&other["sent"]) < 50, "{totals}");
}

/// A worker splits an ACK only if it has delivered the segments.
fn splitting() {
    let flags = format!("{WORKERS} --ack-split 2");
    let (lab, rxo) = setup::start(SetUp::TakeOver, LabOptions::default(), &flags);
    transfer(lab.peer(), lab.host(), lab.host_address(), 16, 500_000);
    let totals = totals(rxo);
    assert_all_counted(&totals);
    let split = &totals["ack_split"];
    assert!(count(&split["segments"]) > 16 * 500_000 / 1_448, "{totals}");
    assert!(count(&split["templates"]) * 10 > count(&split["stretch_acks"]) * 9, "{totals}");
}

fn asked_together() {
    let scratch = Scratch::new("workers");
    let socket = scratch.file("run.sock");
    let flags = format!("{WORKERS} --stats 3600s --control {}", socket.display());
    let (lab, rxo) = setup::start(SetUp::TakeOver, LabOptions::default(), &flags);
    let running = endless(lab.peer(), lab.host(), &lab);
    let engines = || asked(&socket, "policies")["engines"].as_array().unwrap().clone();
    let names: Vec<_> = engines().iter().map(|engine| engine["engine"].clone()).collect();
    assert_eq!(names, ["worker 1", "worker 2"]);
    for policy in ["none", "menon-2008", "linux-gro"].into_iter().cycle().take(12) {
        asked(&socket, &format!("policy={policy}"));
        // A TAP cannot carry it, so no worker changes its policy.
        refusal(&socket, "policy=remember");
        let is_in_force = || engines().iter().all(|engine| engine["policy"] == policy);
        wait_until("both follow it", is_in_force);
    }
    let counters = asked(&socket, "counters");
    assert_eq!(counters["workers"].as_array().unwrap().len(), 2, "{counters}");
    asked(&socket, "stats=100ms");
    let report = running.stop().unwrap();
    assert!(report.is_intact(), "{report:?}");
    assert_all_counted(&totals(rxo));
}

/// Returns the threads of the workers: name, the processors that the thread may use, and its nice value.
fn threads(worker: u32) -> Vec<(String, String, i64)> {
    let tasks = fs::read_dir(format!("/proc/{worker}/task")).unwrap().flatten();
    let mut found: Vec<_> = tasks
        .filter_map(|task| {
            let read = |name: &str| fs::read_to_string(task.path().join(name)).ok();
            let name = read("comm")?.trim().to_owned();
            let status = read("status")?;
            let cpus = status.lines().find_map(|line| line.strip_prefix("Cpus_allowed_list:"))?;
            let stat = read("stat")?;
            let nice = stat.rsplit_once(") ")?.1.split(' ').nth(16)?.parse().ok()?;
            name.starts_with("rxo-worker").then(|| (name, cpus.trim().to_owned(), nice))
        })
        .collect();
    found.sort();
    found
}

fn bound() {
    let flags = format!("{WORKERS} --cpus 0-1 --nice 3");
    let lab = SetUp::TakeOver.lab(LabOptions::default());
    let (rxo, configuration) =
        Rxo::start(lab.host(), &format!("{} {flags}", SetUp::TakeOver.flags()));
    assert_eq!((&configuration["workers"], &configuration["cpus"][1]), (&2.into(), &1.into()));
    let expected: Vec<_> =
        (0..2).map(|n| (format!("rxo-worker-{}", n + 1), n.to_string(), 3)).collect();
    wait_until("each is bound", || threads(rxo.worker()) == expected);
    transfer(lab.peer(), lab.host(), lab.host_address(), 8, 200_000);
    assert_all_counted(&totals(rxo));
}

fn refused() {
    let lab = SetUp::Apart.lab(LabOptions::default());
    let flags = SetUp::Apart.flags();
    let rows = [
        ("--workers 2 --cpus 1023-1024", "cannot bind a worker to processor 1023"),
        ("--workers 2 --impair loss=1%", "--impair impairs the traffic of one worker"),
        ("--workers 0", "--workers 0: give a number from 1 to 64, or auto"),
    ];
    for (more, message) in rows {
        let output = run(lab.host(), &format!("run {flags} {more}"));
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(!output.status.success() && said.contains(message), "{said}");
    }
    let dry = run(lab.host(), &format!("run {flags} --workers auto --json --dry-run"));
    let configuration: Value = serde_json::from_slice(&dry.stdout).unwrap();
    assert_eq!(configuration["workers"], Value::Null, "a veth has one queue");
}

fn captured() {
    let scratch = Scratch::new("workers-tap");
    let file = scratch.file("all.pcapng");
    let flags = format!("{WORKERS} --tap {}", file.display());
    let (lab, rxo) = setup::start(SetUp::TakeOver, LabOptions::default(), &flags);
    transfer(lab.peer(), lab.host(), lab.host_address(), 8, 200_000);
    let totals = totals(rxo);
    assert_all_counted(&totals);
    let analyzed = run(lab.host(), &format!("analyze {} --json", file.display()));
    assert!(analyzed.status.success(), "{}", String::from_utf8_lossy(&analyzed.stderr));
    let bytes = fs::metadata(&file).unwrap().len();
    assert!(bytes > 2 * 8 * 200_000, "{bytes}");
}

/// A configuration file is read again while frames pass. After each time both workers follow it, and the
/// metrics page shows both.
fn read_again() {
    let (scratch, lab) = (Scratch::new("workers-file"), Lab::through().unwrap());
    let [file, control, page] =
        ["rxo.toml", "run.sock", "page.sock"].map(|name| scratch.file(name));
    let write = |policy: &str| {
        let sockets = format!("control = {control:?}\nmetrics = \"unix:{}\"", page.display());
        let devices = "nic = \"packet:wire0\"\nhost = \"tap:rxo0\"\nworkers = \"2\"";
        fs::write(&file, format!("{devices}\n{sockets}\npolicy = \"{policy}\"\n")).unwrap();
    };
    write("linux-gro");
    let (rxo, configuration) = Rxo::start(lab.host(), &format!("--config {}", file.display()));
    assert_eq!(configuration["workers"], 2);
    lab.attach_host("rxo0").unwrap();
    let running = endless(lab.peer(), lab.host(), &lab);
    for policy in ["none", "linux-gro", "menon-2008", "none", "linux-gro"] {
        write(policy);
        assert_eq!(asked(&control, "reload")["changed"][0], "policy");
        let engines = asked(&control, "policies")["engines"].as_array().unwrap().clone();
        assert_eq!(engines.len(), 2);
        let is_in_force = || {
            let engines = asked(&control, "policies");
            engines["engines"].as_array().unwrap().iter().all(|engine| engine["policy"] == policy)
        };
        wait_until("both follow it", is_in_force);
        let page = socket_page(&page);
        let of = |n: u32| page[&format!("rxo_worker_packets_total{{worker=\"{n}\"}}")];
        let sum = page["rxo_nic_in_packets_total"];
        assert!((of(1) + of(2) - sum).abs() < 0.5, "{page:?}");
    }
    // A file that needs another number of workers changes nothing.
    let text = fs::read_to_string(&file).unwrap().replace("\"2\"", "\"1\"");
    fs::write(&file, text).unwrap();
    assert!(refusal(&control, "reload").contains("workers"));
    assert!(running.stop().unwrap().is_intact());
    assert_all_counted(&reload::totals(rxo));
}
