//! `--control SOCKET` and `rxo ctl` show and change settings; no frame is lost by a change.

pub(crate) mod socket;

use std::io::Write;
use std::net::TcpStream;
use std::path::Path;
use std::process::Output;
use std::thread;

use rxo_control::{Request, Session};
use rxo_testbed::traffic::{BulkConfig, BulkTransfer};
use rxo_testbed::{Lab, Namespace};
use serde_json::Value;

use crate::Test;
use crate::endpoint::{AT_HOST, connect, hash, json, pattern, read_all, send_all, serve};
use crate::process::{Rxo, command, run, spawn, wait_until};
use crate::report::Scratch;
use crate::traffic::totals;

pub(crate) const TESTS: &[Test] = &[
    ("a_run_shows_and_changes_what_it_is_asked", a_run_is_asked),
    ("what_cannot_be_is_refused_in_one_line", refused),
    ("a_run_whose_rules_change_all_the_time_loses_nothing", toggled_run),
    ("a_host_whose_rules_change_all_the_time_loses_nothing", toggled_host),
    ("a_sender_whose_fast_path_is_switched_all_the_time_loses_nothing", toggled_fast_path),
    ("every_connection_is_listed_once", many_connections),
    ("guests_change_their_rules_together", guests),
    ("a_card_has_counters_and_no_policy", card),
    ("the_socket_is_its_owners_and_goes_however_a_run_ends", socket::file),
    ("another_user_is_let_in_by_the_mode_alone", socket::another_user),
    ("a_client_that_pauses_delays_nobody", socket::paused_client),
];

const RUN: &str = "--nic packet:wire0 --host tap:rxo0";

fn ctl(line: &str) -> Output {
    command(&format!("ctl {line}")).output().unwrap()
}

/// Returns the answer of `rxo ctl SOCKET REQUEST --json`.
pub(crate) fn asked(socket: &Path, request: &str) -> Value {
    let mut pages = asked_for_pages(socket, request);
    assert_eq!(pages.len(), 1, "{request}");
    pages.remove(0)
}

/// Returns all pages of the answer of `rxo ctl SOCKET REQUEST --json`.
pub(crate) fn asked_for_pages(socket: &Path, request: &str) -> Vec<Value> {
    let output = ctl(&format!("{} {request} --json", socket.display()));
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!((output.status.code(), &*said), (Some(0), ""), "{request}");
    let pages = serde_json::Deserializer::from_slice(&output.stdout).into_iter::<Value>();
    let page = |page: Result<Value, _>| {
        let mut page = page.unwrap();
        assert_eq!(page["version"], 1);
        page["ok"].take()
    };
    pages.map(page).collect()
}

/// Returns the line on standard error of a request that must be refused.
pub(crate) fn refusal(socket: &Path, request: &str) -> String {
    let output = ctl(&format!("{} {request}", socket.display()));
    let said = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.stdout, b"", "{request}");
    assert_ne!(output.status.code(), Some(0), "{request}");
    assert_eq!(said.lines().count(), 1, "{said}");
    said
}

fn ask(session: &mut Session, name: &str, value: &str) -> Value {
    let request = Request { name: name.into(), value: Some(value.into()), ..Request::default() };
    session.ask(&request).unwrap().result.unwrap_or_else(|error| panic!("{name}={value}: {error}"))
}

pub(crate) fn transfer(from: &Namespace, to: &Namespace, lab: &Lab) -> BulkTransfer {
    let config = BulkConfig { connections: 4, ..BulkConfig::default() };
    let is_host = std::ptr::eq(to, lab.host());
    let address = if is_host { lab.host_address() } else { lab.peer_address() };
    BulkTransfer::start(from, to, address, &config).unwrap()
}

