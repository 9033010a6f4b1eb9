//! `rxo guest --workers 2`: two workers of the switch, and guests that are Linux systems behind a TAP, which check
//! the order of datagrams and every byte of streams.

use std::collections::BTreeMap;
use std::fs;
use std::net::IpAddr;
use std::thread;

use rxo_testbed::{Lab, Mac, Namespace};
use serde_json::Value;

use crate::Test;
use crate::control::asked;
use crate::metrics::socket_page;
use crate::process::{Rxo, run, wait_until};
use crate::report::Scratch;
use crate::switch::{Sockets, address, totals};
use crate::traffic::{transfer, udp_transfer};

pub(crate) const TESTS: &[Test] = &[
    ("two_workers_of_a_switch_carry_all_in_order_and_count_all", both_ways),
    ("workers_of_a_switch_stay_on_their_processors_and_guests_do_not", bound),
    ("workers_of_a_switch_that_cannot_be_are_refused", refused),
];

/// A guest with a kernel of its own.
struct Guest {
    namespace: Namespace,
    _rxo: Rxo,
}

impl Guest {
    fn start(sockets: &Sockets, guest: usize) -> Self {
        let namespace = Namespace::new("guest").unwrap();
        let flags = format!("--nic virtio:{} --host tap:rxo0", sockets.path(guest));
        let (rxo, _) = Rxo::start(&namespace, &flags);
        let interface = namespace.interface("rxo0");
        interface.set_mac(mac(guest)).unwrap();
        interface.add_address(address(guest), 24).unwrap();
        interface.up().unwrap();
        Self { namespace, _rxo: rxo }
    }
}

fn mac(guest: usize) -> Mac {
    [0x52, 0x54, 0, 0, 0, 6 + guest as u8]
}

fn count(value: &Value) -> u64 {
    value.as_u64().unwrap()
}

/// Asserts that all frames of the nic and of the switch were counted, and that the workers' counters add up.
fn assert_all_counted(totals: &Value) {
    for name in ["unaccounted", "unsent"] {
        assert_eq!(totals[name], 0, "{name}: {totals}");
    }
    let mut stages = totals["imbalance"].as_object().unwrap().values();
    assert!(stages.all(|frames| *frames == 0), "{totals}");
    let workers = totals["workers"].as_array().unwrap();
    let sum = |name: &str| workers.iter().map(|worker| count(&worker[name])).sum::<u64>();
    assert_eq!(sum("packets"), count(&totals["nic_in"]["packets"]), "{totals}");
    let from_guests =
        totals["guests"].as_array().unwrap().iter().map(|guest| count(&guest["sent"]));
    assert_eq!(sum("sent"), from_guests.sum::<u64>(), "{totals}");
    // With so many connections, each worker has some.
    let is_busy = |worker: &Value| count(&worker["packets"]) > 200 && count(&worker["sent"]) > 200;
    assert!(workers.len() == 2 && workers.iter().all(is_busy), "{totals}");
}

/// Each pair of peer and guests exchanges streams and datagrams in both directions, all pairs at once.
fn both_ways() {
    let (lab, sockets, scratch) =
        (Lab::through().unwrap(), Sockets::new("workers"), Scratch::new("switch-workers"));
    let [control, metrics] = ["ctl.sock", "page.sock"].map(|name| scratch.file(name));
    let flags = format!(
        "{} --workers 2 --stats 100ms --control {} --metrics unix:{}",
        sockets.flags(&["", ",mac=52:54:00:00:00:07"]),
        control.display(),
        metrics.display()
    );
    let (rxo, configuration) = Rxo::guests(lab.host(), &flags);
    assert_eq!(configuration["workers"], 2);
    let guests = [0, 1].map(|n| Guest::start(&sockets, n));
    let peer: IpAddr = [10, 77, 0, 1].into();
    let [one, two] = guests.each_ref().map(|guest| &guest.namespace);
    let pairs = [
        (lab.peer(), (one, address(0))),
        (one, (lab.peer(), peer)),
        (lab.peer(), (two, address(1))),
        (one, (two, address(1))),
        (two, (one, address(0))),
    ];
    thread::scope(|scope| {
        for (from, (to, at)) in pairs {
            scope.spawn(move || {
                transfer(from, to, at, 8, 400_000);
                udp_transfer(from, to, at, 1_200);
            });
        }
    });
    let policies = asked(&control, "policies");
    let engines = policies["engines"].as_array().unwrap();
    let names: Vec<_> = engines.iter().map(|engine| &engine["engine"]).collect();
    assert_eq!(names, ["g0", "g1"], "{policies}");
    asked(&control, "policy=none");
    transfer(lab.peer(), one, address(0), 4, 100_000);
    let counters = asked(&control, "counters");
    assert_eq!(counters["workers"].as_array().unwrap().len(), 2, "{counters}");
    let page = socket_page(&metrics);
    let of = |n: u32| page[&format!("rxo_worker_packets_total{{worker=\"{n}\"}}")];
    assert!(of(1) > 200.0 && of(2) > 200.0, "{page:?}");
    drop(guests);
    assert_all_counted(&totals(rxo));
}

