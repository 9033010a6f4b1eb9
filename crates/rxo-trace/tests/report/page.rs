//! The HTML page as text; `tests/browser` tests it in a browser.

use rxo_trace::html;
use rxo_trace::report::{Report, Version};

use crate::fixture::{self, HOSTILE};

#[test]
fn everything_of_the_report_is_on_the_page() {
    let page = html::page(&fixture::report()).unwrap();
    for part in [
        "81.2 % fewer packets",
        "187,655",
        "monday.pcapng",
        "2026-11-21 09:29:45 UTC",
        "ethtool -C IF rx-usecs 50",
        "end_of_poll",
        "given on the command line",
        "10.0.0.5",
    ] {
        assert!(page.contains(part), "{part} is not on the page");
    }
}

#[test]
fn one_packet_is_singular_on_the_page() {
    let mut report = fixture::report();
    (report.decision.packets, report.decision.deliveries) = (1, 1);
    let page = html::page(&report).unwrap();
    assert!(page.contains("1 packet, 1 delivery<"));
}

#[test]
fn nothing_on_the_page_is_fetched() {
    let page = html::page(&fixture::hostile()).unwrap();
    for part in ["<link rel=\"stylesheet", "src=\"", "@import", "url(", "<iframe", "<object"] {
        assert!(!page.contains(part), "{part}");
    }
    assert!(page.contains("default-src 'none'"));
}

#[test]
fn names_cannot_leave_their_place() {
    let page = html::page(&fixture::hostile()).unwrap();
    assert!(!page.contains(HOSTILE) && !page.contains("<img"));
    assert_eq!(page.matches("<script").count(), 1);
}

#[test]
fn a_live_interface_is_compared_with_the_host_as_it_is() {
    let page = html::page(&fixture::live()).unwrap();
    for part in [
        "81.2 % fewer packets for the host&#39;s stack, 66.7 % today",
        "today → with coalescing, at the median rate",
        "222,222 of them merged from 888,888 packets; 7 LOST by the socket",
        "driver mlx5_core, GRO on",
        "123,456",
        "2001:db8:1234:5678:9abc:def0:1234:5678",
        "not worth it",
    ] {
        assert!(page.contains(part), "{part} is not on the page");
    }
    assert!(!page.contains("read to its end"), "an interface is no file");
}

#[test]
fn a_report_of_nothing_is_a_page() {
    let page = html::page(&Report::default()).unwrap();
    assert!(page.contains("There were no packets") && !page.contains("NaN"));
}

#[test]
fn what_is_partial_says_so() {
    let report = Report { partial: Some("damage at byte 42".into()), ..fixture::report() };
    assert!(html::page(&report).unwrap().contains("damage at byte 42"));
}

#[test]
fn a_notebook_gets_the_decision_and_the_figures() {
    let report = fixture::report();
    let shown = html::fragment(&report).unwrap();
    assert!(shown.contains("81.2 % fewer packets"));
    assert_eq!(shown.matches("<svg").count(), 4, "two figures in two sizes");
    let shown = html::fragment(&fixture::hostile()).unwrap();
    assert!(!shown.contains(HOSTILE) && !shown.contains("<img") && !shown.contains("<script"));
}

#[test]
fn the_json_has_a_version() {
    let json = serde_json::to_value(fixture::report()).unwrap();
    assert_eq!(json["version"], Version::NUMBER);
}
