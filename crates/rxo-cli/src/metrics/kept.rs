//! Checks that the table of series matches the JSON of all commands, the listing in `docs/metrics.md`, the
//! example pages, and the names in the dashboard and in the rules.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use rxo::ack::SplitCounters;
use rxo::figures::{Figures, HostFigures, Readings};
use rxo::live::host::HostReading;
use rxo::worker::{Coalesce, Coalescing, Reading};
use rxo_device::SourceCounters;
use rxo_device::middleware::{ImpairmentCounters, WireCounters};
use serde_json::{Value, json, to_value};

use super::series::{self, Kind};
use super::table::ROWS;
use super::text;

/// Returns the totals of a worker with every part that a worker can have.
fn of_worker() -> Value {
    let impaired = ImpairmentCounters { lost: 1, ..ImpairmentCounters::default() };
    let wire = WireCounters { valid: 2, ..WireCounters::default() };
    let source = SourceCounters { impaired, wire, ..SourceCounters::default() };
    let coalescing = Coalescing { asked: Coalesce::Auto, ..Coalescing::default() };
    let guest = Reading { coalescing, ..Reading::default() };
    let all = Reading {
        nic_in: source,
        host_in: source,
        coalescing,
        split: Some(SplitCounters::default()),
        ..Reading::default()
    };
    let switch = Some(rxo::switch::SwitchCounters::default());
    let workers = vec![Reading::default()];
    let readings = Readings { all, guests: vec![guest], workers, switch };
    let mut json = to_value(Figures::totals(&readings, &["web".to_owned()])).unwrap();
    // A reason appears in the JSON only once it has occurred.
    json["bypass"]["pure_ack"] = 3.into();
    json["flush"]["end_of_poll"] = 4.into();
    json["switch"]["dropped"]["bad_source"] = 5.into();
    json["ack_split"]["passed"]["not_stretch"] = 6.into();
    json
}

/// Returns the counters of a host.
fn of_host() -> Value {
    let mut json =
        to_value(HostFigures::of_workers(&[HostReading::default(), HostReading::default()]))
            .unwrap();
    json["bypass"]["pure_ack"] = 3.into();
    json["flush"]["end_of_poll"] = 4.into();
    // The following are the only counters that are not zero in an idle process.
    for name in ["resident_bytes", "pooled_bytes"] {
        json["now"][name] = 0.into();
    }
    json
}

/// Returns the counters of `rxo cast join`, as its live tests read them.
fn of_join() -> Value {
    let of_worker = of_worker();
    let same = ["nic_in", "host_out", "host_in", "nic_out"];
    let mut json: Value = same.map(|name| (name, of_worker[name].clone())).into_iter().collect();
    json["group"] = json!({ "given": 1, "outside": 2, "refused": 3 });
    json
}

