//! Tests the HTML report in a real browser: it is quiet, readable in both schemes and at all
//! widths,
//! sortable, and not broken by the contents of captures and file names.
//!
//! Needs the Debian package `chromium`. Without it the tests count as ignored, and fail if
//! `CI=true`, so nothing is skipped silently.
#![allow(clippy::unwrap_used, reason = "tests, which the lint does not see without the harness")]

mod chromium;
#[path = "../fixture/mod.rs"]
mod fixture;

use std::fs;
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::{Mutex, PoisonError};

use libtest_mimic::{Arguments, Trial};
use rxo_trace::report::{FlowReport, Report};
use serde_json::{Value, json};

use self::chromium::Browser;

const TESTS: [(&str, fn()); 10] = [
    ("the_page_asks_nobody_and_complains_of_nothing", quiet),
    ("names_from_outside_stay_names", hostile_names_stay_names),
    ("the_flow_table_sorts_on_click", the_flow_table_sorts_on_click),
    ("without_script_the_flow_table_is_a_table", without_script_it_is_a_table),
    ("every_figure_is_there_at_both_widths", every_figure_is_there),
    ("nothing_is_cut_at_any_width", nothing_is_cut),
    ("every_count_is_there_and_no_markup", every_count_is_there),
    ("counts_are_drawn_as_steps", counts_are_drawn_as_steps),
    ("everything_can_be_read_in_both_schemes", everything_can_be_read),
    ("on_paper_nothing_is_folded_away", on_paper_nothing_is_folded_away),
];

fn main() -> ExitCode {
    let mut arguments = Arguments::from_args();
    // One browser at a time: two on two cores would wait for each other.
    arguments.test_threads = Some(1);
    let is_there = chromium::is_installed();
    let is_ci = std::env::var("CI").is_ok_and(|value| value == "true");
    if !is_there {
        eprintln!("the HTML report was not looked at: {}", chromium::REMEDY);
    }
    let trial = |(name, test): (&str, fn())| {
        let run = move || {
            test();
            Ok(())
        };
        Trial::test(name, run).with_ignored_flag(!is_there && !is_ci)
    };
    let conclusion = libtest_mimic::run(&arguments, TESTS.into_iter().map(trial).collect());
    let mut own = BROWSER.lock().unwrap_or_else(PoisonError::into_inner);
    own.take();
    let left = chromium::helpers(&chromium::own_folder());
    if !left.is_empty() {
        eprintln!("processes of the browser are left: {}", left.join(" "));
        return ExitCode::FAILURE;
    }
    conclusion.exit_code()
}

/// One browser for all tests, started by the first.
static BROWSER: Mutex<Option<Browser>> = Mutex::new(None);

/// Shows `report` and passes the browser to `look`.
fn with_page(report: &Report, width: u32, scheme: &str, look: impl FnOnce(&mut Browser)) {
    let mut own = BROWSER.lock().unwrap_or_else(PoisonError::into_inner);
    // After a failure, the next test gets a new browser.
    let mut browser = own.take().unwrap_or_else(Browser::start);
    let page = PageFile::write(report);
    browser.show(&page.0, width, scheme);
    look(&mut browser);
    *own = Some(browser);
}

/// A page in a file that is removed afterwards.
struct PageFile(PathBuf);

impl PageFile {
    fn write(report: &Report) -> Self {
        let path = std::env::temp_dir().join(format!("rxo-page-{}.html", std::process::id()));
        rxo_trace::html::write(report, &path).unwrap();
        Self(path)
    }
}

impl Drop for PageFile {
    fn drop(&mut self) {
        _ = fs::remove_file(&self.0);
    }
}

/// Returns everything that the page logged, or requested besides itself.
fn complaints(events: &[Value]) -> Vec<String> {
    let bad = events.iter().filter(|event| match event["method"].as_str() {
        Some("Runtime.consoleAPICalled" | "Runtime.exceptionThrown" | "Log.entryAdded") => true,
        Some("Network.requestWillBeSent") => {
            let url = event["params"]["request"]["url"].as_str().unwrap_or_default();
            event["params"]["type"] != "Document" && !url.starts_with("data:")
        }
        _ => false,
    });
    bad.map(Value::to_string).collect()
}

fn quiet() {
    for report in [fixture::report(), fixture::one_axis(), fixture::live(), Report::default()] {
        with_page(&report, 1280, "light", |browser| {
            // A second call, so that its events have arrived before the answer.
            assert!(browser.value("document.title").as_str().unwrap().starts_with("What"));
            assert_eq!(complaints(&browser.events), Vec::<String>::new());
            let documents = |event: &&Value| event["method"] == "Network.requestWillBeSent";
            assert!(browser.events.iter().any(|event| documents(&event)), "nothing was watched");
        });
    }
}

