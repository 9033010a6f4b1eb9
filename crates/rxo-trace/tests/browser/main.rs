//! The HTML report in a real browser: quiet, readable in both schemes and at two widths, sortable,
//! and not to be broken by what captures and file names contain.
//!
//! Needs the Debian package `chromium`. Without it the tests are told as ignored, and fail where
//! `CI=true`: nothing is skipped in silence.
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

const TESTS: [(&str, fn()); 7] = [
    ("the_page_asks_nobody_and_complains_of_nothing", quiet),
    ("names_from_outside_stay_names", hostile_names_stay_names),
    ("the_flow_table_sorts_on_click", the_flow_table_sorts_on_click),
    ("without_script_the_flow_table_is_a_table", without_script_it_is_a_table),
    ("every_figure_is_there_at_both_widths", every_figure_is_there),
    ("everything_can_be_read_in_both_schemes", everything_can_be_read),
    ("on_paper_nothing_is_folded_away", on_paper_nothing_is_folded_away),
];

fn main() -> ExitCode {
    let mut arguments = Arguments::from_args();
    // One browser after the other: two at once on two cores would wait for each other.
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

/// Shows `report` and lets `look` at it.
fn with_page(report: &Report, width: u32, scheme: &str, look: impl FnOnce(&mut Browser)) {
    let mut own = BROWSER.lock().unwrap_or_else(PoisonError::into_inner);
    // After a failure the next test gets a browser of its own.
    let mut browser = own.take().unwrap_or_else(Browser::start);
    let page = PageFile::write(report);
    browser.show(&page.0, width, scheme);
    look(&mut browser);
    *own = Some(browser);
}

/// A page in a file that goes with it.
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

/// All that a page could say or ask for, other than itself.
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
    for report in [fixture::report(), fixture::one_axis(), Report::default()] {
        with_page(&report, 1280, "light", |browser| {
            // A second call: what the page started is told before its answer.
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
    // One style for the page and, in the body, neither a script more nor an image.
    assert_eq!(shapes[0], shapes[1]);
    assert!(shapes[1].as_str().unwrap().ends_with(" 1 0 1"), "{shapes:?}");
}

/// The fixture with all that the hostile one has.
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
            (11, "descending", expected(lasted, true)),
            (11, "ascending", expected(lasted, false)),
            (3, "descending", expected(|flow| flow.packets, true)),
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

/// The first column of the flow table, from above.
fn order(browser: &mut Browser) -> Vec<String> {
    let cells = browser.value(
        "[...document.querySelectorAll('#flows tbody tr')].map(row => row.cells[0].textContent)",
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
    let reports = [(fixture::report(), 10), (fixture::one_axis(), 11)];
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