fn a_run_is_asked() {
    let (scratch, lab) = (Scratch::new("ctl-run"), Lab::through().unwrap());
    let socket = scratch.file("run.sock");
    let flags = format!("{RUN} --stats 3600s --control {}", socket.display());
    let (mut rxo, configuration) = Rxo::start(lab.host(), &flags);
    assert_eq!(configuration["control"], socket.display().to_string());
    lab.attach_host("rxo0").unwrap();
    let config = BulkConfig { bytes_per_connection: Some(3_000_000), ..BulkConfig::default() };
    let moved = BulkTransfer::start(lab.peer(), lab.host(), lab.host_address(), &config).unwrap();
    assert!(moved.wait().unwrap().is_intact());

    let help = String::from_utf8(ctl(&socket.display().to_string()).stdout).unwrap();
    for name in ["counters", "policies", "policy[=NAME]", "hold[=", "stats[=TIME]"] {
        assert!(help.contains(name), "{name} is not in {help}");
    }
    assert!(!help.contains("connections"), "it has none of its own: {help}");

    let counters = asked(&socket, "counters");
    assert!(counters["nic_in"]["packets"].as_u64().unwrap() > 2_000, "{counters}");
    let text = String::from_utf8(ctl(&format!("{} counters", socket.display())).stdout).unwrap();
    assert!(text.contains("nic_in\n  bytes ") && !text.contains('{'), "{text}");

    assert_eq!(asked(&socket, "hold")["hold"], "end-of-poll");
    let changed = asked(&socket, "hold=auto");
    assert_eq!(changed["hold"], "auto:50us,8");
    assert_eq!(changed["takes_effect"], "with the next batch; what was held is delivered first");
    wait_until("the hold is in force", || {
        asked(&socket, "policies")["engines"][0]["settings"]["hold"] == "auto:50us,8"
    });
    asked(&socket, "policy=menon-2008 max_segments=7");
    wait_until("the policy is in force", || {
        let engine = asked(&socket, "policy")["engines"][0].take();
        engine["policy"] == "menon-2008" && engine["settings"]["max_segments"] == 7
    });
    // Fields alone modify the current policy.
    let changed = asked(&socket, "policy flows=9");
    assert_eq!(
        (&changed["policy"], &changed["settings"]["flows"]),
        (&"menon-2008".into(), &9.into())
    );
    assert_eq!(changed["settings"]["max_segments"], 7);

    assert_eq!(asked(&socket, "coalesce")["host"]["on"], true);
    asked(&socket, "coalesce=off");
    wait_until("it is off", || asked(&socket, "coalesce")["host"]["on"] == false);
    assert_eq!(asked(&socket, "policies")["engines"][0]["coalescing"]["asked"], "off");
    // The shown policy is the one that applies again after `coalesce=on`.
    assert_eq!(asked(&socket, "policy")["engines"][0]["policy"], "menon-2008");
    asked(&socket, "coalesce=on");

    // The next line comes long before the hour has passed.
    assert_eq!(asked(&socket, "stats")["stats_s"], 3600.0);
    assert_eq!(asked(&socket, "stats=100ms")["stats_s"], 0.1);
    assert_eq!(rxo.next()["kind"], "interval");
    assert_eq!(asked(&socket, "stats=0s")["stats_s"], Value::Null);
    totals(rxo);
}

fn refused() {
    let (scratch, lab) = (Scratch::new("ctl-refused"), Lab::through().unwrap());
    let socket = scratch.file("run.sock");
    let flags = format!("{RUN} --control {}", socket.display());
    let (rxo, _) = Rxo::start(lab.host(), &flags);
    let rows = [
        (
            "colour",
            "there is no request `colour` here; there are counters, policies, policy, hold, coalesce",
        ),
        ("connections", "there is no request `connections` here; there are"),
        ("policy=x", "policy=x: there is no policy 'x'; take one of linux-gro"),
        ("policy=remember", "policy remember does not fit the host's device"),
        ("policy flows=0", "flows=0 is invalid: a number from 1 to 4096"),
        ("coalesce=yes", "coalesce=yes: give auto, on or off"),
        ("hold=1h", "hold=1h is invalid: end-of-poll, polls:N"),
        ("hold=auto now=yes", "hold has no field now; leave it out"),
        ("counters=1", "counters=1: counters only shows; leave the value out"),
        ("stats=1d", "stats=1d: give a time from 100ms to 3600s"),
        ("hold auto", "auto: after hold write KEY=VALUE"),
    ];
    for (request, message) in rows {
        let said = refusal(&socket, request);
        assert!(said.starts_with(&format!("rxo: {message}")), "{request}: {said}");
    }
    // With `--json` a refusal is printed as an answer, too.
    let output = ctl(&format!("{} hold=1h --json", socket.display()));
    let answer: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert!(answer["error"].as_str().unwrap().starts_with("hold=1h is invalid"), "{answer}");
    assert_eq!(output.status.code(), Some(1));
    // The refused request changed nothing.
    let engine = asked(&socket, "policies")["engines"][0].take();
    assert_eq!(
        (&engine["policy"], &engine["settings"]["flows"]),
        (&"linux-gro".into(), &64.into())
    );

    // A second run fails to get the socket, and has changed nothing by then.
    let output = run(
        lab.host(),
        &format!("run --nic packet:wire0 --host tap:b --control {}", socket.display()),
    );
    let said = String::from_utf8(output.stderr).unwrap();
    assert!(said.contains("a process listens there; end it or choose another path"), "{said}");
    assert_eq!(said.lines().count(), 1, "{said}");
    let dry =
        format!("run --nic packet:wire0 --host tap:b --dry-run --control {}", socket.display());
    assert!(!run(lab.host(), &dry).status.success());
    totals(rxo);
    let gone = refusal(&socket, "counters");
    assert!(gone.contains("there is no socket") && gone.contains("--control"), "{gone}");
}