fn hostile_names_stay_names() {
    let structure = "['table', 'figure', 'section', 'script', 'img', 'style'].map(name => \
                     document.querySelectorAll(name).length).join(' ')";
    let mut shapes = Vec::new();
    for report in [with_partial(), fixture::hostile()] {
        with_page(&report, 1280, "light", |browser| {
            shapes.push(browser.value(structure));
            assert_ne!(browser.value("document.title"), "owned");
            assert_eq!(complaints(&browser.events), Vec::<String>::new());
        });
    }
    // One style for the page; no additional script and no image in the body.
    assert_eq!(shapes[0], shapes[1]);
    assert!(shapes[1].as_str().unwrap().ends_with(" 1 0 1"), "{shapes:?}");
}

/// Returns the fixture, with every section of the hostile one.
fn with_partial() -> Report {
    let mut report = fixture::report();
    report.partial = Some("damaged".into());
    report.notes.truncate(1);
    report
}

fn the_flow_table_sorts_on_click() {
    let report = fixture::report();
    let expected = |key: fn(&FlowReport) -> u64, descending: bool| {
        let mut flows: Vec<_> = report.flows.iter().collect();
        flows.sort_by_key(|flow| key(flow));
        if descending {
            flows.reverse();
        }
        flows.iter().map(|flow| flow.source.clone()).collect::<Vec<_>>()
    };
    let lasted = |flow: &FlowReport| flow.last_ns - flow.first_ns;
    let mut sources: Vec<_> = report.flows.iter().map(|flow| flow.source.clone()).collect();
    sources.sort();
    with_page(&report, 1280, "light", |browser| {
        assert_eq!(order(browser), expected(|flow| flow.packets, true));
        let clicks = [
            (10, "descending", expected(lasted, true)),
            (10, "ascending", expected(lasted, false)),
            (2, "descending", expected(|flow| flow.packets, true)),
            (1, "ascending", sources.clone()),
        ];
        for (column, direction, sorted) in clicks {
            browser.click(&format!("#flows th:nth-child({column}) button"));
            let head = format!("#flows th:nth-child({column})");
            let said = browser
                .value(&format!("document.querySelector('{head}').getAttribute('aria-sort')"));
            assert_eq!(said, direction, "column {column}");
            assert_eq!(order(browser), sorted, "column {column} {direction}");
        }
        let marked = browser.value("document.querySelectorAll('#flows [aria-sort]').length");
        assert_eq!(marked, 1);
    });
}

/// Returns the sources of the flows in the table, from top to bottom.
fn order(browser: &mut Browser) -> Vec<String> {
    let cells = browser.value(
        "[...document.querySelectorAll('#flows tbody tr')].map(row => row.cells[0].textContent.split(' ')[0])",
    );
    cells.as_array().unwrap().iter().map(|cell| cell.as_str().unwrap().to_owned()).collect()
}

fn without_script_it_is_a_table() {
    let report = fixture::report();
    let switch = |browser: &mut Browser, off: bool| {
        browser.call("Emulation.setScriptExecutionDisabled", &json!({ "value": off }));
    };
    with_page(&report, 1280, "light", |browser| {
        switch(browser, true);
        browser.load("Page.reload", &json!({}));
        let document = browser.call("DOM.getDocument", &json!({ "depth": 0 }));
        let node = json!({ "nodeId": document["root"]["nodeId"] });
        let page = browser.call("DOM.getOuterHTML", &node);
        switch(browser, false);
        let outer = page["outerHTML"].as_str().unwrap();
        assert!(!outer.contains("<button"), "a script has run");
        let flows = outer.split("id=\"flows\"").nth(1).unwrap().split("</table>").next().unwrap();
        assert_eq!(flows.matches("<tr>").count(), report.flows.len() + 1, "{flows}");
    });
}

fn every_figure_is_there() {
    let reports = [(fixture::report(), 12), (fixture::one_axis(), 13), (fixture::live(), 13)];
    for (report, figures) in reports {
        for width in [1280, 1000, 700, 400, 320] {
            with_page(&report, width, "light", |browser| {
                let found = browser.value(include_str!("figures.js"));
                assert_eq!(found["faults"], json!([]), "at {width} px");
                assert_eq!(found["figures"], figures);
            });
        }
    }
}

/// Widths at which the layout changes, with both sides of each change.
const WIDTHS: [u32; 9] = [1600, 1280, 1180, 1179, 1000, 721, 720, 400, 320];

fn nothing_is_cut() {
    let reports =
        [large(), fixture::one_axis(), fixture::live(), fixture::hostile(), Report::default()];
    for report in reports {
        for width in WIDTHS {
            with_page(&report, width, "light", |browser| {
                browser.value("document.querySelectorAll('details').forEach(d => d.open = true)");
                let found = browser.value(include_str!("cut.js"));
                assert_eq!(found["faults"], json!([]), "at {width} px");
            });
        }
    }
}