fn all() -> [(&'static str, Value); 3] {
    [("worker", of_worker()), ("host", of_host()), ("join", of_join())]
}

/// Collects the paths of all numbers in `json` into `to`.
fn numbers(json: &Value, at: &str, to: &mut Vec<String>) {
    match json {
        Value::Number(_) | Value::Bool(_) => to.push(at.to_owned()),
        Value::Object(fields) => {
            fields.iter().for_each(|(name, value)| numbers(value, &format!("{at}.{name}"), to));
        }
        Value::Array(elements) => elements.iter().for_each(|element| {
            let name = element["name"].as_str().unwrap();
            numbers(element, &format!("{at}.{name}"), to);
        }),
        Value::Null | Value::String(_) => {}
    }
}

/// Returns the paths of values that `ROWS` covers, with the number of rows for each.
fn rows_of(json: &Value) -> BTreeMap<String, usize> {
    let mut ways = BTreeMap::new();
    for found in ROWS.iter().flat_map(|row| series::found(row.path, json)) {
        if !found.value.is_object() {
            *ways.entry(found.at).or_default() += 1;
        }
    }
    ways
}

#[test]
fn every_counter_of_the_json_has_one_row_and_the_reverse() {
    for (commands, json) in all() {
        let mut counted = Vec::new();
        numbers(&json, "", &mut counted);
        let rows = rows_of(&json);
        let missing: Vec<_> = counted.iter().filter(|way| !rows.contains_key(*way)).collect();
        assert!(missing.is_empty(), "{commands}: no row in the table for {missing:#?}");
        let twice: Vec<_> = rows.iter().filter(|(_, times)| **times > 1).collect();
        assert!(twice.is_empty(), "{commands}: {twice:#?}");
        assert_eq!(counted.len(), rows.len(), "{commands}");
    }
    let is_found = |path| all().iter().any(|(_, json)| !series::found(path, json).is_empty());
    let unknown: Vec<_> = ROWS.iter().map(|row| row.path).filter(|path| !is_found(path)).collect();
    assert!(unknown.is_empty(), "no command counts {unknown:?}");
}

#[test]
fn names_are_those_of_prometheus_and_differ() {
    let mut names = BTreeSet::new();
    for row in ROWS.iter().filter(|row| row.kind != Kind::LeftOut) {
        let (name, _) = row.full_name();
        assert!(
            name.bytes()
                .all(|byte| byte.is_ascii_lowercase() || byte == b'_' || byte.is_ascii_digit())
        );
        assert!(!row.help.is_empty() && !row.help.ends_with('.'), "{name}: {}", row.help);
        assert!(names.insert(name), "{row:?}");
    }
}

/// Every series that a help text names must exist, and a row without a series must name those from which its
/// value follows.
#[test]
fn what_is_left_out_comes_from_series_that_there_are() {
    let names = names();
    for row in ROWS {
        for name in mentioned(row.help) {
            assert!(names.contains(&name), "{}: {name}", row.path);
        }
        assert!(row.kind != Kind::LeftOut || row.help.contains("rxo_"), "{row:?}");
    }
}

fn names() -> BTreeSet<String> {
    let rows = ROWS.iter().filter(|row| row.kind != Kind::LeftOut);
    rows.map(|row| row.full_name().0).chain([text::BUILD.0.to_owned()]).collect()
}

/// Returns the names of series in `text`.
fn mentioned(text: &str) -> BTreeSet<String> {
    let is_word = |byte: char| byte.is_ascii_alphanumeric() || byte == '_';
    let words = text.split(|byte| !is_word(byte));
    words.filter(|word| word.starts_with("rxo_")).map(str::to_owned).collect()
}

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// Compares `text` with the kept file at `path`, or writes that file.
fn is_kept(path: &str, text: &str) {
    let path = root().join(path);
    if std::env::var_os("RXO_SNAPSHOT").is_some_and(|value| value == "write") {
        std::fs::write(&path, text).unwrap();
    }
    let kept = std::fs::read_to_string(&path).unwrap();
    assert!(kept == text, "{}: RXO_SNAPSHOT=write writes it anew:\n{text}", path.display());
}

#[test]
fn the_listing_of_the_documentation_is_true() {
    const PATH: &str = "docs/metrics.md";
    const BEGIN: &str = "<!-- The table is made from crates/rxo-cli/src/metrics/table.rs. -->\n";
    let text = std::fs::read_to_string(root().join(PATH)).unwrap();
    let (before, _) = text.split_once(BEGIN).unwrap();
    is_kept(PATH, &format!("{before}{BEGIN}\n{}", listing()));
}

fn listing() -> String {
    let mut lines = "| series | labels | what it is | of |\n|---|---|---|---|\n".to_owned();
    let (name, labels, help) = text::BUILD;
    lines.push_str(&format!("| `{name}` | {} | {help} | all |\n", labels.join(", ")));
    for row in ROWS.iter().filter(|row| row.kind != Kind::LeftOut) {
        let (name, labels) = row.full_name();
        let all = all();
        let of = all.iter().filter(|(_, json)| !series::found(row.path, json).is_empty());
        let of: Vec<_> = of.map(|(commands, _)| *commands).collect();
        let (labels, of, help) = (labels.join(", "), of.join(", "), row.help.replace('|', "\\|"));
        lines.push_str(&format!("| `{name}` | {labels} | {help} | {of} |\n"));
    }
    lines
}

/// The kept pages equal rxo's output. `tests/promtool` checks them with promtool.
#[test]
fn the_example_pages_are_as_rxo_writes_them() {
    let pages = [("worker", "rxo guest", of_worker()), ("host", "rxo serve", of_host())];
    for (name, command, json) in pages {
        let families = series::of(ROWS, &json);
        let page = text::written("0.1.0", command, families).unwrap();
        is_kept(&format!("crates/rxo-cli/tests/promtool/{name}.prom"), &page);
    }
}

#[test]
fn the_dashboard_and_the_rules_name_series_that_there_are() {
    let names = names();
    for path in ["dashboard.json", "alerts.yml", "alerts.test.yml"] {
        let path = root().join("packaging/prometheus").join(path);
        let mentioned = mentioned(&std::fs::read_to_string(&path).unwrap());
        assert!(mentioned.len() > 3, "{}", path.display());
        let unknown: Vec<_> = mentioned.difference(&names).collect();
        assert!(unknown.is_empty(), "{}: there is no {unknown:?}", path.display());
    }
}

#[test]
fn the_dashboard_is_json_whose_panels_have_queries() {
    let path = root().join("packaging/prometheus/dashboard.json");
    let dashboard: Value = serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap();
    let panels = dashboard["panels"].as_array().unwrap();
    let mut ids = BTreeSet::new();
    for panel in panels {
        assert!(ids.insert(panel["id"].as_u64().unwrap()), "{panel}");
        let targets = panel["targets"].as_array().unwrap();
        assert!(!targets.is_empty() && panel["title"].is_string(), "{panel}");
        assert!(
            targets.iter().all(|target| !mentioned(target["expr"].as_str().unwrap()).is_empty())
        );
    }
}