/// Requests to an engine, sent repeatedly: every kind of hold, and rules that hold nothing.
const TOGGLES: [(&str, &str); 16] = [
    ("hold", "auto"),
    ("policy", "none"),
    ("coalesce", "off"),
    ("coalesce", "auto"),
    ("policy", "menon-2008"),
    ("hold", "200us"),
    ("policy", "linux-gro"),
    ("coalesce", "off"),
    ("hold", "polls:3"),
    ("coalesce", "on"),
    ("hold", "packets:40"),
    ("policy", "rsc2"),
    ("hold", "end-of-poll"),
    ("policy", "xen-delayed"),
    ("hold", "20ms"),
    ("policy", "inet-lro"),
];

/// Sends all these requests, `rounds` times.
fn toggle(socket: &Path, rounds: usize) {
    let mut session = Session::open(socket).unwrap();
    for (name, value) in TOGGLES.iter().cycle().take(rounds * TOGGLES.len()) {
        ask(&mut session, name, value);
    }
}

fn toggled_run() {
    let (scratch, lab) = (Scratch::new("ctl-toggled"), Lab::through().unwrap());
    let socket = scratch.file("run.sock");
    let (rxo, _) = Rxo::start(lab.host(), &format!("{RUN} --control {}", socket.display()));
    lab.attach_host("rxo0").unwrap();
    let (there, back) =
        (transfer(lab.peer(), lab.host(), &lab), transfer(lab.host(), lab.peer(), &lab));
    wait_until("bytes arrive", || there.received_bytes().min(back.received_bytes()) > 5_000_000);
    let before = (there.received_bytes(), back.received_bytes());
    toggle(&socket, 10);
    wait_until("bytes still arrive, and a change met what was held", || {
        toggle(&socket, 1);
        asked(&socket, "counters")["flush"]["policy_change"].as_u64() > Some(0)
            && there.received_bytes() > before.0 + 1_000_000
            && back.received_bytes() > before.1 + 1_000_000
    });
    // Every byte is compared with the byte that was sent.
    assert!(there.stop().unwrap().is_intact());
    assert!(back.stop().unwrap().is_intact());
    let totals = totals(rxo);
    for side in ["host_out", "nic_out"] {
        assert_eq!(totals[side]["dropped"], 0, "{totals}");
    }
    assert!(totals["flush"]["policy_change"].as_u64().unwrap_or(0) > 0, "{}", totals["flush"]);
}