/// Returns the processors on which each thread of the switch and of the guests may run, by name.
fn threads(worker: u32) -> BTreeMap<String, String> {
    let tasks = fs::read_dir(format!("/proc/{worker}/task")).unwrap().flatten();
    let of_task = |task: fs::DirEntry| {
        let status = fs::read_to_string(task.path().join("status")).ok()?;
        let value = |name: &str| {
            let line = status.lines().find_map(|line| line.strip_prefix(name))?;
            Some(line.trim().to_owned())
        };
        let is_first = task.file_name().to_str() == Some(&worker.to_string());
        let name = if is_first { Some("first".to_owned()) } else { value("Name:") }?;
        Some((name, value("Cpus_allowed_list:")?))
    };
    let of_interest = |name: &str| {
        name == "first" || name.starts_with("rxo-worker") || name.starts_with("rxo-guest")
    };
    tasks.filter_map(of_task).filter(|(name, _)| of_interest(name)).collect()
}

fn bound() {
    let (lab, sockets) = (Lab::through().unwrap(), Sockets::new("bound"));
    for (workers, hubs) in
        [(1, vec![("first", "1")]), (2, vec![("first", "1"), ("rxo-worker-2", "0")])]
    {
        let flags = format!("{} --workers {workers} --cpus 1,0", sockets.flags(&[""; 2]));
        let (rxo, configuration) = Rxo::guests(lab.host(), &flags);
        assert_eq!(configuration["cpus"].as_array().unwrap().len(), workers);
        let all = |found: &BTreeMap<_, _>| {
            let is_bound =
                |(name, cpu): &(&str, &str)| found.get(*name).is_some_and(|it| it == cpu);
            let is_free =
                |name: &str| found.get(name).is_some_and(|it: &String| it != "0" && it != "1");
            hubs.iter().all(is_bound) && ["rxo-guest-1", "rxo-guest-2"].into_iter().all(is_free)
        };
        wait_until("the workers are bound, and no guest is", || all(&threads(rxo.worker())));
        totals(rxo);
    }
}

fn refused() {
    let (lab, sockets) = (Lab::through().unwrap(), Sockets::new("no-workers"));
    let rows = [
        ("--workers 0", "--workers 0: give a number from 1 to 64, or auto"),
        ("--workers 2 --cpus 3", "--cpus 3: 1 processors for 2 workers; give one for each"),
        ("--workers 2 --cpus 1023-1024", "cannot bind a worker to processor 1023"),
    ];
    let flags = sockets.flags(&[""]);
    let one_queue = flags.replace("packet:wire0", "xdp:wire0") + " --workers 2";
    let rows = rows.map(|(more, message)| (format!("{flags} {more}"), message));
    let has_one = (one_queue, "--workers 2: xdp:wire0 has one queue; give 1, or use packet:IFNAME");
    for (flags, message) in rows.into_iter().chain([has_one]) {
        let output = run(lab.host(), &format!("guest {flags}"));
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.code() == Some(2) && said.contains(message), "{flags}: {said}");
        assert_eq!(said.trim_end().lines().count(), 1, "{said}");
    }
    let dry = run(lab.host(), &format!("guest {flags} --workers auto --json --dry-run"));
    let configuration: Value = serde_json::from_slice(&dry.stdout).unwrap();
    assert_eq!(configuration["workers"], Value::Null, "a veth has one queue");
}