/// Returns the fixture with numbers and names of maximum length.
fn large() -> Report {
    let mut report = fixture::report();
    for (index, flow) in report.flows.iter_mut().enumerate() {
        flow.source = format!("[2001:db8:1234:5678:9abc:def0:1234:{index:x}]:65535");
        flow.destination = "[fd00:1234:5678:9abc:def0:1234:5678:9abc]:65535".into();
        flow.packets = 12_345_678_901;
        flow.bytes = flow.packets * 1_514;
        flow.data_segments = flow.packets;
        flow.pure_acks = flow.packets;
        flow.aggregates = flow.packets;
        flow.aggregated_segments = flow.packets;
        flow.last_ns = 999_999_000_000_000;
    }
    report.traffic.packets = 12_345_678_901;
    report.outcome.packets = 12_345_678_901;
    report.outcome.settings.push(("buffer_bytes".into(), u32::MAX.to_string()));
    for reason in &mut report.outcome.flushed {
        reason.count = 123_456_789_012;
    }
    report
}

fn every_count_is_there() {
    let mut report = fixture::report();
    report.outcome.settings.push(("buffer_bytes".into(), u32::MAX.to_string()));
    let counts = [&report.outcome.flushed, &report.outcome.bypassed].map(|reasons| {
        // The page shows ten bars.
        reasons.iter().take(10).map(|reason| {
            let share = reason.share * 100.0;
            (reason.count, share)
        })
    });
    let counts: Vec<(u64, f64)> = counts.into_iter().flatten().collect();
    let parts = [
        "81.2 % fewer packets for the host's stack",
        "Worth it: it saves 5.3 % of a core",
        "0.096 → 0.043",
        "rxo analyze monday.pcapng tuesday.pcap --html report.html",
        "monday.pcapng · 2026-11-21 09:29:45 UTC, 6.17 s",
        "tuesday.pcap · 2026-11-21 09:29:45 UTC, 6.17 s",
        "ethtool -C eth0 rx-usecs 50",
        "no limit",
        "packets:64, no prediction",
    ];
    for width in [1280, 400] {
        with_page(&report, width, "light", |browser| {
            let words = browser.value(include_str!("words.js"));
            let words = words.as_str().unwrap();
            for (count, share) in &counts {
                let part = format!("{} (", rxo_console::numbers::grouped(*count));
                assert!(words.contains(&part), "{part} of {share} % is not there at {width} px");
            }
            for part in parts {
                assert!(words.contains(part), "{part:?} is not there at {width} px");
            }
            for part in ["`", "4294967295", "NaN", "undefined", "inf "] {
                assert!(!words.contains(part), "{part:?} is there at {width} px");
            }
        });
    }
}

/// Distributions and counts over time are drawn with horizontal and vertical lines only. A slanted
/// line would show values that never occur.
fn counts_are_drawn_as_steps() {
    let slanted = "[...document.querySelectorAll('#aggregates polyline, #hold polyline, .course \
                   polyline')].map(line => [...line.points]).map(points => points.filter((at, i) => i > \
                   0 && at.x !== points[i - 1].x && at.y !== points[i - 1].y).length)";
    with_page(&fixture::report(), 1280, "light", |browser| {
        let found = browser.value(slanted);
        let lines = found.as_array().unwrap();
        // Three distributions and two courses, each wide and narrow.
        assert_eq!(lines.len(), 10, "{found}");
        assert!(lines.iter().all(|slanted| slanted == 0), "{found}");
    });
}

fn everything_can_be_read() {
    for scheme in ["light", "dark"] {
        for width in [1280, 400] {
            with_page(&with_partial(), width, scheme, |browser| {
                browser.value("document.querySelectorAll('details').forEach(d => d.open = true)");
                let found = browser.value(include_str!("contrast.js"));
                assert_eq!(found["faults"], json!([]), "{scheme} at {width} px");
                assert!(found["checked"].as_u64().unwrap() > 500, "{found}");
                let ground = browser.value("getComputedStyle(document.body).backgroundColor");
                let expected =
                    if scheme == "dark" { "rgb(20, 23, 28)" } else { "rgb(255, 255, 255)" };
                assert_eq!(ground, expected);
            });
        }
    }
}

fn on_paper_nothing_is_folded_away() {
    with_page(&fixture::report(), 1000, "dark", |browser| {
        browser.call("Emulation.setEmulatedMedia", &json!({ "media": "print" }));
        let hidden = browser.value(
            "[...document.querySelectorAll('details table')].filter(table => \
             table.getBoundingClientRect().height < 20 || !table.checkVisibility({ \
             contentVisibilityAuto: true })).length",
        );
        assert_eq!(hidden, 0);
        let ground = browser.value("getComputedStyle(document.body).backgroundColor");
        assert_eq!(ground, "rgb(255, 255, 255)");
        let paper = browser.call("Page.printToPDF", &json!({}));
        assert!(paper["data"].as_str().unwrap().len() > 20_000);
    });
}