fn toggled_host() {
    let (scratch, lab) = (Scratch::new("ctl-host"), Lab::through().unwrap());
    let socket = scratch.file("sink.sock");
    let line = format!(
        "sink --nic packet:wire0 --ip 10.77.0.2/24 --listen 7000 --connections 2 --hash --json \
         --interval 0s --control {}",
        socket.display()
    );
    let sink = spawn(lab.host(), &line);
    let streams = [connect(lab.peer(), AT_HOST), connect(lab.peer(), AT_HOST)];
    let bytes = pattern(60_000_000);
    let send = |stream: &TcpStream| send_all(stream, &bytes);
    thread::scope(|scope| {
        let senders = streams.each_ref().map(|stream| scope.spawn(move || send(stream)));
        let mut session = Session::open(&socket).unwrap();
        let mut asked = 0;
        for (name, value) in TOGGLES.iter().cycle() {
            if senders.iter().all(|sender| sender.is_finished()) || asked > 100_000 {
                break;
            }
            let request = Request {
                name: (*name).into(),
                value: Some((*value).into()),
                ..Request::default()
            };
            // The sink ends once it has received both transfers.
            let Ok(answer) = session.ask(&request) else { break };
            asked += usize::from(answer.result.is_ok());
        }
        assert!(asked > 20, "{asked}");
    });
    let totals = json(&sink.wait_with_output().unwrap()).pop().unwrap();
    let ends = totals["ends"].as_array().unwrap();
    assert_eq!(ends.len(), 2);
    assert!(ends.iter().all(|end| end["crc32"] == *hash(&bytes)), "{ends:?}");
}

/// Switches to send repeatedly.
const MODULES: [&str; 6] =
    ["on", "off", "pure-ack,accounting", "accounting", "pure-ack", "syn-flood"];

/// The fast path is switched repeatedly while it consumes the pure ACKs that a sender receives.
fn toggled_fast_path() {
    let (scratch, lab) = (Scratch::new("ctl-fast"), Lab::through().unwrap());
    let socket = scratch.file("source.sock");
    let server = serve(&lab, 4, |stream| {
        let all = read_all(&stream);
        (all.len() as u64, hash(&all))
    });
    let line = format!(
        "source --nic packet:wire0 --ip 10.77.0.2/24 10.77.0.1:7000 --bytes 60M --connections 4 \
         --hash --json --interval 0s --control {}",
        socket.display()
    );
    let source = spawn(lab.host(), &line);
    wait_until("it can be asked", || Session::open(&socket).is_ok());
    let mut session = Session::open(&socket).unwrap();
    let one = Request { name: "fast-path".into(), ..Request::default() };
    for (value, with) in [(Some("pure-ack,filter"), None), (None, Some("filter"))] {
        let value = value.map(str::to_owned);
        let with = with.map(|module| (module.to_owned(), "on".to_owned())).into_iter().collect();
        let said =
            session.ask(&Request { value, with, ..one.clone() }).unwrap().result.unwrap_err();
        assert!(said.contains("the filter has no rule; start rxo source with one"), "{said}");
    }
    let refused = Request { with: [("acks".into(), "on".into())].into(), ..one.clone() };
    let said = session.ask(&refused).unwrap().result.unwrap_err();
    assert!(said.contains("fast-path has no field acks; it has pure-ack, syn-flood"), "{said}");
    let off = Request { with: [("pure-ack".into(), "off".into())].into(), ..one.clone() };
    assert_eq!(session.ask(&off).unwrap().result.unwrap()["modules"]["pure-ack"], "off");
    let (mut switched, mut consumed) = (0, 0);
    for modules in MODULES.iter().cycle() {
        let switch = Request { value: Some((*modules).into()), ..one.clone() };
        // The source ends once it has sent everything.
        let (Ok(answer), Ok(shown)) = (session.ask(&switch), session.ask(&one)) else { break };
        switched += usize::from(answer.result.is_ok());
        let Ok(shown) = shown.result else { break };
        consumed = shown["counters"]["consumed"].as_u64().unwrap().max(consumed);
    }
    assert!(switched > 20 && consumed > 0, "{switched} switched, {consumed} consumed");
    let totals = json(&source.wait_with_output().unwrap()).pop().unwrap();
    let ends = totals["ends"].as_array().unwrap().iter();
    let sent: Vec<_> = ends
        .map(|end| (end["bytes"].as_u64().unwrap(), end["crc32"].as_str().unwrap().to_owned()))
        .collect();
    assert_eq!(server.join().unwrap(), sent);
    assert!(sent.iter().all(|(bytes, _)| *bytes == 60_000_000), "{sent:?}");
}

fn many_connections() {
    // More connections than fit into one page of answers.
    const COUNT: usize = 300;
    let (scratch, lab) = (Scratch::new("ctl-many"), Lab::through().unwrap());
    let socket = scratch.file("sink.sock");
    let line = format!(
        "sink --nic packet:wire0 --ip 10.77.0.2/24 --listen 7000 --connections {COUNT} --json \
         --interval 0s --control {}",
        socket.display()
    );
    let sink = spawn(lab.host(), &line);
    let mut streams: Vec<_> = (0..COUNT).map(|_| connect(lab.peer(), AT_HOST)).collect();
    for stream in &mut streams {
        stream.write_all(b"hello").unwrap();
    }
    let pages = || -> Vec<Value> {
        let output = ctl(&format!("{} connections --json", socket.display()));
        let text = String::from_utf8(output.stdout).unwrap();
        text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
    };
    let all = || -> Vec<Value> {
        let rows = |page: &Value| page["ok"]["connections"].as_array().unwrap().clone();
        pages().iter().flat_map(rows).collect()
    };
    wait_until("all have said hello", || {
        all().iter().filter(|row| row["bytes_received"] == 5).count() == COUNT
    });
    assert_eq!(pages().len(), COUNT.div_ceil(256));
    let mut peers: Vec<_> =
        all().iter().map(|row| row["peer"].as_str().unwrap().to_owned()).collect();
    let mut expected: Vec<_> =
        streams.iter().map(|stream| stream.local_addr().unwrap().to_string()).collect();
    peers.sort();
    expected.sort();
    assert_eq!(peers, expected);
    let row = &all()[0];
    assert_eq!((&row["state"], &row["local"]), (&"ESTAB".into(), &AT_HOST.into()), "{row}");
    assert_eq!((&row["congestion"], &row["mss"]), (&"cubic".into(), &1448.into()), "{row}");
    let text = String::from_utf8(ctl(&format!("{} connections", socket.display())).stdout).unwrap();
    assert_eq!(text.lines().count(), 1 + 2 * COUNT);
    assert!(
        text.starts_with("State") && text.contains(" cubic ") && text.contains(" rto:"),
        "{text}"
    );
    let counters = asked(&socket, "counters");
    assert_eq!(counters["now"]["connections"], COUNT);
    drop(streams);
    assert_eq!(json(&sink.wait_with_output().unwrap()).pop().unwrap()["bytes"], 5 * COUNT);
}

fn guests() {
    let (scratch, lab) = (Scratch::new("ctl-guests"), Lab::through().unwrap());
    let [socket, a, b] = ["ctl.sock", "a.sock", "b.sock"].map(|name| scratch.file(name));
    let flags = format!(
        "--nic packet:wire0 --vhost a={},learn=yes --vhost b={},learn=yes --control {}",
        a.display(),
        b.display(),
        socket.display()
    );
    let (rxo, _) = Rxo::guests(lab.host(), &flags);
    let engines = || asked(&socket, "policies")["engines"].take();
    let names = |engines: &Value| -> Vec<Value> {
        engines.as_array().unwrap().iter().map(|engine| engine["engine"].clone()).collect()
    };
    assert_eq!(names(&engines()), ["a", "b"]);
    asked(&socket, "hold=end-of-poll");
    let in_force = |hold: &str| {
        engines().as_array().unwrap().iter().all(|engine| engine["settings"]["hold"] == hold)
    };
    wait_until("both hold nothing", || in_force("end-of-poll"));
    // The kernel's profile holds adaptively for guests, as initially.
    asked(&socket, "policy=linux-gro");
    wait_until("both hold adaptively", || in_force("auto:50us,8"));
    let counters = asked(&socket, "counters");
    assert_eq!(counters["guests"].as_array().unwrap().len(), 2);
    assert!(counters["switch"]["dropped"].is_object(), "{counters}");
    totals(rxo);
}

fn card() {
    let (scratch, lab) = (Scratch::new("ctl-card"), Lab::through().unwrap());
    let [socket, guest] = ["ctl.sock", "card.sock"].map(|name| scratch.file(name));
    let flags = format!(
        "--wire packet:wire0 --guest vhost:{} --control {}",
        guest.display(),
        socket.display()
    );
    let (rxo, _) = Rxo::start_card(lab.host(), &flags);
    assert_eq!(asked(&socket, "counters")["kind"], "totals");
    asked(&socket, "stats=0s");
    let said = refusal(&socket, "policy=none");
    assert!(
        said.contains("there is no request `policy` here; there are counters, stats"),
        "{said}"
    );
    totals(rxo);
}
